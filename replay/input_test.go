package replay_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/replay"
)

const smallFormat = "csv:time=1@s,client=2"

// smallLog is n lines of smallFormat.
func smallLog(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "%d,client-%d\n", 1_700_000_000+i, i%7)
	}
	return b.Bytes()
}

func zstdOf(t *testing.T, data []byte) []byte {
	t.Helper()
	w := must.Get(zstd.NewWriter(nil))(t)
	defer w.Close()
	return w.EncodeAll(data, nil)
}

// bzip2Fixture is "1,a\n2,b\n".
const bzip2Fixture = "425a6839314159265359b0a7114f00000259000010000430003000200021a699a0c002950b0bb9229c2848585388a780"

// TestCompression reads every compression, whatever the name says.
func TestCompression(t *testing.T) {
	data := smallLog(5000)
	bz := must.Get(hex.DecodeString(bzip2Fixture))(t)
	for _, c := range []struct {
		name  string
		data  []byte
		lines int64
	}{
		{"plain", data, 5000},
		{"plain.gz", data, 5000}, // only its name ends in gz
		{"gzip", gzipped(t, data), 5000},
		{"two gzip members", append(gzipped(t, data), gzipped(t, data)...), 10000},
		{"a gzip member ends within a line", append(gzipped(t, data[:1001]), gzipped(t, data[1001:])...), 5000},
		{"zstd", zstdOf(t, data), 5000},
		{"two zstd frames", append(zstdOf(t, data), zstdOf(t, data)...), 10000},
		{"zstd behind a frame to skip", append([]byte("\x5e\x2a\x4d\x18\x04\x00\x00\x00skip"), zstdOf(t, data)...), 5000},
		{"bzip2", bz, 2},
		{"no final newline", data[:len(data)-1], 5000},
		{"one line", []byte("7,x"), 1},
		{"empty", nil, 0},
		{"nothing in gzip", gzipped(t, nil), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustRun(t, replay.Config{Files: []string{writeFile(t, c.name, c.data)}, Format: smallFormat})
			if r.Lines != c.lines || c.lines > 1 && r.Bad > 0 {
				t.Errorf("%d lines, %d bad; want %d", r.Lines, r.Bad, c.lines)
			}
			stdin := replay.Config{Files: []string{"-"}, Stdin: iotest.OneByteReader(bytes.NewReader(c.data)), Format: smallFormat}
			if s := mustRun(t, stdin); s.Lines != r.Lines || s.Events != r.Events {
				t.Errorf("by standard input %d lines, want %d", s.Lines, r.Lines)
			}
		})
	}
}

// TestByteOrderMark has marks in front of lines, as programs on Windows write them and as they stand where two of their
// files were joined. They do not belong to these lines, and nothing else is left out.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	line := clfAt(1, "192.0.2.1", "/")
	for _, c := range []struct {
		data      string
		good, bad int64
	}{
		{mark + line, 1, 0},
		{mark + line + mark + line, 2, 0},
		{mark, 0, 0},
		{mark + "\n" + line, 1, 1},
		{mark + mark + line + line, 2, 0},
	} {
		r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", []byte(c.data))}, Format: "clf"})
		if r.Parsed != c.good || r.Bad != c.bad || len(r.Problems) > 0 {
			t.Errorf("%q: %d parsed, %d bad, problems %q", c.data, r.Parsed, r.Bad, r.Problems)
		}
		if c.good > 0 && r.Keys != 1 {
			t.Errorf("%q: %d clients, want 1", c.data, r.Keys)
		}
	}
}

// TestBadTextIsCutBetweenCharacters has a bad line whose first 200 bytes end within a character: cut there, its text in
// JSON would not be UTF-8.
func TestBadTextIsCutBetweenCharacters(t *testing.T) {
	for _, line := range []string{strings.Repeat("é", 200), "x" + strings.Repeat("é", 200), strings.Repeat("😀", 99), "xx" + strings.Repeat("日", 99)} {
		r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", []byte(line+"\n"+clfAt(1, "192.0.2.1", "/")))}, Format: "clf"})
		if bad := r.BadLines[0]; !bad.Cut || !strings.HasPrefix(line, bad.Text) || !utf8.ValidString(bad.Text) || len(bad.Text) < 197 {
			t.Errorf("%d bytes %q", len(bad.Text), bad.Text)
		}
	}
}

// TestDamagedBeyondRecognition has a file that is damaged so that no line is in order: both errors are reported, since one
// explains the other.
func TestDamagedBeyondRecognition(t *testing.T) {
	gz := gzipped(t, bytes.Repeat([]byte("not a log\n"), 10))
	path := writeFile(t, "file", gz[:len(gz)-4])
	r := must.Get(replay.Run(t.Context(), replay.Config{Files: []string{path}}))(t)
	if len(r.Problems) != 2 || !strings.Contains(r.Problems[0], "ends too early") || !strings.Contains(r.Problems[1], "no known log format") {
		t.Errorf("problems %q", r.Problems)
	}
}

// TestUnreadable has files that cannot be read, or not to their end: each is
// one sentence, and the rest is reported.
func TestUnreadable(t *testing.T) {
	data := smallLog(5000)
	gz, zst := gzipped(t, data), zstdOf(t, data)
	damaged := bytes.Clone(gz)
	damaged[len(damaged)-6] ^= 1 // the checksum
	damagedMiddle := bytes.Clone(gz)
	copy(damagedMiddle[len(gz)/2:], "damaged!damaged!")
	binary := make([]byte, 100_000)
	for i := range binary {
		binary[i] = byte(i * i >> 3)
	}
	dir := t.TempDir()
	for _, c := range []struct {
		name     string
		path     string // or
		data     []byte
		format   string
		sentence string
		some     bool // how many of its lines must be in the report
	}{
		{"missing", filepath.Join(dir, "nowhere"), nil, smallFormat, "no such file", false},
		{"directory", dir, nil, smallFormat, "is a directory", false},
		{"gzip cut off", "", gz[:len(gz)*2/3], smallFormat, "the compressed data ends too early; what came before is in the report", true},
		{"gzip trailer cut off", "", gz[:len(gz)-3], smallFormat, "ends too early", true},
		{"gzip of a few bytes", "", gz[:5], smallFormat, "ends too early", false},
		{"gzip checksum", "", damaged, smallFormat, "damaged", true},
		{"gzip damaged", "", damagedMiddle, smallFormat, "damaged", true},
		{"gzip and then no gzip", "", append(bytes.Clone(gz), "not gzip at all"...), smallFormat, "damaged", true},
		{"zstd cut off", "", zst[:len(zst)*2/3], smallFormat, "ends too early", false},
		{"zstd damaged", "", append(append(bytes.Clone(zst), zst[:9]...), "xxxxxxxxxxxxxxxxxxxx"...), smallFormat, "cannot be read", true},
		{"bzip2 damaged", "", []byte("BZh9 and so on"), smallFormat, "cannot be read", false},
		{"binary", "", binary, "auto", "no known log format fits its first lines, such as ", false},
		{"one line that is too long", "", bytes.Repeat([]byte("x"), 1<<20), "auto", "no known log format", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := c.path
			if path == "" {
				path = writeFile(t, "file", c.data)
			}
			alone := must.Get(replay.Run(t.Context(), replay.Config{Files: []string{path}, Format: c.format}))(t)
			if len(alone.Problems) != 1 || !strings.Contains(alone.Problems[0], c.sentence) || !strings.HasPrefix(alone.Problems[0], path+": ") {
				t.Errorf("problems %q, want one with %q", alone.Problems, c.sentence)
			}
			if c.some != (alone.Parsed > 100) {
				t.Errorf("%d lines parsed; some are readable: %v", alone.Parsed, c.some)
			}
			good := writeFile(t, "good", smallLog(30))
			if c.format == "auto" {
				good = writeFile(t, "good", []byte(strings.Repeat(clfAt(1, "192.0.2.1", "/"), 30)))
			}
			beside := must.Get(replay.Run(t.Context(), replay.Config{Files: []string{good, path, good}, Format: c.format}))(t)
			if len(beside.Problems) != 1 || beside.Parsed != alone.Parsed+60 {
				t.Errorf("beside good files: problems %q, %d parsed", beside.Problems, beside.Parsed)
			}
		})
	}
}

// clfAt is a line of clf.
func clfAt(sec int64, client, target string) string {
	return fmt.Sprintf("%s - - [%s] \"GET %s HTTP/1.1\" 200 5\n", client, time.Unix(sec, 0).UTC().Format("02/Jan/2006:15:04:05 -0700"), target)
}

// TestLongLines has lines around the longest allowed length, and one of 10 MB, at the start, in the middle and at the end
// of a log. The lines around them are read, and the format is detected.
func TestLongLines(t *testing.T) {
	line := clfAt(1_700_000_000, "192.0.2.1", "/")
	of := func(length int) string {
		long := clfAt(1_700_000_000, "192.0.2.1", "/"+strings.Repeat("x", length-len(line)+1))
		return strings.TrimSuffix(long, "\n")
	}
	const most = 64 << 10
	huge := strings.Repeat("z", 10<<20)
	for _, c := range []struct {
		name              string
		text              string
		lines, bad, shown int64
	}{
		{"exact", of(most) + "\n", 1, 0, 0},
		{"exact, \\r\\n", of(most) + "\r\n" + line, 2, 0, 0},
		{"exact, no line end", line + of(most), 2, 0, 0},
		{"one more", line + of(most+1) + "\n" + line, 3, 1, 2},
		{"one more, \\r\\n", line + of(most+1) + "\r\n" + line, 3, 1, 2},
		{"one more, no line end", line + of(most+1), 2, 1, 2},
		{"10 MB first", huge + "\n" + line + line, 3, 1, 1},
		{"10 MB in the middle", line + huge + "\n" + line, 3, 1, 2},
		{"10 MB twice", line + huge + "\r\n" + huge + "\n" + line, 4, 2, 2},
		{"forty of 700 KB", strings.Repeat(line+huge[:700_000]+"\n", 40), 80, 40, 2},
		{"10 MB last, no line end", line + line + huge, 3, 1, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := mustRun(t, replay.Config{Files: []string{writeFile(t, "access.log", []byte(c.text))}})
			if r.Lines != c.lines || r.Bad != c.bad || r.Events != c.lines-c.bad || r.Format != "clf" {
				t.Errorf("%d lines, %d bad, %d events, format %s; want %d and %d of clf", r.Lines, r.Bad, r.Events, r.Format, c.lines, c.bad)
			}
			if int64(len(r.BadLines)) != min(c.bad, 10) || c.bad > 0 && r.BadLines[0].Line != c.shown {
				t.Errorf("bad lines %.500v, want the first in line %d", r.BadLines, c.shown)
			}
			for _, b := range r.BadLines {
				if len(b.Text) > 200 {
					t.Errorf("%d bytes of a bad line are kept", len(b.Text))
				}
			}
		})
	}
}

// TestBlockBoundaries has lines of many lengths that cross the ends of the blocks in which files are read. Each line
// contains its number.
func TestBlockBoundaries(t *testing.T) {
	rnd := randtest.New(t)
	for range 6 {
		var b bytes.Buffer
		n := int64(0)
		for b.Len() < 3*blockSize {
			fmt.Fprintf(&b, "%d,%s%s", n, strings.Repeat("k", 1+rnd.IntN(pick(rnd, 3, 400, 60_000))), pick(rnd, "\n", "\r\n"))
			n++
		}
		r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", b.Bytes())}, Format: smallFormat})
		if r.Lines != n || r.Bad != 0 || r.First.String() != "0" || r.Last.String() != fmt.Sprint(n-1) || len(r.Jumps) > 0 {
			t.Errorf("%d lines, %d bad, from %s to %s; want %d", r.Lines, r.Bad, r.First, r.Last, n)
		}
	}
}

// TestTies has files whose events fall in the same second: they are judged by
// file, then by line.
func TestTies(t *testing.T) {
	a := writeFile(t, "a", []byte("5,x\n5,y\n7,x\n"))
	b := writeFile(t, "b", []byte("7,y\n5,z\n5,x\n"))
	for _, c := range []struct {
		files []string
		want  string
	}{
		{[]string{a, b}, "x y z x x y"},
		{[]string{b, a}, "z x x y y x"},
	} {
		// A hot rule at the first event of each pair of key and second reveals the order; so does the digest.
		r := mustRun(t, replay.Config{Files: c.files, Format: smallFormat, WhatIfs: []replay.WhatIf{whatIf(t, replay.Ban, "0/1s:1ms")}})
		times := []int64{5, 5, 5, 5, 7, 7}
		var starts []hit
		banned := map[hit]bool{}
		for i, key := range strings.Fields(c.want) {
			if h := (hit{times[i], key}); !banned[h] {
				banned[h] = true
				starts = append(starts, hit{times[i] * 1000, key})
			}
		}
		if r.Rules[0].StartsSHA256 != hitDigest(starts, false) {
			t.Errorf("%v: not the starts of %s: %v", c.files, c.want, starts)
		}
	}
}

// TestFarTimes has the years from 1900 to 2149 in one log, and zones of more than four
// days: windows are judged as in any other year. Lines of other years are bad.
func TestFarTimes(t *testing.T) {
	at := func(stamp string) string { return "192.0.2.1 - - [" + stamp + "] \"GET / HTTP/1.1\" 200 5\n" }
	lines := []string{
		at("31/Dec/1899:23:59:59 +0000"),
		at("01/Jan/1900:00:00:00 +0000"), at("01/Jan/1900:00:00:30 +0000"), at("01/Jan/1900:00:01:00 +0000"),
		at("01/Jan/0000:00:00:00 +0000"), at("01/Jan/0001:00:00:00 +0000"), at("31/Dec/9999:23:59:59 +0000"),
		at("17/Apr/2018:06:25:06 +0000"), at("17/Apr/2018:06:25:36 +0000"), at("17/Apr/2018:06:26:05 +0000"),
		at("31/Dec/2149:23:59:00 +0000"), at("31/Dec/2149:23:59:59 +0000"), at("31/Dec/2149:23:59:59 +0000"),
		at("01/Jan/2150:00:00:00 +0000"),
		at("21/Apr/2018:10:25:05 +9999"), // 100 hours and 39 minutes ahead
	}
	r, decisions := mustDecide(t, replay.Config{
		Files:   []string{writeFile(t, "a.log", []byte(strings.Join(lines, "")))},
		WhatIfs: []replay.WhatIf{whatIf(t, replay.Limit, "2/1m"), whatIf(t, replay.Hot, "client:3/61s")},
	})
	want := "AAA" + "A" + "AAD" + "AAD" // the line with the zone is at 05:46:05
	if string(decisions) != want || r.Bad != 5 {
		t.Errorf("decisions %s, %d bad; want %s, 5", decisions, r.Bad, want)
	}
	if r.First.String() != "-2208988800" || r.Last.String() != "5680281599" {
		t.Errorf("from %s to %s", r.First, r.Last)
	}
	if hot := r.Rules[1]; *hot.HotKeys != 1 || hot.FirstHot[0].T.String() != "-2208988740" {
		t.Errorf("hot %+v", hot.FirstHot)
	}
	if len(r.Jumps) != 3 || r.Jumps[0].From.String() != "-2208988740" {
		t.Errorf("jumps %v, want three", r.Jumps)
	}
	var text bytes.Buffer
	must.Do(t, r.WriteText(&text, replay.TextStyle{}))
	if !strings.Contains(text.String(), "from 1900-01-01 00:00:00 to 2149-12-31 23:59:59 UTC (91310d23h)") {
		t.Errorf("the plain report has other times:\n%s", text.Bytes())
	}
}

// TestKeysInJSON has keys that are text and keys that are bytes.
func TestKeysInJSON(t *testing.T) {
	r := mustRun(t, replay.Config{Files: []string{writeFile(t, "log", []byte("1,caf\xc3\xa9\n1,caf\xe9\n1,<a&b>\n"))}, Format: smallFormat})
	out := must.Get(json.Marshal(r))(t)
	var got struct {
		Top []struct {
			Key    []string
			Base64 []string `json:"key_base64"`
		}
	}
	must.Do(t, json.Unmarshal(out, &got))
	for i, want := range []string{`["<a&b>"] []`, `["caf\u00e9"] []`, `[] ["Y2Fm6Q=="]`} {
		if k := got.Top[i]; fmt.Sprintf("%+q %q", k.Key, k.Base64) != want {
			t.Errorf("key %d is %+q, in base64 %q; want %s", i, k.Key, k.Base64, want)
		}
	}
}

// TestProgress has all bytes of all files counted.
func TestProgress(t *testing.T) {
	a, b := smallLog(20_000), gzipped(t, smallLog(10))
	var p replay.Progress
	mustRun(t, replay.Config{Files: []string{writeFile(t, "a", a), writeFile(t, "b", b)}, Format: smallFormat, Progress: &p})
	if want := int64(len(a) + len(b)); p.Total.Load() != want || p.Read.Load() != want || p.Lines.Load() != 20_010 {
		t.Errorf("total %d, read %d, want %d; %d lines", p.Total.Load(), p.Read.Load(), want, p.Lines.Load())
	}
}
