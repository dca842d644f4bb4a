package accesslog_test

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// dataDir holds the real logs and the answers of an independent reader. They
// are not part of the repository.
const dataDir = "../../shared/data"

// specOf gives the specs of the logs whose format has no name here.
var specOf = map[string]string{
	"csv-io":        "csv:time=2@s,object=5",
	"json-mooncake": "json:time=timestamp@ms,object=hash_ids[]",
	"tsv-nasa":      "tsv:time=3@s,client=1,object=5@path",
}

// namedOf returns the name here of a format of the manifest.
func namedOf(format string) string {
	if strings.HasPrefix(format, "syslog-") {
		return "messages"
	}
	return format
}

// loginForm is the lines of sshd that the oracle takes for events.
var loginForm = regexp.MustCompile(`sshd\[\d+\]: (Failed (password|none)|error: PAM: Authentication failure) for `)

// isOfOracle reports whether the oracle may take a line for an event. It parses packets with a
// port only.
func (l logFile) isOfOracle(line []byte) bool {
	switch l.Format {
	case "syslog-sshd":
		return loginForm.Match(line) && !bytes.Contains(line, []byte("message repeated"))
	case "syslog-ufw":
		return bytes.Contains(line, []byte("DPT="))
	}
	return true
}

// hostForm is how lines begin with the name of a virtual host, for the oracle the client, and
// the address of the client.
var hostForm = regexp.MustCompile(`(?m)^( *[^ ]+) [^ ]+ `)

// ofOracle returns a log with words for the lines that the oracle takes for no events, and
// without what it takes for the ident of a client.
func (l logFile) ofOracle(log []byte) []byte {
	if l.File == "honeypot-nginx-2019.log" {
		return hostForm.ReplaceAll(log, []byte("$1 - "))
	}
	if !strings.HasPrefix(l.Format, "syslog-") {
		return log
	}
	var kept []byte
	for line := range bytes.Lines(log) {
		if !l.isOfOracle(line) {
			line = []byte("another line\n")
		}
		kept = append(kept, line...)
	}
	return kept
}

type logFile struct {
	File   string
	Format string
	Year   int
}

// realLogs returns the logs of dataDir, or skips the test.
func realLogs(t testing.TB) []logFile {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataDir, "manifest.json"))
	if err != nil {
		t.Skipf("the real logs are not here: %v", err)
	}
	var logs []logFile
	must.Do(t, json.Unmarshal(text, &logs))
	return logs
}

// open returns the log, decompressed.
func (l logFile) open(t testing.TB) io.Reader {
	t.Helper()
	f := must.Get(os.Open(filepath.Join(dataDir, l.File)))(t)
	t.Cleanup(func() { f.Close() })
	if !strings.HasSuffix(l.File, ".gz") {
		return f
	}
	z := must.Get(gzip.NewReader(f))(t)
	return z
}

func (l logFile) format(t testing.TB) accesslog.Format {
	t.Helper()
	name := cmp.Or(specOf[l.Format], namedOf(l.Format))
	f := must.Get(accesslog.ParseFormat(name))(t)
	return f
}

// An answer is the part of an oracle file that a reader of lines is
// responsible for.
type answer struct {
	Lines, Parsed, Bad int64
	First, Last        int64
	Client, Object     keyAnswer
}

type keyAnswer struct {
	Distinct, Events int
	Top              []keyCount
}

type keyCount struct {
	Key   string
	Count int
}

func (l logFile) answer(t *testing.T) answer {
	t.Helper()
	name := strings.TrimSuffix(l.File, ".gz")
	name = strings.TrimSuffix(name, filepath.Ext(name))
	text := must.Get(os.ReadFile(filepath.Join(dataDir, "oracle", name+".json")))(t)
	var a answer
	must.Do(t, json.Unmarshal(text, &a))
	return a
}

// tally counts keys as the oracle does.
type tally struct {
	count    map[string]int
	latinKey bool
}

func (c tally) add(ev *match.Event, f match.Field) {
	if v := ev.Get(f); v != nil {
		key := string(v)
		if c.latinKey {
			key = latin1(v)
		}
		c.count[key]++
	}
}

func (c tally) answer() (a keyAnswer) {
	for key, n := range c.count {
		a.Events += n
		a.Top = append(a.Top, keyCount{key, n})
	}
	a.Distinct = len(a.Top)
	slices.SortFunc(a.Top, func(x, y keyCount) int {
		return cmp.Or(cmp.Compare(y.Count, x.Count), cmp.Compare(x.Key, y.Key))
	})
	a.Top = a.Top[:min(len(a.Top), 20)]
	return a
}

// latin1 returns the text that the bytes are in Latin-1.
func latin1(b []byte) string {
	text := make([]rune, len(b))
	for i, c := range b {
		text[i] = rune(c)
	}
	return string(text)
}

func TestRealLogsGiveTheOraclesAnswers(t *testing.T) {
	for _, l := range realLogs(t) {
		t.Run(l.File, func(t *testing.T) {
			t.Parallel()
			format, want := l.format(t), l.answer(t)
			log := must.Get(io.ReadAll(l.open(t)))(t)
			got := answer{First: 1 << 62, Last: -1 << 62}
			client := tally{make(map[string]int), !format.TextKeys()}
			object := tally{make(map[string]int), !format.TextKeys()}
			log = l.ofOracle(log)
			lines := readLog(t, log, format, accesslog.Options{Year: l.Year}, func(ev *match.Event) {
				got.First, got.Last = min(got.First, ev.Time.Unix()), max(got.Last, ev.Time.Unix())
				client.add(ev, match.Client)
				object.add(ev, match.Object)
			})
			got.Parsed, got.Bad = lines.parsed, lines.skipped+lines.bad
			got.Lines = got.Parsed + got.Bad
			got.Client, got.Object = client.answer(), object.answer()
			compareAnswers(t, got, want)
		})
	}
}

// compareAnswers returns where two answers differ, without the keys, which belong to real people.
func compareAnswers(t *testing.T, got, want answer) {
	t.Helper()
	if got.Lines != want.Lines || got.Parsed != want.Parsed || got.Bad != want.Bad {
		t.Errorf("lines, parsed, bad = %d, %d, %d, want %d, %d, %d",
			got.Lines, got.Parsed, got.Bad, want.Lines, want.Parsed, want.Bad)
	}
	if got.First != want.First || got.Last != want.Last {
		t.Errorf("times from %d to %d, want from %d to %d", got.First, got.Last, want.First, want.Last)
	}
	for _, c := range []struct {
		name      string
		got, want keyAnswer
	}{{"client", got.Client, want.Client}, {"object", got.Object, want.Object}} {
		if c.got.Distinct != c.want.Distinct || c.got.Events != c.want.Events {
			t.Errorf("%s: %d keys in %d events, want %d in %d",
				c.name, c.got.Distinct, c.got.Events, c.want.Distinct, c.want.Events)
		}
		if !slices.Equal(c.got.Top, c.want.Top) {
			t.Errorf("%s: the 20 top keys differ", c.name)
		}
	}
}

func TestDetectRecognizesRealLogs(t *testing.T) {
	for _, l := range realLogs(t) {
		sample := make([]byte, 256<<10)
		n, err := io.ReadFull(l.open(t), sample)
		if err != nil && err != io.ErrUnexpectedEOF {
			t.Fatal(err)
		}
		f, ok := accesslog.Detect(sample[:n])
		_, unnamed := specOf[l.Format]
		if unnamed && ok {
			t.Errorf("%s: detected %v, want none", l.File, f)
		}
		if !unnamed && f.String() != namedOf(l.Format) {
			t.Errorf("%s: detected %q, want %q", l.File, f, l.Format)
		}
	}
}
