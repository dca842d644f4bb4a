package ratelimit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

var (
	banSince = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	banUntil = banSince.Add(10 * time.Minute)
)

func banRecord(key ...string) ratelimit.BanRecord {
	return ratelimit.BanRecord{
		Rule: "login", Key: key, Since: banSince, Until: banUntil, Count: 2,
		Reason: "more than 20 refusals in 5m", Source: "rule",
	}
}

func sameBan(a, b ratelimit.BanRecord) bool {
	return a.Rule == b.Rule && slices.Equal(a.Key, b.Key) && a.Since.Equal(b.Since) && a.Until.Equal(b.Until) &&
		a.Count == b.Count && a.Reason == b.Reason && a.Source == b.Source
}

func writeBans(t testing.TB, bans ...ratelimit.BanRecord) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := ratelimit.WriteBans(&b, slices.Values(bans)); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBanLine(t *testing.T) {
	full, spare := banRecord("192.0.2.1", "<root>"), banRecord("k")
	spare.Since, spare.Count, spare.Reason, spare.Source = time.Time{}, 0, "", ""
	spare.Until = banUntil.Add(5).In(time.FixedZone("", 3600))
	got := string(writeBans(t, full, spare, banRecord("a\xffb", "c")))
	want := `{"rule":"login","key":["192.0.2.1","<root>"],"since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:14:05Z",` +
		`"count":2,"reason":"more than 20 refusals in 5m","source":"rule"}
{"rule":"login","key":["k"],"until":"2026-01-02T03:14:05.000000005Z"}
{"rule":"login","key_base64":["Yf9i","Yw=="],"since":"2026-01-02T03:04:05Z","until":"2026-01-02T03:14:05Z",` +
		`"count":2,"reason":"more than 20 refusals in 5m","source":"rule"}
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestBanLinesRoundTrip writes bans of keys with any bytes, and reads them.
func TestBanLinesRoundTrip(t *testing.T) {
	rnd := seeded(t)
	var bans []ratelimit.BanRecord
	for range 2000 {
		text := func(most int) string {
			b := make([]byte, 1+rnd.IntN(most))
			for i := range b {
				b[i] = byte(rnd.Uint32() >> rnd.IntN(8))
			}
			return string(b)
		}
		r := banRecord()
		for range 1 + rnd.IntN(8) {
			r.Key = append(r.Key, text(1<<rnd.IntN(8)))
		}
		r.Since = banUntil.Add(-time.Duration(1 + rnd.Int64N(1e18)))
		r.Count = rnd.Uint64() >> rnd.IntN(64)
		r.Reason, r.Source = strings.ToValidUTF8(text(80), "\u2028"), strings.ToValidUTF8(text(20), "&")
		bans = append(bans, r)
	}
	i := 0
	for got, err := range ratelimit.ReadBans(bytes.NewReader(writeBans(t, bans...))) {
		if err != nil || !sameBan(got, bans[i]) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, bans[i])
		}
		i++
	}
	if i != len(bans) {
		t.Errorf("%d bans read, want %d", i, len(bans))
	}
}

func TestBanLinesInOtherJSON(t *testing.T) {
	r := banRecord("a<b", "\xff")
	b, err := json.Marshal(map[string]any{"ban": r})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]ratelimit.BanRecord
	if err := json.Unmarshal(b, &got); err != nil || !sameBan(got["ban"], r) {
		t.Errorf("got %+v, %v, want %+v", got, err, r)
	}
	if _, err := json.Marshal(ratelimit.BanRecord{}); err == nil {
		t.Error("a ban of nothing was written")
	}
}

func TestBanLineErrors(t *testing.T) {
	good := string(writeBans(t, banRecord("k")))
	change := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("%s has no %s", good, old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for name, c := range map[string]struct {
		line string
		want []string
	}{
		"syntax":        {"{", []string{"unexpected end of JSON input"}},
		"text":          {"192.0.2.1", []string{"invalid character"}},
		"null":          {"null", []string{"rule is missing"}},
		"two":           {strings.TrimSpace(good) + good, []string{"invalid character '{' after top-level value"}},
		"unknown":       {change(`"until"`, `"untill"`), []string{`field "untill" is not known`, "allowed are rule, key or key_base64, since, until"}},
		"no rule":       {change(`"login"`, `""`), []string{"rule is missing", "under a rule"}},
		"no key":        {change(`"key":["k"],`, ""), []string{"key is missing", "a value for each field"}},
		"empty key":     {change(`["k"]`, `[]`), []string{"key is missing"}},
		"null in key":   {change(`["k"]`, `["k",null]`), []string{"value 2 of key is empty"}},
		"key no list":   {change(`["k"]`, `"k"`), []string{"key", "string"}},
		"long key":      {change(`"k"`, `"`+strings.Repeat("k", 1025)+`"`), []string{"key has 1025 bytes", "at most 1024"}},
		"two keys":      {change(`["k"]`, `["k"],"key_base64":["aw=="]`), []string{"both key and key_base64"}},
		"base64":        {change(`"key":["k"]`, `"key_base64":["?"]`), []string{"illegal base64"}},
		"not UTF-8":     {change(`"k"`, "\"\xff\""), []string{"not UTF-8", "key_base64"}},
		"no until":      {change(`"until":"2026-01-02T03:14:05Z",`, ""), []string{"until is missing", "every ban has an end"}},
		"until early":   {change("03:14:05Z", "03:04:05Z"), []string{"until is 2026-01-02T03:04:05Z", "after since, 2026-01-02T03:04:05Z"}},
		"until no time": {change("2026-01-02T03:14:05Z", "tomorrow"), []string{"tomorrow"}},
		"late year":     {change("2026-01-02T03:14:05Z", "9999-12-31T23:59:59-01:00"), []string{"out of range", "years 0 to 9999"}},
		"early year":    {change("2026-01-02T03:04:05Z", "0000-01-01T00:00:00+01:00"), []string{"out of range", "years 0 to 9999"}},
		"count":         {change(`"count":2`, `"count":-2`), []string{"count", "-2"}},
		"reason":        {change("refusals", strings.Repeat("x", 256)), []string{"reason has 275 bytes", "at most 256"}},
		"source":        {change(`"source":"rule"`, `"source":"`+strings.Repeat("x", 65)+`"`), []string{"source has 65 bytes", "at most 64"}},
		"long":          {change("refusals", strings.Repeat("x", ratelimit.MaxBanLine)), []string{"longer than 65536 bytes"}},
	} {
		// The line is between good ones, and at the end.
		text := good + "\n \r\n" + c.line + "\n" + good + c.line
		var errs []error
		read := 0
		for r, err := range ratelimit.ReadBans(strings.NewReader(text)) {
			if err != nil {
				errs = append(errs, err)
			} else if read++; !sameBan(r, banRecord("k")) {
				t.Errorf("%s: read %+v", name, r)
			}
		}
		if read != 2 || len(errs) != 2 {
			t.Fatalf("%s: %d bans and the errors %v; want 2 of each", name, read, errs)
		}
		wantParts(t, name, errs[0], append(c.want, "line 4: ")...)
		last := 6 + strings.Count(c.line, "\n")
		wantParts(t, name, errs[1], append(c.want, fmt.Sprintf("line %d: ", last))...)
	}
}

func TestBanLinesOfAllLengths(t *testing.T) {
	head := `{"rule":"r","key":["k"],"until":"2026-01-02T03:14:05Z","reason":"why"`
	for _, n := range []int{ratelimit.MaxBanLine - 1, ratelimit.MaxBanLine, ratelimit.MaxBanLine + 1, ratelimit.MaxBanLine + 2, 3 * ratelimit.MaxBanLine} {
		for _, end := range []string{"", "\n", "\r\n", "\n\n\n"} {
			line := head + strings.Repeat(" ", n-len(head)-1) + "}"
			read, bad := 0, 0
			for _, err := range ratelimit.ReadBans(iotest.OneByteReader(strings.NewReader(line + end))) {
				if err != nil {
					bad++
				} else {
					read++
				}
			}
			if long := n > ratelimit.MaxBanLine; long && (read != 0 || bad != 1) || !long && (read != 1 || bad != 0) {
				t.Errorf("a line of %d bytes and %q: %d bans and %d errors", n, end, read, bad)
			}
		}
	}
}

func TestBanLinesStop(t *testing.T) {
	text := writeBans(t, banRecord("a"), banRecord("b"), banRecord("c"))
	broken := errors.New("broken")
	read := 0
	var last error
	for _, err := range ratelimit.ReadBans(io.MultiReader(bytes.NewReader(text[:len(text)-5]), iotest.ErrReader(broken))) {
		read++
		last = err
	}
	if read != 4 || !errors.Is(last, broken) { // two bans, half a line, the error
		t.Errorf("%d lines, the last %v", read, last)
	}
	for range ratelimit.ReadBans(bytes.NewReader(text)) {
		break
	}
	bad := banRecord("a")
	bad.Rule = ""
	var b bytes.Buffer
	err := ratelimit.WriteBans(&b, slices.Values([]ratelimit.BanRecord{banRecord("a"), bad, banRecord("c")}))
	wantParts(t, "second bad", err, "ban 2: rule is missing")
	if !bytes.Equal(b.Bytes(), writeBans(t, banRecord("a"))) {
		t.Errorf("written before the bad one: %s", b.Bytes())
	}
	if err := ratelimit.WriteBans(brokenWriter{broken}, slices.Values(slices.Repeat([]ratelimit.BanRecord{banRecord("a")}, 1000))); !errors.Is(err, broken) {
		t.Errorf("error %v, want that of the writer", err)
	}
}

type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }

// FuzzReadBans reads any bytes: what is read is written, and read again alike.
func FuzzReadBans(f *testing.F) {
	good := writeBans(f, banRecord("k"), banRecord("a", "\xff"))
	f.Add(good)
	f.Add([]byte("\n\r\n{}\nnull\n[]\n"))
	f.Add(bytes.ReplaceAll(good, []byte(`"k"`), []byte(`"\ud800","\u0000"`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		lines, items := bytes.Count(b, []byte("\n"))+1, 0
		for r, err := range ratelimit.ReadBans(bytes.NewReader(b)) {
			if items++; err != nil {
				if !strings.HasPrefix(err.Error(), "line ") {
					t.Errorf("an error without its line: %v", err)
				}
				continue
			}
			n := 0
			for again, err := range ratelimit.ReadBans(bytes.NewReader(writeBans(t, r))) {
				if n++; err != nil || !sameBan(again, r) {
					t.Errorf("%+v is read again as %+v, %v", r, again, err)
				}
			}
			if n != 1 {
				t.Errorf("%+v is read again as %d bans", r, n)
			}
		}
		if items > lines {
			t.Errorf("%d bans and errors in %d lines", items, lines)
		}
	})
}

func ExampleWriteBans() {
	err := ratelimit.WriteBans(os.Stdout, slices.Values([]ratelimit.BanRecord{{
		Rule:   "per-client",
		Key:    []string{"192.0.2.7"},
		Since:  time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		Until:  time.Date(2026, 5, 2, 12, 0, 0, 0, time.UTC),
		Reason: "scans for logins",
		Source: "manual by alice",
	}}))
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// {"rule":"per-client","key":["192.0.2.7"],"since":"2026-05-01T12:00:00Z","until":"2026-05-02T12:00:00Z","reason":"scans for logins","source":"manual by alice"}
}

func ExampleReadBans() {
	file := strings.NewReader(`
{"rule":"per-client","key":["192.0.2.7"],"until":"2026-05-02T12:00:00Z"}
{"rule":"per-client","key":["192.0.2.8"],"for":"1h"}
`)
	for ban, err := range ratelimit.ReadBans(file) {
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(ban.Rule, ban.Key, ban.Until)
	}
	// Output:
	// per-client [192.0.2.7] 2026-05-02 12:00:00 +0000 UTC
	// line 3: field "for" is not known; allowed are rule, key or key_base64, since, until, count, reason and source
}
