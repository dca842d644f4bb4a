package accesslog_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// prefixLines are what programs put in front of a line.
var prefixLines = map[string][]string{
	"syslog": {
		"Apr 17 06:25:06 gate nginx: ", "<190>Apr 17 06:25:06 gate nginx[812]: ", "2018-04-17T06:25:06.25+02:00 gate nginx: ",
		`<190>1 2018-04-17T06:25:06Z gate nginx 812 access [a b="]"] `, "<190>1 2018-04-17T06:25:06Z gate nginx - - - ",
	},
	"compose":     {"web-1  | ", "web_1| "},
	"kubectl":     {"[pod/web-1/nginx] "},
	"stern":       {"web-5f7c-x2 nginx "},
	"grep":        {"access.log:", "/var/log/nginx/access.log.1:812:"},
	"docker-json": {"2018-04-17T06:25:06.1Z stdout F "},
}

// The lines of each format are read behind each prefix, and detected there.
func TestPrefixes(t *testing.T) {
	for outer, prefixes := range prefixLines {
		for _, prefix := range prefixes {
			for _, n := range accesslog.NamedFormats() {
				line := exampleLine0(n.Name)
				if slices.Contains(strings.Fields(wrapping+" w3c cloudfront journald-json"), n.Name) || outer == "syslog" && strings.Contains("haproxy messages text-dmy text-mdy", n.Name) {
					continue // these read the head of syslog themselves
				}
				alone := eventsOf(newParser(t, n.Name, accesslog.Options{Year: 2018}), line)
				f := must.Get(accesslog.ParseFormat(outer + ":" + n.Name))(t)
				p, _ := f.NewParser(accesslog.Options{Year: 2018})
				if got := eventsOf(p, prefix+line); !slices.Equal(got, alone) || len(got) == 0 {
					t.Errorf("%s%s as %s: %q, want %q", prefix, line, f, got, alone)
				}
				if got, _ := accesslog.Detect([]byte(prefix + line + "\n")); got.String() != f.String() && !readsAs(t, got, prefix+line, alone) {
					t.Errorf("%s%s: detected %q, want %q", prefix, line, got, f)
				}
			}
		}
	}
}

// readsAs reports whether a format reads a line as the events that are wanted.
func readsAs(t *testing.T, f accesslog.Format, line string, want []string) bool {
	p := must.Get(f.NewParser(accesslog.Options{Year: 2018}))(t)
	return slices.Equal(eventsOf(p, line), want)
}

// A line behind any other text stays bad.
func TestNoPrefix(t *testing.T) {
	line := exampleLine0("clf")
	for format, prefixes := range map[string][]string{
		"syslog": {
			"", "gate nginx: ", "Apr 17 06:25:06 gate nginx ", "Apr 31 06:25:06 gate nginx: ", "<1900>Apr 17 06:25:06 gate nginx: ", "<190>1 now gate nginx - - - ",
			`<190>1 2018-04-17T06:25:06Z gate nginx 812 access [a b="] `, "<190>1 2018-04-17T06:25:06Z gate", "<>Apr 17 06:25:06 gate nginx: ",
		},
		"compose": {"", "| ", "web 1 | ", "web-1 "},
		"kubectl": {"", "[web-1] ", "[pod/web-1/nginx]"},
		"stern":   {"web-1  nginx ", "web-1 | ", "-web nginx "},
		"grep":    {"access log:", ":"},
	} {
		for _, prefix := range prefixes {
			var ev match.Event
			if p := newParser(t, format+":clf", accesslog.Options{}); p.Parse([]byte(prefix+line), &ev) && string(ev.Get(match.Client)) == "192.0.2.1" {
				t.Errorf("%s reads %s%s", format, prefix, line)
			}
		}
	}
}

// The time of a container's line is used for a message without one.
func TestMessagesInContainers(t *testing.T) {
	const message = "login authenticator failed for (x) [203.0.113.9]: 535 Incorrect authentication data"
	for line, want := range map[string]string{
		"2018-04-17T06:25:06.25Z stdout F " + message:                                                            "2018-04-17T06:25:06.25Z",
		"2018-04-17T06:25:06.25Z stdout F 2019-04-17 06:25:06 " + message:                                        "2019-04-17T06:25:06Z",
		`{"log":"` + message + `\n","stream":"stderr","time":"2018-04-17T06:25:06.25Z"}`:                         "2018-04-17T06:25:06.25Z",
		`{"log":"` + strings.Replace(message, "x", `\"`, 1) + `\n","stream":"stderr","time":"\u00322018-04-17"}`: "",
		"yesterday stdout F " + message:                                                                          "",
	} {
		var ev match.Event
		p := newParser(t, "docker-json:messages", accesslog.Options{Year: 2018})
		got := ""
		if p.Parse([]byte(line), &ev) {
			got = ev.Time.Format("2006-01-02T15:04:05.99Z")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
		if f, _ := accesslog.Detect([]byte(line + "\n")); want != "" && f.String() != "docker-json:messages" {
			t.Errorf("%s: detected as %q", line, f)
		}
	}
}

// A log behind a prefix may have times without a year.
func TestPrefixedYears(t *testing.T) {
	f, err := accesslog.ParseFormat("grep:messages")
	if err != nil || !f.Yearless() || !f.Zoneless() {
		t.Fatalf("%v: yearless %v, zoneless %v", err, f.Yearless(), f.Zoneless())
	}
	p, _ := f.NewParser(accesslog.Options{})
	var ev match.Event
	for _, stamp := range []string{"Dec 31 23:59:59", "Jan  1 00:00:00"} {
		if !p.Parse([]byte("auth.log:"+string(sshdLine(stamp))), &ev) || !p.Yearless() || !p.Zoneless() {
			t.Fatalf("%s: yearless %v, zoneless %v", stamp, p.Yearless(), p.Zoneless())
		}
	}
	if first, last, ok := p.Dated(); !ok || last.Sub(first).Seconds() != 1 {
		t.Errorf("dated %v to %v, %v", first, last, ok)
	}
	p.Reset()
	if _, _, ok := p.Dated(); ok {
		t.Error("dated after Reset")
	}
}

// FuzzPrefixes must read a line behind a prefix as the line alone.
func FuzzPrefixes(f *testing.F) {
	f.Add(exampleLine0("clf"))
	f.Add("x | y: [pod/a] \"z")
	alone := newParser(f, "clf", accesslog.Options{})
	parsers := map[string]*accesslog.Parser{}
	for outer := range prefixLines {
		parsers[outer] = newParser(f, outer+":clf", accesslog.Options{})
	}
	f.Fuzz(func(t *testing.T, line string) {
		if len(line) > 4000 || line != strings.TrimLeft(line, " ") || strings.HasPrefix(line, "\ufeff") || strings.HasPrefix(line, "[ID ") || line == "" || line[0] == ':' || isDigitByte(line[0]) {
			return
		}
		want := eventsOf(alone, line)
		for outer, prefixes := range prefixLines {
			for _, prefix := range prefixes {
				if got := eventsOf(parsers[outer], prefix+line); !slices.Equal(got, want) {
					t.Fatalf("%s: %q: %q, want %q", outer, prefix+line, got, want)
				}
			}
		}
	})
}

func isDigitByte(c byte) bool { return '0' <= c && c <= '9' }
