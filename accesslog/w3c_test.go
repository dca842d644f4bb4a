package accesslog_test

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// A directive names the columns of the lines after it, also in the middle of a log.
func TestW3CColumnsChange(t *testing.T) {
	const log = `#Software: x
#Fields: date time c-ip cs-uri-stem sc-status
2018-04-17 06:25:06 192.0.2.1 /a 200
#Fields: time cs-uri-stem c-ip date cs(User-Agent)
06:25:07.5 /b 192.0.2.2 2018-04-17 "a ""b"" c"
06:25:08 /b 192.0.2.2
06:25:08 /b 192.0.2.2 2018-04-17 x y

#Fields: c-ip cs-uri-stem
192.0.2.3 /c
`
	f, _ := accesslog.ParseFormat("W3C")
	var got []string
	lines := readLog(t, []byte(log), f, accesslog.Options{}, func(ev *match.Event) { got = append(got, listed(f, ev)) })
	want := []string{
		"2018-04-17T06:25:06Z client=192.0.2.1 object=/a path=/a status=200",
		`2018-04-17T06:25:07.5Z agent=a "b" c client=192.0.2.2 object=/b path=/b`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || lines != (lineCounts{2, 5, 3}) {
		t.Errorf("lines %+v, events\n%s\nwant\n%s", lines, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// After has the columns of the last directive; Reset restores the columns of the format.
func TestAfter(t *testing.T) {
	const first, second = "#Fields: date time c-ip\n", "#Fields: c-ip date time\n"
	w3c, _ := accesslog.ParseFormat("w3c")
	clf, _ := accesslog.ParseFormat("clf")
	for _, c := range []struct {
		lines     string
		one, two  bool // whether a line of the first and of the second directive is good after lines
		unchanged bool
	}{
		{first, true, false, false},
		{first + "x\n" + second + "y\n", false, true, false},
		{"\ufeff" + second + first, true, false, false},
		{"x " + first, false, false, true},
		{"#Version: 1.0\n", false, false, true},
		{"#Fields: x-edge-location date time c-ip\n", false, false, true},
	} {
		f := w3c.After([]byte(c.lines))
		p := must.Get(f.NewParser(accesslog.Options{}))(t)
		for range 2 {
			var ev match.Event
			if one, two := p.Parse([]byte("2018-04-17 06:25:06 192.0.2.1"), &ev), p.Parse([]byte("192.0.2.1 2018-04-17 06:25:06"), &ev); one != c.one || two != c.two {
				t.Errorf("after %q: good are %v, %v; want %v, %v", c.lines, one, two, c.one, c.two)
			}
			p.Parse([]byte("#Fields: time date"), &ev)
			p.Reset()
		}
		if (f == w3c) != c.unchanged {
			t.Errorf("after %q: unchanged: %v", c.lines, f == w3c)
		}
		if clf.After([]byte(c.lines)) != clf {
			t.Errorf("clf after %q is another format", c.lines)
		}
	}
}
