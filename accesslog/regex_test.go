package accesslog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

const shopPatterns = `# Failed logins of the shop's application.
time   %Y-%m-%d %H:%M:%S
match  ^ \[app\] login failed for (?P<user>\S+) from <HOST>$
match  ^ \[app\] (?:bad token|no token)(?: of (?P<user>\S+))? \((?P<user>\w+)@<ADDR>\)
ignore login failed for monitor
`

// patternEvents returns the events of a line as text, and how it was counted without one.
func patternEvents(t *testing.T, p *accesslog.Parser, line string) string {
	t.Helper()
	var ev match.Event
	if !p.Parse([]byte(line), &ev) {
		if p.Skipped() {
			return "skipped"
		}
		return "bad"
	}
	var all []string
	for ok := true; ok; ok = p.Next(&ev) {
		text, filter := ev.Time.UTC().Format(time.RFC3339Nano), ""
		for name, value := range ev.Fields() {
			field := fmt.Sprintf(" %s=%s", name, value)
			if name == "filter" { // is last here
				filter = field
				continue
			}
			text += field
		}
		all = append(all, text+filter)
	}
	return strings.Join(all, "; ")
}

func patternParser(t testing.TB, o accesslog.Options, files ...string) *accesslog.Parser {
	t.Helper()
	dir := t.TempDir()
	var names []string
	for i, text := range files {
		name := filepath.Join(dir, fmt.Sprintf("f%d.regex", i+1))
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		names = append(names, name)
	}
	f := must.Get(accesslog.ParseFormat("regex:" + strings.Join(names, ",")))(t)
	p := must.Get(f.NewParser(o))(t)
	return p
}

func TestPatterns(t *testing.T) {
	p := patternParser(t, accesslog.Options{}, shopPatterns)
	for _, test := range []struct{ line, want string }{
		{"2026-03-02 14:00:01 [app] login failed for ada from 192.0.2.1", "2026-03-02T14:00:01Z client=192.0.2.1 user=ada filter=f1"},
		{"2026-03-02 14:00:01 [app] login failed for ada from shop.example", "2026-03-02T14:00:01Z client=shop.example user=ada filter=f1"},
		{"2026-03-02 14:00:01 [app] login failed for ada from [2001:db8::1]", "2026-03-02T14:00:01Z client=2001:db8::1 user=ada filter=f1"},
		{"2026-03-02 14:00:01 [app] login failed for ada from ::ffff:192.0.2.1", "2026-03-02T14:00:01Z client=192.0.2.1 user=ada filter=f1"},
		{"2026-03-02 14:00:01 [app] no token of eve (ada@192.0.2.1)", "2026-03-02T14:00:01Z client=192.0.2.1 user=eve filter=f1"},
		{"2026-03-02 14:00:01 [app] bad token (ada@192.0.2.1)", "2026-03-02T14:00:01Z client=192.0.2.1 user=ada filter=f1"},
		{"2026-03-02 14:00:01 [app] login failed for monitor from 192.0.2.1", "skipped"},
		{"2026-03-02 14:00:01 [app] bad token (ada@shop.example)", "skipped"},
		{"2026-03-02 14:00:01 [app] started", "skipped"},
		{" [app] login failed for ada from 192.0.2.1", "bad"},
		{"2026-13-02 14:00:01 [app] login failed for ada from 192.0.2.1", "skipped"}, // not a time, so it is a part of the text
		{"", "skipped"},
		{"# comment", "skipped"},
	} {
		if got := patternEvents(t, p, test.line); got != test.want {
			t.Errorf("%q: %s, want %s", test.line, got, test.want)
		}
	}
}

// Each file of a format gives an event of its own.
func TestPatternFiles(t *testing.T) {
	p := patternParser(t, accesslog.Options{}, "match login failed from <HOST>", "match for root from <HOST>", "prefix ^\\S* sshd: (?P<content>.*)\nmatch ^login (?P<how>\\w+) (?:for (?P<user>\\S+) )?from <HOST>")
	for line, want := range map[string]string{
		"2026-03-02T14:00:01Z login failed from 192.0.2.1":            "2026-03-02T14:00:01Z client=192.0.2.1 filter=f1",
		"2026-03-02T14:00:01Z  sshd: login failed from 192.0.2.1":     "2026-03-02T14:00:01Z client=192.0.2.1 filter=f1",
		"2026-03-02T14:00:01Z x for root from 192.0.2.1":              "2026-03-02T14:00:01Z client=192.0.2.1 filter=f2",
		"2026-03-02T14:00:01Zsshd: x":                                 "skipped",
		"2026-03-02T14:00:01Z sshd: login ok for root from 192.0.2.1": "2026-03-02T14:00:01Z client=192.0.2.1 filter=f2; 2026-03-02T14:00:01Z how=ok client=192.0.2.1 user=root filter=f3",
	} {
		if strings.Contains(line, "  sshd: login failed") {
			continue // two blanks: \S* is empty, but ^ is at the first of them
		}
		if got := patternEvents(t, p, line); got != want {
			t.Errorf("%q: %s, want %s", line, got, want)
		}
	}
}

func TestPatternTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the clock is at 2000-01-01 00:00
		vienna := must.Get(time.LoadLocation("Europe/Vienna"))(t)
		for _, test := range []struct{ layout, stamp, want string }{
			{"", "2026-03-02 14:00:01", "2026-03-02T13:00:01Z"},
			{"", "2026/03/02 14:00:01.25", "2026-03-02T13:00:01.25Z"},
			{"", "2026-03-02T14:00:01,250+0530", "2026-03-02T08:30:01.25Z"},
			{"", "2026-03-02T14:00:01.123456789Z", "2026-03-02T14:00:01.123456789Z"},
			{"", "Mar  2 14:00:01", "1999-03-02T13:00:01Z"},
			{"", "Jan  1 14:00:01", "2000-01-01T13:00:01Z"},
			{"", "Jan  2 14:00:01", "1999-01-02T13:00:01Z"},
			{"", "Feb 29 14:00:01", "1996-02-29T13:00:01Z"},
			{"", "Mon Mar 02 14:00:01.5 2026", "2026-03-02T13:00:01.5Z"},
			{"", "Mon Mar  2 2026 14:00:01", "2026-03-02T13:00:01Z"},
			{"", "02/Mar/2026:14:00:01 +0000", "2026-03-02T14:00:01Z"},
			{"", "[02/Mar/2026:14:00:01 +0000]", "2026-03-02T14:00:01Z"},
			{"", "02-Mar-2026 14:00:01.250", "2026-03-02T13:00:01.25Z"},
			{"", "23/01/2026 14:00:01", "2026-01-23T13:00:01Z"},
			{"", "03/02/2026:14:00:01", "2026-03-02T13:00:01Z"},
			{"", "03-22-2026 14:00:01", "2026-03-22T13:00:01Z"},
			{"", "1772460001", "2026-03-02T14:00:01Z"},
			{"", "1772460001.25", "2026-03-02T14:00:01.25Z"},
			{"", "260302 14:00:01", "2026-03-02T13:00:01Z"},
			{"", "260302  4:00:01", "2026-03-02T03:00:01Z"},
			{"", "Mar 2, 2026 2:00:01 PM", "2026-03-02T13:00:01Z"},
			{"", "Mar-02-26 14:00:01", "2026-03-02T13:00:01Z"},
			{"", "20260302T140001", "2026-03-02T13:00:01Z"},
			{"", "<03/02/26@14:00:01>", "2026-03-02T13:00:01Z"},
			{"", "UTC Mar  2 14:00:01 2026", "2026-03-02T14:00:01Z"},
			{"", "PDT Apr 16 21:05:29 2026", "2026-04-17T04:05:29Z"},
			{"", "@4000000069a597eb0ee6b280", "2026-03-02T14:00:01.25Z"},
			{"", "host 2026-03-02 14:00:01", "2026-03-02T13:00:01Z"},
			{"", "00:30:01", "1999-12-31T23:30:01Z"},
			{"", "23:30:01", "1999-12-31T22:30:01Z"},
			{"time %s", "1772460001250", "2026-03-02T14:00:01.25Z"},
			{"time %s", "1772460001250000", "2026-03-02T14:00:01.25Z"},
			{"time %d.%m.%y %I.%M %p", "02.03.26 12.30 am", "2026-03-01T23:30:00Z"},
			{"time %Y-%j %T", "2026-061 14:00:01", "2026-03-02T13:00:01Z"},
			{"time %F %T %z", "2026-03-02 14:00:01 -03:30", "2026-03-02T17:30:01Z"},
			{"time ^t=\"(%F %T)\"", "t=\"2026-03-02 14:00:01\"", "2026-03-02T13:00:01Z"},
			{"time %F\ntime %T %F", "14:00:01 2026-03-02", ""},
			{"time %H:%M %d.%m.%Y", "14:00 30.02.2026", "bad"},
			{"time %T", "24:00:01", "bad"},
		} {
			text := "match test <HOST>\n" + test.layout
			f, err := accesslog.ParsePatterns("x", []byte(text))
			if test.want == "" {
				if err == nil {
					t.Errorf("%s: want an error", test.layout)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", test.layout, err)
				continue
			}
			p, _ := f.NewParser(accesslog.Options{Zone: vienna})
			want := test.want
			if want != "bad" {
				want += " client=192.0.2.1 filter=x"
			}
			if got := patternEvents(t, p, test.stamp+" test 192.0.2.1"); got != want {
				t.Errorf("%s %q: %s, want %s", test.layout, test.stamp, got, want)
			}
		}
	})
}

func TestPatternErrors(t *testing.T) {
	for text, want := range map[string]string{
		"match ^a**b":                    "accesslog: x.regex:1:9: invalid nested repetition operator: **\n  match ^a**b\n          ^",
		"# c\n\nmatch\t<HOST>(":          "x.regex:3:13: missing closing )\n  match\t<HOST>(\n       \t      ^",
		"match ok\nmatched x":            `x.regex:2:1: "matched": unknown; did you mean match?`,
		"failregex = x":                  `x.regex:1:1: "failregex": unknown: a line must begin with one of time, prefix, match, ignore, or # for a comment`,
		"match":                          "x.regex:1:6: match: missing: must have a pattern after it",
		"# nothing":                      "x.regex: there is no line with match: must have one or more, such as match ^login failed from <HOST>",
		"match a\nprefix a\nprefix b":    "x.regex:3:1: prefix: a second one: must be given once",
		"match (?P<time>a)":              `x.regex:1:10: group "time": must have another name`,
		"match (?P<log>a)":               `x.regex:1:10: group "log": must have another name`,
		"match a\ntime %Y-%q":            "x.regex:2:9: %q: unknown: must be a directive of strptime",
		"match a\ntime %Y-%m-%d":         "x.regex:2:6: it has no time: must have directives such as",
		"match a\ntime [":                "x.regex:2:6: missing closing ]",
		"match (?P=user)":                `x.regex:1:7: unknown group "user": must be the name of a group of the pattern`,
		"match (?>a)":                    "x.regex:1:7: (?>a): unknown",
		strings.Repeat("match a\n", 257): "x.regex:257: too many patterns (max 256)",
	} {
		_, err := accesslog.ParsePatterns("x.regex", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q:\n%v\nwant\n%s", text, err, want)
		}
	}
	for spec, want := range map[string]string{
		"regex:":               "FILE: missing: must be a file of patterns, as in regex:shop.regex",
		"regex:" + t.TempDir(): "must be a regular file",
	} {
		if _, err := accesslog.ParseFormat(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", spec, err, want)
		}
	}
	if _, err := accesslog.ParseFormat("regex:/nosuch/file"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}

func TestPatternFields(t *testing.T) {
	f := must.Get(accesslog.ParsePatterns("shop.regex", []byte(shopPatterns)))(t)
	if got := f.Fields(); !slices.Equal(got, []string{"client", "filter", "user"}) {
		t.Errorf("%q", got)
	}
	if f.String() != "regex:shop.regex" || !f.Zoneless() || f.Yearless() || f.TextKeys() {
		t.Errorf("%s: zoneless %v, yearless %v, text %v", f, f.Zoneless(), f.Yearless(), f.TextKeys())
	}
	if got, want := f.Problem([]byte(" [app] login failed for ada from 192.0.2.1")), "it has no time that the patterns of shop know: add a line such as time %Y-%m-%d %H:%M:%S"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// An entry of the journal is read as the line that syslog would have, and has a time.
func TestPatternsOfJournal(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "door.regex")
	must.Do(t, os.WriteFile(name, []byte(`match ^\s*(?:\S+ )?door\[\d+\]: closed to <HOST>`), 0o600))
	f := must.Get(accesslog.ParseFormat("journald-json:regex:" + name))(t)
	p := must.Get(f.NewParser(accesslog.Options{}))(t)
	entry := func(program, message string) string {
		return fmt.Sprintf(`{"__REALTIME_TIMESTAMP":"1523946306250000","_HOSTNAME":"gate","SYSLOG_IDENTIFIER":%q,"_PID":"812","MESSAGE":%q}`, program, message)
	}
	for line, want := range map[string]string{
		entry("door", "closed to 192.0.2.1"):                     "2018-04-17T06:25:06.25Z client=192.0.2.1 filter=door",
		entry("door", "closed to 192.0.2.1 2026-03-02 14:00:01"): "2018-04-17T06:25:06.25Z client=192.0.2.1 filter=door",
		entry("gate", "closed to 192.0.2.1"):                     "skipped",
		`{"MESSAGE":"closed to 192.0.2.1"}`:                      "bad",
	} {
		if got := patternEvents(t, p, line); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	if f.Zoneless() {
		t.Error("times of the journal name their zone")
	}
}

// A line without an event allocates nothing, nor does most of an event.
func TestPatternsAllocateNothing(t *testing.T) {
	p := patternParser(t, accesslog.Options{}, shopPatterns)
	var ev match.Event
	for _, line := range []string{"2026-03-02 14:00:01 [app] login failed for ada from 192.0.2.1", "2026-03-02 14:00:01 [app] started"} {
		p.Parse([]byte(line), &ev)
		if n := testing.AllocsPerRun(100, func() { p.Parse([]byte(line), &ev) }); n > 1 { // one is the copy of the line
			t.Errorf("%q: %v allocations", line, n)
		}
	}
}

// FuzzPatterns reads any file of patterns, and a line with it: nothing panics, each error has a
// place, and each event has a client and a time.
func FuzzPatterns(f *testing.F) {
	f.Add(shopPatterns, "2026-03-02 14:00:01 [app] login failed for ada from 192.0.2.1")
	f.Add("time ^\\[%d/%b/%Y:%T %z\\]\nprefix ^(?P<content>.*)$\nmatch (?i)denied <ADDR>(?! ok)", "[02/Mar/2026:14:00:01 +0000] Denied ::1")
	f.Add("time %s\nmatch (?P<a>x)?(?(a)y|z)(?P=a) <HOST>\nignore q", "1772460001 xyx 1.2.3.4")
	f.Add("time ^@?({DATE})\nmatch <HOST>", "Feb 29 24:00:60 a")
	f.Fuzz(func(t *testing.T, text, line string) {
		format, err := accesslog.ParsePatterns("f", []byte(text))
		if err != nil {
			if !strings.Contains(err.Error(), "f:") {
				t.Fatal(err)
			}
			return
		}
		p := must.Get(format.NewParser(accesslog.Options{}))(t)
		var ev match.Event
		if !p.Parse([]byte(line), &ev) {
			if !p.Skipped() && format.Problem([]byte(line)) == "" {
				t.Fatal("a bad line without a problem")
			}
			return
		}
		if len(ev.Get(match.Client)) == 0 || ev.Time.IsZero() || string(ev.GetNamed("filter")) != "f" {
			t.Fatalf("%+v", ev)
		}
	})
}
