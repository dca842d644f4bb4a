package accesslog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestFields lists the fields of the seed lines of each format: no unnamed one.
func TestFields(t *testing.T) {
	all := append(slices.Clone(moreFields), "proto", "spt")
	for format, lines := range seedLines {
		f := must.Get(accesslog.ParseFormat(format))(t)
		seen := make(map[string]bool)
		p := differentialParser(t, format)
		for _, line := range lines {
			var ev match.Event
			if p.Parse([]byte(line), &ev) {
				for _, name := range all {
					if ev.GetNamed(name) != nil {
						seen[name] = true
					}
				}
			}
		}
		for _, name := range f.Fields() {
			if !strings.Contains(format, "=") && !strings.Contains(format, ":") && intake.NeedsSource(name) {
				t.Errorf("%s: rules must declare the field %s, which a named format has", format, name)
			}
		}
		for name := range seen {
			if !slices.Contains(f.Fields(), name) {
				t.Errorf("%s: an event has the field %s, which is not among %v", format, name, f.Fields())
			}
		}
		for _, name := range f.Fields() {
			if !seen[name] && (strings.HasPrefix(format, "syslog") || format == "clf" || format == "json-zeek-dns") {
				t.Errorf("%s: no event has the field %s", format, name)
			}
		}
	}
	for spec, want := range map[string]string{
		"json:time=t@s,client=c,object=o@request,status=s": "client method object path protocol query status",
		"csv:time=1@s,object=2@path,zone=3":                "object path query zone",
		"tsv:time=1@s":                                     "",
	} {
		f := must.Get(accesslog.ParseFormat(spec))(t)
		if got := strings.Join(f.Fields(), " "); got != want {
			t.Errorf("%s: fields %q, want %q", spec, got, want)
		}
	}
}

// TestProblem has bad lines, and the sentence about each.
func TestProblem(t *testing.T) {
	for _, c := range []struct{ format, line, want string }{
		{"json:time=tss@s", `{"ts":1,"ip":"a"}`, `it has no key "tss" for the field time; did you mean ts?`},
		{"json:time=ts@s,client=peer.op", `{"ts":1,"peer":{"ip":"a"}}`, `it has no key "peer.op" for the field client; did you mean peer.ip?`},
		{"json:time=when@s", `{"a":1,"b":{"c":2}}`, `it has no key "when" for the field time; its keys are a, b, b.c`},
		{"json:time=ts@s", `{"ts":"yesterday"}`, `the value of ts is not a time of the unit, or a field that must be there is empty`},
		{"json:time=ts@s", `not json`, `it is not a JSON object`},
		{"csv:time=3@s,client=1", `a,1`, `it has 2 columns, and time is column 3`},
		{"csv:time=2@s,client=1", `a,yesterday`, `its column 2, "yesterday", is not a time of the unit`},
		{"tsv:time=2@s,client=1", "\t1", `a field that must be there is empty`},
		{"clf", "x", ""},
	} {
		f := must.Get(accesslog.ParseFormat(c.format))(t)
		if got := f.Problem([]byte(c.line)); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.format, c.line, got, c.want)
		}
	}
}
