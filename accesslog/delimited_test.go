package accesslog_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

func TestCSV(t *testing.T) {
	checkTable(t, "csv:time=2@s,client=1,object=4@path,x=3,y=3", accesslog.Options{}, true,
		append(eventfield.WellKnown(), "x", "y"), []lineTest{
			{"plain", "c,1.5,v,/a?b", "1970-01-01T00:00:01.5Z", []string{"client=c", "x=v", "y=v", "object=/a", "path=/a", "query=b"}},
			{"more columns", `c,1,v,/a,"`, "", []string{"client=c", "x=v", "y=v", "object=/a", "path=/a"}},
			{"quoted", `"c,d","1","v ""w""","/a"`, "", []string{"client=c,d", `x=v "w"`, `y=v "w"`, "object=/a", "path=/a"}},
			{"quotes only", `"""",1,"""""",`, "", []string{`client="`, `x=""`, `y=""`}},
			{"empty quoted", `"",1,v,/a`, "", bad},
			{"quote inside", `c"d",1,v,`, "", []string{`client=c"d"`, "x=v", "y=v"}},
			{"empty object", "c,1,v,", "", []string{"client=c", "x=v", "y=v"}},
			{"empty value", "c,1,,", "", []string{"client=c", "x=", "y="}},
			{"path of nothing", "c,1,v,?b", "", []string{"client=c", "x=v", "y=v", "object=", "path=", "query=b"}},
			{"empty client", ",1,v,/a", "", bad},
			{"too few columns", "c,1,v", "", bad},
			{"header", "client,time,x,object", "", bad},
			{"open quote", `"c,1,v,/a`, "", bad},
			{"text behind a quote", `"c"d,1,v,/a`, "", bad},
			{"blank behind a quote", `"c" ,1,v,/a`, "", bad},
			{"blank before the time", "c, 1,v,/a", "", bad},
			{"empty", "", "", bad},
		})
}

func TestTSV(t *testing.T) {
	checkTable(t, "tsv:time=2@rfc3339,client=1,object=3@request", accesslog.Options{}, true, eventfield.WellKnown(), []lineTest{
		{
			"plain", "c\t2018-03-24T17:15:20.5+01:00\tGET /a HTTP/1.0", "2018-03-24T16:15:20.5Z",
			[]string{"client=c", "method=GET", "object=/a", "path=/a", "protocol=HTTP/1.0"},
		},
		{"no request", "c\t2018-03-24T17:15:20Z\tx", "", []string{"client=c"}},
		{"quotes are bytes", "\"c\t2018-03-24T17:15:20Z\t", "", []string{`client="c`}},
		{"commas are bytes", "c,d\t2018-03-24T17:15:20Z\t", "", []string{"client=c,d"}},
		{"spaces do not cut", "c 2018-03-24T17:15:20Z x", "", bad},
		{"number", "c\t5\tx", "", bad},
	})
}

func TestUnits(t *testing.T) {
	for _, tt := range []struct{ unit, text, want string }{
		{"s", "1521911720.865716", "2018-03-24T17:15:20.865716Z"},
		{"ms", "1521911720865.716", "2018-03-24T17:15:20.865716Z"},
		{"us", "1521911720865716", "2018-03-24T17:15:20.865716Z"},
		{"ns", "1521911720865716123", "2018-03-24T17:15:20.865716123Z"},
		{"ns", "1521911720865716123.9", "2018-03-24T17:15:20.865716123Z"},
		{"s", "1.521911720865716123e9", "2018-03-24T17:15:20.865716123Z"},
		{"ms", "-1", "1969-12-31T23:59:59.999Z"},
		{"rfc3339", "2018-03-24T17:15:20.865716123-01:30", "2018-03-24T18:45:20.865716123Z"},
		{"clf", "24/Mar/2018:17:15:20 +0100", "2018-03-24T16:15:20Z"},
		{"clf", "24/Mar/2018:17:15:20 +0100 ", ""},
		{"clf", "24/Mar/2018", ""},
		{"s", "253402300800", ""},
		{"s", "ten", ""},
	} {
		for _, spec := range []struct{ format, line string }{
			{"csv:time=1@", tt.text},
			{"tsv:time=1@", tt.text},
			{"json:time=t@", fmt.Sprintf(`{"t":%q}`, tt.text)},
			{"json:time=t@", fmt.Sprintf(`{"t":%s}`, tt.text)},
		} {
			var ev match.Event
			got := ""
			if newParser(t, spec.format+tt.unit, accesslog.Options{}).Parse([]byte(spec.line), &ev) {
				got = ev.Time.Format("2006-01-02T15:04:05.999999999Z07:00")
			}
			bare := strings.HasSuffix(spec.line, tt.text+"}") // only a number stands in JSON without quotes
			if got != tt.want && !(bare && got == "" && strings.ContainsAny(tt.text, ":t/")) {
				t.Errorf("%s%s: %q is %q, want %q", spec.format, tt.unit, spec.line, got, tt.want)
			}
		}
	}
}

// Records that encoding/csv writes are read as they were.
func TestCSVAgreesWithEncodingCSV(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	p := newParser(t, "csv:time=3@s,a=1,b=2,c=4,d=5", accesslog.Options{})
	for range 20_000 {
		record := make([]string, 5)
		for i := range record {
			for range rng.IntN(6) {
				record[i] += string(`a",; ä'`[rng.IntN(8)])
			}
		}
		record[2] = fmt.Sprint(rng.Uint32())
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		must.Do(t, w.Write(record))
		w.Flush()
		line, _, _ := accesslog.CutLine(b.Bytes())
		var ev match.Event
		if !p.Parse(line, &ev) {
			t.Fatalf("bad: %q", line)
		}
		got := []string{string(ev.GetNamed("a")), string(ev.GetNamed("b")), fmt.Sprint(ev.Time.Unix()), string(ev.GetNamed("c")), string(ev.GetNamed("d"))}
		for i := range got {
			if got[i] != record[i] {
				t.Fatalf("column %d is %q, want %q: %s", i+1, got[i], record[i], line)
			}
		}
	}
}
