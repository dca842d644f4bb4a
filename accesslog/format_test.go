package accesslog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

func TestFormats(t *testing.T) {
	yearless := map[string]bool{"messages": true, "text": true, "text-dmy": true, "text-mdy": true}
	text := map[string]bool{"json-nginx": true, "json-zeek-dns": true, "json:time=t@s": true, "caddy": true, "traefik-json": true, "envoy-json": true, "journald-json": true, "json": true}
	for _, name := range append(accesslog.Formats(), "json:time=t@s", "csv:time=1@s", "tsv:time=1@s") {
		f, err := accesslog.ParseFormat(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f.String() != name || f.Yearless() != yearless[name] || f.TextKeys() != text[name] {
			t.Errorf("%s: String %q, Yearless %v, TextKeys %v", name, f, f.Yearless(), f.TextKeys())
		}
		for _, year := range []int{-1, 10000} {
			if _, err := f.NewParser(accesslog.Options{Year: year}); err == nil || !strings.Contains(err.Error(), "Options.Year is") {
				t.Errorf("%s: the error of year %d is %v", name, year, err)
			}
		}
	}
}

func TestZeroFormatReadsNothing(t *testing.T) {
	var f accesslog.Format
	p := must.Get(f.NewParser(accesslog.Options{}))(t)
	for _, p := range []*accesslog.Parser{p, new(accesslog.Parser)} {
		var ev match.Event
		if p.Parse([]byte(clfStart+`"-" 200 1`), &ev) || p.Next(&ev) {
			t.Error("a line is read without a format")
		}
	}
}

// Each error must name the part that is wrong and what it must be.
func TestParseFormatErrors(t *testing.T) {
	for _, tt := range []struct{ text, wants string }{
		{"", `"" is unknown; use clf, clf-vhost`},
		{"CLF", `format "CLF" is unknown; did you mean clf?`},
		{"combined", `format "combined" is unknown; did you mean clf?`},
		{"goaccess", "or a json:, csv:, tsv:, nginx:, apache: or regex: spec"},
		{"xml:time=1", `"xml:time=1" is unknown`},
		{"json:", "is not of the form FIELD=PLACE"},
		{"json:client=a", "there is no time; add time=PLACE@UNIT"},
		{"json:time=a", `"time": it has no unit; write time=PLACE@UNIT, UNIT being one of s, ms, us, ns, rfc3339, clf`},
		{"json:time=@timestamp", "it has no unit"},
		{"json:time=a@sec", `unit "sec" is unknown; use one of s, ms`},
		{"json:time=a@s,", `"" is not of the form`},
		{"json:time=a@s,client", `"client" is not of the form`},
		{"json:time=a@s, client=b", `" client=b" is not of the form`},
		{"json:time=a@s,client=b,client=c", `"client" is given twice`},
		{"json:time=a@s,time=b@s", `"time" is given twice`},
		{"json:time=a@s,log=b", `"log": must have another name`},
		{"csv:time=1@s,format=2", `"format": must have another name`},
		{"json:time=a@s,client=", `"client": path "" has an empty key`},
		{"json:time=a@s,client=a..b", `path "a..b" has an empty key`},
		{`json:time=a@s,client=a\`, "ends in a backslash"},
		{"json:time=a@s,client=a[]", `"client": "a[]" is a list; only object may be one`},
		{"json:time=a[]@s", `"a[]" is a list`},
		{"json:time=a@s,object=[]", "empty key"},
		{"json:time=a@s,client=b@path", `"@path" is not allowed here; only time and object have an @`},
		{"json:time=a@s,object=b@paht", `"@paht" is unknown; use @path, @request or nothing`},
		{"json:time=a@s,client=a.b.c.d.e.f.g", "has 7 keys; at most 6"},
		{"csv:time=0@s", `column "0" is none; columns are numbers from 1 to 65535`},
		{"csv:time=65536@s", "is none"},
		{"csv:time=ts@s", `"time": column "ts" is none`},
		{"csv:time=-1@s", "is none"},
		{"tsv:time=1@s,object=2[]", `column "2[]" is none`},
		{"csv:time=1@s,client=+1", "is none"},
	} {
		_, err := accesslog.ParseFormat(tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.wants) || !strings.HasPrefix(err.Error(), "accesslog: format ") {
			t.Errorf("ParseFormat(%q): %v, want %q in it", tt.text, err, tt.wants)
		}
	}
}

func ExampleParseFormat() {
	_, err := accesslog.ParseFormat("csv:time=1@sec,client=3")
	fmt.Println(err)
	// Output:
	// accesslog: format "csv:time=1@sec,client=3": field "time": unit "sec" is unknown; use one of s, ms, us, ns, rfc3339, clf
}

// A program's own messages are read by regular expressions, here from memory; ParseFormat reads a file of them.
func ExampleParsePatterns() {
	format, err := accesslog.ParsePatterns("shop.regex", []byte(`
time   %Y-%m-%d %H:%M:%S
match  ^ login failed for (?P<user>\S+) from <HOST>$
`))
	if err != nil {
		fmt.Println(err) // with line and column
		return
	}
	parser, err := format.NewParser(accesslog.Options{Zone: time.UTC})
	if err != nil {
		fmt.Println(err)
		return
	}
	var e match.Event
	if parser.Parse([]byte("2026-01-02 12:00:00 login failed for ada from 192.0.2.1"), &e) {
		fmt.Printf("%s %s %s\n", e.Time.UTC().Format(time.TimeOnly), e.Get(match.User), e.Get(match.Client))
	}
	// Output: 12:00:00 ada 192.0.2.1
}
