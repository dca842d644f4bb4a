package accesslog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// eventsOf returns the client and the object of each event in a line, nil if it is bad.
func eventsOf(p *accesslog.Parser, line string) []string {
	var ev match.Event
	var all []string
	for ok := p.Parse([]byte(line), &ev); ok; ok = p.Next(&ev) {
		all = append(all, fmt.Sprintf("%s>%s", ev.Get(match.Client), ev.Get(match.Object)))
	}
	return all
}

func TestListsGiveOneEventPerElement(t *testing.T) {
	p := newParser(t, "json:time=t@ms,client=c,object=h[]", accesslog.Options{})
	for _, tt := range []struct {
		line string
		want []string
	}{
		{`{"t":1,"c":"x","h":[1,2,3]}`, []string{"x>1", ">2", ">3"}},
		{`{"h":[1,"two",-3.50,"\u0066our"],"c":"x","t":1}`, []string{"x>1", ">two", ">-3.50", ">four"}},
		{`{"t":1,"c":"x","h":[]}`, []string{"x>"}},
		{`{"t":1,"c":"x","h":[ ]}`, []string{"x>"}},
		{`{"t":1,"c":"x","h":[null,true,{"a":[1]},[2],""]}`, []string{"x>"}},
		{`{"t":1,"c":"x","h":[null, 1 ,{"a":[9]} , 2,[2]]}`, []string{"x>1", ">2"}},
		{`{"t":1,"c":"x","h":[9],"h":[1]}`, []string{"x>1"}},
		{`{"t":1,"c":"x","h":1}`, nil},
		{`{"t":1,"c":"x"}`, nil},
		{`{"t":1,"h":[1]}`, nil},
	} {
		if got := eventsOf(p, tt.line); !slices.Equal(got, tt.want) {
			t.Errorf("%s gives %q, want %q", tt.line, got, tt.want)
		}
		if p.Next(new(match.Event)) {
			t.Errorf("%s: an event behind the last", tt.line)
		}
	}
}

// The fields of a line are those of all its events, except the client; the fields of an element are not those of the next.
func TestListEventsKeepTheLinesFields(t *testing.T) {
	p := newParser(t, "json:time=t@s,object=h[]@request,client=c,status=s,kind=k", accesslog.Options{})
	line := `{"t":7,"c":"x","s":200,"k":"y","h":["GET /a?b HTTP/1.1","-","PUT /c"]}`
	var ev match.Event
	var got []string
	for ok := p.Parse([]byte(line), &ev); ok; ok = p.Next(&ev) {
		got = append(got, fmt.Sprintf("%d %s %s %s|%s %s %s %s", ev.Time.Unix(), ev.Get(match.Client), ev.Get(match.Status), ev.GetNamed("kind"),
			ev.Get(match.Method), ev.Get(match.Path), ev.Get(match.Query), ev.Get(match.Protocol)))
	}
	want := []string{"7 x 200 y|GET /a b HTTP/1.1", "7  200 y|   ", "7  200 y|PUT /c  "}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// A field that is requested by name takes precedence over what @path yields.
func TestNamedFieldsBeatTheObjects(t *testing.T) {
	for _, spec := range []string{"csv:time=1@s,object=2@path,path=3", "csv:time=1@s,path=3,object=2@path"} {
		var ev match.Event
		newParser(t, spec, accesslog.Options{}).Parse([]byte("1,/a?b,/c"), &ev)
		if got := fmt.Sprintf("%s %s %s", ev.Get(match.Object), ev.Get(match.Path), ev.Get(match.Query)); got != "/a /c b" {
			t.Errorf("%s: object, path, query = %s", spec, got)
		}
	}
}

// A line of exactly MaxLine bytes is good, one more byte makes it bad, and a
// bad line leaves nothing behind, be it of months or of list elements.
func TestMaxLine(t *testing.T) {
	for format, start := range map[string]string{
		"clf":                      clfStart + `"-" 200 1 `,
		"messages":                 "May  8 00:00:52 gate kernel: [UFW BLOCK] IN= SRC=192.0.2.1 PROTO=TCP DPT=1 ",
		"json:time=t@s,object=h[]": `{"t":1,"h":["a","b"]}`,
		"csv:time=1@s":             "1,",
		"tsv:time=1@s":             "1\t",
		"json-zeek-dns":            `{"ts":"2018-03-24T17:15:20Z","id.orig_h":"203.0.113.5"}`,
	} {
		p := newParser(t, format, accesslog.Options{})
		line := start + strings.Repeat(" ", accesslog.MaxLine-len(start))
		var ev match.Event
		if !p.Parse([]byte(line), &ev) {
			t.Errorf("%s: a line of MaxLine bytes is bad", format)
		}
		p.Reset()
		if p.Parse([]byte(line+" "), &ev) || p.Next(&ev) {
			t.Errorf("%s: a line of MaxLine+1 bytes is good", format)
		}
		if _, _, dated := p.Dated(); dated {
			t.Errorf("%s: a line of MaxLine+1 bytes is dated", format)
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	for _, bench := range benchLines {
		checkNoAllocs(t, bench.format, []byte(bench.line(7, 7, rand.New(rand.NewPCG(1, 2)))))
	}
	for format, lines := range seedLines {
		for _, line := range lines {
			checkNoAllocs(t, format, []byte(line))
		}
	}
	checkNoAllocs(t, "csv:time=1@s,a=2,b=3", []byte(`1,"x ""y""","z ""w"""`))
	checkNoAllocs(t, "json:time=t@s,object=h[]", []byte(`{"\u0074":"\u0031","h":["\u0061",1,"\n"]}`))
	checkNoAllocs(t, "json:time=t@s", []byte(strings.Repeat("[", accesslog.MaxLine)))
}

func checkNoAllocs(t *testing.T, format string, line []byte) {
	t.Helper()
	p := newParser(t, format, accesslog.Options{})
	var ev match.Event
	n := testing.AllocsPerRun(100, func() { // its first run is not counted: scratch grows there
		p.Parse(line, &ev)
		for p.Next(&ev) {
		}
	})
	if n != 0 {
		t.Errorf("%s: %v allocations a line, for\n%.200q", format, n, line)
	}
}

// A lineCounts is how many lines of a log have events, are of another kind, and are bad.
type lineCounts struct{ parsed, skipped, bad int64 }

// readLog calls use for each event of a log.
func readLog(t *testing.T, log []byte, f accesslog.Format, o accesslog.Options, use func(*match.Event)) (n lineCounts) {
	t.Helper()
	p := must.Get(f.NewParser(o))(t)
	var ev match.Event
	for line := range bytes.Lines(log) {
		line, _, _ = accesslog.CutLine(line)
		ok := p.Parse(line, &ev)
		switch {
		case ok:
			n.parsed++
		case p.Skipped():
			n.skipped++
		default:
			n.bad++
		}
		for ; ok; ok = p.Next(&ev) {
			use(&ev)
		}
	}
	return n
}

func ExampleParser() {
	f, err := accesslog.ParseFormat("json:time=ts@ms,client=user.id,object=keys[]")
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := f.NewParser(accesslog.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	line := []byte(`{"ts": 1521911720865, "user": {"id": 4711}, "keys": ["a", 7]}`)
	var ev match.Event
	for ok := p.Parse(line, &ev); ok; ok = p.Next(&ev) {
		fmt.Printf("%s client=%q object=%q\n", ev.Time, ev.Get(match.Client), ev.Get(match.Object))
	}
	// Output:
	// 2018-03-24 17:15:20.865 +0000 UTC client="4711" object="a"
	// 2018-03-24 17:15:20.865 +0000 UTC client="" object="7"
}
