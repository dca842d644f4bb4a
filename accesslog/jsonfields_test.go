package accesslog_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

func TestJSONPaths(t *testing.T) {
	const spec = `json:time=t@s,a=a,b=id.orig,c=x.y.z,d=p\.q,e=\@m,status=s`
	knows := []string{"a", "b", "c", "d", "e", "status"}
	checkTable(t, spec, accesslog.Options{}, false, knows, []lineTest{
		{"plain", `{"t":1,"a":"v","s":200}`, "1970-01-01T00:00:01Z", []string{"a=v", "status=200"}},
		{"escapes in keys", `{"\u0074":1,"\u0061":"v"}`, "", []string{"a=v"}},
		{"number as it stands", `{"t":1,"a":1.50e+1}`, "", []string{"a=1.50e+1"}},
		{"booleans", `{"t":1,"a":true,"s":false}`, "", []string{"a=true", "status=false"}},
		{"no values", `{"t":1,"a":null,"s":[1],"id":{"orig":{}}}`, "", []string{}},
		{"empty text", `{"t":1,"a":""}`, "", []string{"a="}},
		{"the last key counts", `{"t":1,"a":"v","a":"w"}`, "", []string{"a=w"}},
		{"even as no value", `{"t":1,"a":"v","a":null}`, "", []string{}},
		{"nested", `{"t":1,"id":{"orig":"v"}}`, "", []string{"b=v"}},
		{"literal", `{"t":1,"id.orig":"v"}`, "", []string{"b=v"}},
		{"literal first", `{"t":1,"id.orig":"v","id":{"orig":"w"}}`, "", []string{"b=w"}},
		{"literal last", `{"t":1,"id":{"orig":"w"},"id.orig":"v"}`, "", []string{"b=v"}},
		{"literal without a value", `{"t":1,"id":{"orig":"w"},"id.orig":null}`, "", []string{}},
		{"an object without the value", `{"t":1,"id":{"orig":"v"},"id":{}}`, "", []string{"b=v"}},
		{"all ways", `{"t":1,"x":{"y.z":"3","y":{"z":"4"}},"x.y":{"z":"2"}}`, "", []string{"c=2"}},
		{"escaped dot", `{"t":1,"p.q":"v","p":{"q":"w"}}`, "", []string{"d=v"}},
		{"escaped dot begins no path", `{"t":1,"p":{"q":"w"}}`, "", []string{}},
		{"key with an at", `{"t":1,"@m":"v"}`, "", []string{"e=v"}},
		{"an object inside is not the root", `{"t":1,"z":{"a":"v","id.orig":"w"}}`, "", []string{}},
		{"blanks", "\t{ \"t\" : 1 , \"a\" : \"v\" }\r ", "", []string{"a=v"}},
		{"surrogates", `{"t":1,"a":"\ud83d\ude00\ud83d"}`, "", []string{"a=😀\xed\xa0\xbd"}},
		{"time as text", `{"t":"1.5"}`, "1970-01-01T00:00:01.5Z", []string{}},
		{"time as text with escapes", `{"t":"\u0031"}`, "1970-01-01T00:00:01Z", []string{}},
		{"no time", `{"a":"v"}`, "", bad},
		{"time of another kind", `{"t":true}`, "", bad},
		{"a list", `[{"t":1}]`, "", bad},
		{"two objects", `{"t":1}{}`, "", bad},
		{"bad elsewhere", `{"t":1,"zz":01}`, "", bad},
		{"bad UTF-8", "{\"t\":1,\"zz\":\"\xff\"}", "", bad},
		{"cut", `{"t":1,"a":"v"`, "", bad},
		{"byte order mark", "\ufeff{\"t\":1}", "", []string{}},
		{"empty", ``, "", bad},
	})
}

func TestJSONClientMustBeThere(t *testing.T) {
	checkTable(t, "json:time=t@s,client=c", accesslog.Options{}, false, eventfield.WellKnown(), []lineTest{
		{"text", `{"t":1,"c":"x"}`, "", []string{"client=x"}},
		{"number", `{"t":1,"c":7}`, "", []string{"client=7"}},
		{"empty", `{"t":1,"c":""}`, "", bad},
		{"null", `{"t":1,"c":null}`, "", bad},
		{"missing", `{"t":1}`, "", bad},
	})
}

func TestJSONNginx(t *testing.T) {
	const start = `{"remote_addr":"192.0.2.1","time_local":"17/Apr/2018:06:25:06 +0000","request":"GET /a?b HTTP/1.1"`
	base := []string{"client=192.0.2.1", "object=/a", "path=/a", "query=b", "method=GET", "protocol=HTTP/1.1"}
	with := func(more ...string) []string { return append(base[:6:6], more...) }
	checkTable(t, "json-nginx", accesslog.Options{}, false, eventfield.WellKnown(), []lineTest{
		{"bare", start + `}`, "2018-04-17T06:25:06Z", base},
		{
			"all", start + `,"status":"200","body_bytes_sent":17,"remote_user":"u","http_referer":"r","http_user_agent":"a","host":"h","server_name":"s"}`,
			"", with("status=200", "size=17", "user=u", "referer=r", "agent=a", "host=h"),
		},
		{"dashes", start + `,"remote_user":"-","http_referer":"-","http_user_agent":"-","host":"-","server_name":"s"}`, "", with("host=s")},
		{"client as number", strings.Replace(start, `"192.0.2.1"`, `3221225985`, 1) + `}`, "", bad},
		{"nested client", `{"remote_addr":{"":""}` + start[len(`{"remote_addr":"192.0.2.1"`):] + `}`, "", bad},
		{"time with digits of another script", strings.Replace(start, `17/Apr/2018`, `١٧/Apr/٢018`, 1) + `}`, "", bad},
		{"date and more", strings.Replace(start, ` +0000`, ` +0000 `, 1) + `}`, "", bad},
	})
}

func TestJSONZeek(t *testing.T) {
	checkTable(t, "json-zeek-dns", accesslog.Options{}, false, eventfield.WellKnown(), []lineTest{
		{
			"query", `{"ts":"2018-03-24T17:15:20.8657161239Z","id.orig_h":"203.0.113.5","query":"a.example"}`,
			"2018-03-24T17:15:20.865716123Z",
			[]string{"client=203.0.113.5", "object=a.example"},
		},
		{"no query", `{"ts":"2018-03-24T17:15:20Z","id.orig_h":"203.0.113.5"}`, "", []string{"client=203.0.113.5"}},
		{"query of another kind", `{"ts":"2018-03-24T17:15:20Z","id.orig_h":"203.0.113.5","query":5}`, "", []string{"client=203.0.113.5"}},
		{"nested client", `{"ts":"2018-03-24T17:15:20Z","id":{"orig_h":"203.0.113.5"}}`, "", bad},
		{"time as number", `{"ts":1521911720.5,"id.orig_h":"203.0.113.5"}`, "", bad},
		{"zone", `{"ts":"2018-03-24T18:15:20+01:00","id.orig_h":"203.0.113.5"}`, "2018-03-24T17:15:20Z", []string{"client=203.0.113.5"}},
	})
}

// slowFind returns the last value in an object at which a path ends, whichever of its dots are part of keys.
func slowFind(object []byte, path []string) (found any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	for d.Token(); d.More(); {
		key, _ := d.Token()
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			return found, ok
		}
		for n := range path {
			switch rest := path[n+1:]; {
			case key != strings.Join(path[:n+1], "."):
			case len(rest) == 0:
				value := json.NewDecoder(bytes.NewReader(raw))
				value.UseNumber()
				found, ok = nil, true
				if err := value.Decode(&found); err != nil {
					panic(err)
				}
			case raw[0] == '{':
				if v, inside := slowFind(raw, rest); inside {
					found, ok = v, true
				}
			}
		}
	}
	return found, ok
}

// Objects full of keys that overlap, and twice, against decoded ones.
func TestJSONPathsAgreeWithSlowReader(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	paths := []string{"a", "a.b", "a.b.c", "b.a.b.a", "a.a.a.a.a.a", "c"}
	spec := "json:time=t@s"
	for i, path := range paths {
		spec += fmt.Sprintf(",f%d=%s", i, path)
	}
	p := newParser(t, spec, accesslog.Options{})
	found := 0
	for range 30_000 {
		line := `{"t":1,` + randomObject(rng, 4)[1:]
		line = strings.Replace(line, ",}", "}", 1)
		var ev match.Event
		if !p.Parse([]byte(line), &ev) {
			t.Fatalf("bad: %s", line)
		}
		for i, path := range paths {
			v, _ := slowFind([]byte(line), strings.Split(path, "."))
			want, _ := v.(string)
			if got := string(ev.GetNamed(fmt.Sprint("f", i))); got != want {
				t.Fatalf("%s is %q, want %q: %s", path, got, want, line)
			}
			if want != "" {
				found++
			}
		}
	}
	if found < 3_000 {
		t.Errorf("only %d values were found", found)
	}
}

func randomObject(rng *rand.Rand, depth int) string {
	keys := []string{"a", "b", "c", "a.b", "b.a", "a.a", "a.b.c", "a.a.a", "b.c", `\u0061`}
	var parts []string
	for range rng.IntN(5) {
		value := fmt.Sprintf(`"v%d"`, rng.IntN(1000))
		switch n := rng.IntN(8); {
		case n == 0:
			value = "null"
		case n == 1:
			value = `[{"a":"x"}]`
		case n < 6 && depth > 0:
			value = randomObject(rng, depth-1)
		}
		parts = append(parts, fmt.Sprintf(`"%s":%s`, keys[rng.IntN(len(keys))], value))
	}
	return "{" + strings.Join(parts, ",") + "}"
}
