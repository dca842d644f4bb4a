package accesslog_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// fuzzFormat compares the parser of a named format with the slow reader.
func fuzzFormat(f *testing.F, format string) {
	for _, line := range seedLines[format] {
		f.Add([]byte(line))
	}
	p := differentialParser(f, format)
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > 4000 { // encoding/json takes longer numbers
			return
		}
		checkLine(t, format, p, line)
	})
}

func FuzzCLF(f *testing.F)         { fuzzFormat(f, "clf") }
func FuzzCLFVHost(f *testing.F)    { fuzzFormat(f, "clf-vhost") }
func FuzzCLFQuoted(f *testing.F)   { fuzzFormat(f, "clf-quoted") }
func FuzzJSONNginx(f *testing.F)   { fuzzFormat(f, "json-nginx") }
func FuzzJSONZeekDNS(f *testing.F) { fuzzFormat(f, "json-zeek-dns") }
func FuzzTraefik(f *testing.F)     { fuzzFormat(f, "traefik") }
func FuzzEnvoy(f *testing.F)       { fuzzFormat(f, "envoy") }
func FuzzHAProxy(f *testing.F)     { fuzzFormat(f, "haproxy") }
func FuzzALB(f *testing.F)         { fuzzFormat(f, "alb") }
func FuzzELB(f *testing.F)         { fuzzFormat(f, "elb") }
func FuzzS3(f *testing.F)          { fuzzFormat(f, "s3") }
func FuzzCloudFront(f *testing.F)  { fuzzFormat(f, "cloudfront") }
func FuzzCaddy(f *testing.F)       { fuzzFormat(f, "caddy") }
func FuzzTraefikJSON(f *testing.F) { fuzzFormat(f, "traefik-json") }
func FuzzEnvoyJSON(f *testing.F)   { fuzzFormat(f, "envoy-json") }

// FuzzWrapped must read a line inside the lines of a container and of the journal as the
// line alone.
func FuzzWrapped(f *testing.F) {
	f.Add(clfExampleLine)
	f.Add(`\"\u00e9 - - [17/Apr/2018:06:25:06 +0000] "GET /\x22 HTTP/1.1" 200 5`)
	alone := newParser(f, "clf", accesslog.Options{})
	docker, journal := newParser(f, "docker-json:clf", accesslog.Options{}), newParser(f, "journald-json:clf", accesslog.Options{})
	f.Fuzz(func(t *testing.T, line string) {
		if !utf8.ValidString(line) || strings.ContainsAny(line, "\n\r\ufeff") || len(line) > 4000 {
			return
		}
		text, _ := json.Marshal(line)
		want := eventsOf(alone, line)
		for name, got := range map[string][]string{
			"docker":  eventsOf(docker, `{"log":`+strings.TrimSuffix(string(text), `"`)+`\n","stream":"stdout","time":"x"}`),
			"CRI":     eventsOf(docker, "2018-04-17T06:25:06.1Z stdout F "+line),
			"journal": eventsOf(journal, `{"MESSAGE":`+string(text)+`,"__REALTIME_TIMESTAMP":"1"}`),
		} {
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %q, want %q", name, got, want)
			}
		}
	})
}

// FuzzFormatString must compile a text or return an error, and read its lines without a panic: each value is in the line.
func FuzzFormatString(f *testing.F) {
	for _, c := range formatStrings {
		f.Add(c.format, c.line)
	}
	f.Fuzz(func(t *testing.T, text, line string) {
		if !strings.HasPrefix(text, "nginx:") && !strings.HasPrefix(text, "apache:") || len(text) > 1000 {
			return
		}
		format, err := accesslog.ParseFormat(text)
		if err != nil {
			return
		}
		p, _ := format.NewParser(accesslog.Options{})
		var ev match.Event
		if !p.Parse([]byte(line), &ev) {
			format.Problem([]byte(line))
			return
		}
		for _, name := range eventfield.Names(&ev) {
			if v := string(ev.GetNamed(name)); name != "duration" && name != "path" && !strings.Contains(line, v) {
				t.Fatalf("%s is %q, which is not in the line", name, v)
			}
		}
	})
}

// FuzzW3C must read any log with directives like a reader that was reset and given the last directive before each line.
func FuzzW3C(f *testing.F) {
	f.Add([]byte("#Fields: date time c-ip cs(User-Agent)\n2018-04-17 06:25:06 192.0.2.1 \"a \"\"b\"\n#Fields: c-ip date time\n192.0.2.1 2018-04-17 06:25:06.25\n"))
	f.Add([]byte("#Fields: x cs-uri date time cs-uri-stem\n- http://a/b?c 2018-04-17 06:25:06 /d\n#Fields: time\n1\n"))
	w3c, _ := accesslog.ParseFormat("w3c")
	f.Fuzz(func(t *testing.T, log []byte) {
		whole, _ := w3c.NewParser(accesslog.Options{})
		for rest, before := log, 0; len(rest) > 0; {
			var line []byte
			line, rest, _ = accesslog.CutLine(rest)
			alone := must.Get(w3c.After(log[:before]).NewParser(accesslog.Options{}))(t)
			if got, want := eventsOf(whole, string(line)), eventsOf(alone, string(line)); !slices.Equal(got, want) {
				t.Fatalf("%q: %q, want %q", line, got, want)
			}
			before = len(log) - len(rest)
		}
	})
}

// FuzzJSONSpec compares paths and lists with what encoding/json decodes.
func FuzzJSONSpec(f *testing.F) {
	f.Add([]byte(`{"t":1,"a":{"b":"x"},"a.b":"y","h":[1,"z",null,{"q":[]}]}`))
	f.Add([]byte(`{"h":[],"t":"2.5","a":{"b":"x"},"a":{}}`))
	p := newParser(f, "json:time=t@s,user=a.b,object=h[]", accesslog.Options{})
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > 4000 || bytes.ContainsAny(line, "NI") {
			return
		}
		var o map[string]any
		d := json.NewDecoder(bytes.NewReader(line))
		d.UseNumber()
		valid := utf8.Valid(line) && json.Valid(line) && d.Decode(&o) == nil && o != nil
		list, isList := o["h"].([]any)
		var ev match.Event
		ok := p.Parse(line, &ev)
		if !ok {
			if valid && isList && o["t"] == json.Number("1") {
				t.Fatalf("bad: %q", line)
			}
			return
		}
		if !valid || !isList {
			t.Fatalf("good: %q", line)
		}
		user, _ := slowFind(line, []string{"a", "b"})
		if want := textOf(user); string(ev.Get(match.User)) != want {
			t.Fatalf("a.b is %q, want %q: %q", ev.Get(match.User), want, line)
		}
		for _, element := range list {
			want := textOf(element)
			if _, isBool := element.(bool); isBool || want == "" {
				continue
			}
			if got := string(ev.Get(match.Object)); !ok || got != want {
				t.Fatalf("element %q, %v, want %q: %q", got, ok, want, line)
			}
			ok = p.Next(&ev)
		}
		if p.Next(&ev) {
			t.Fatalf("one element too many, %q: %q", ev.Get(match.Object), line)
		}
	})
}

func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

// FuzzTSV compares with strings.Split.
func FuzzTSV(f *testing.F) {
	f.Add([]byte("host.example\t-\t17/Apr/2018:06:25:06 +0000\tGET\t/a?b\t200"))
	f.Add([]byte("\t\t17/Apr/2018:06:25:06 +0000\t"))
	p := newParser(f, "tsv:time=3@clf,client=1,user=4", accesslog.Options{})
	f.Fuzz(func(t *testing.T, line []byte) {
		var ev match.Event
		ok := p.Parse(line, &ev)
		cells := strings.Split(string(line), "\t")
		if len(cells) < 4 || len(line) > accesslog.MaxLine {
			if ok {
				t.Fatalf("good: %q", line)
			}
			return
		}
		at, isTime := slowCLFTime(cells[2])
		if want := isTime && cells[0] != "" && !strings.HasSuffix(cells[2], "\n"); ok != want {
			t.Fatalf("parsed = %v, want %v: %q", ok, want, line)
		}
		if ok && (!ev.Time.Equal(at) || string(ev.Get(match.Client)) != cells[0] || string(ev.Get(match.User)) != cells[3]) {
			t.Fatalf("%v %q %q: %q", ev.Time, ev.Get(match.Client), ev.Get(match.User), line)
		}
	})
}

// slowCSV splits at the separators outside of quotes; it returns false if the quotes in one of the first n cells are wrong,
// or there are fewer.
func slowCSV(line string, n int) ([]string, bool) {
	var cells []string
	for len(cells) < n {
		value, quoted := "", strings.HasPrefix(line, `"`)
		if !quoted {
			end := strings.IndexByte(line+",", ',')
			value, line = line[:end], line[end:]
		} else {
			inner := strings.ReplaceAll(line[1:], `""`, "\x00\x00")
			end := strings.IndexByte(inner, '"')
			if end < 0 {
				return nil, false
			}
			value, line = strings.ReplaceAll(line[1:][:end], `""`, `"`), line[1:][end+1:]
		}
		cells = append(cells, value)
		if line == "" {
			break
		}
		if line[0] != ',' {
			return nil, false
		}
		line = line[1:]
		if line == "" {
			cells = append(cells, "")
			break
		}
	}
	return cells, len(cells) >= n
}

// FuzzCSV compares with a splitter that copies.
func FuzzCSV(f *testing.F) {
	f.Add([]byte(`c,5633898,"a ""b"", c",x`))
	f.Add([]byte(`"",1,""""`))
	p := newParser(f, "csv:time=2@s,user=1,object=3", accesslog.Options{})
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > accesslog.MaxLine {
			return
		}
		var ev match.Event
		ok := p.Parse(line, &ev)
		cells, good := slowCSV(string(line), 3)
		if ok && !good {
			t.Fatalf("good: %q", line)
		}
		if !ok && good && cells[1] == "1" {
			t.Fatalf("bad: %q", line)
		}
		if ok && (string(ev.Get(match.User)) != cells[0] || string(ev.Get(match.Object)) != cells[2]) {
			t.Fatalf("%q, %q, want %q: %q", ev.Get(match.User), ev.Get(match.Object), cells, line)
		}
	})
}

// FuzzParseFormat must return a format for each text, or an error, and the format must be safe to use.
func FuzzParseFormat(f *testing.F) {
	f.Add("clf", "x")
	f.Add(`json:time=a.b\.c@ms,object=d[]@path,x=\@e`, `{"a":{"b.c":1},"d":["/x?y"],"@e":true}`)
	f.Add("csv:time=2@s,client=1", "c,1")
	f.Fuzz(func(t *testing.T, text, line string) {
		format, err := accesslog.ParseFormat(text)
		if err != nil {
			return
		}
		if format.String() != text && strings.ToUpper(text) != text { // an alias
			t.Fatalf("format %q returns the name %q", text, format)
		}
		p := must.Get(format.NewParser(accesslog.Options{}))(t)
		eventsOf(p, line)
	})
}

// FuzzDetect must return for each sample a format that can read a line of it, or none.
func FuzzDetect(f *testing.F) {
	for _, lines := range seedLines {
		f.Add([]byte(strings.Join(lines, "\n")))
	}
	f.Fuzz(func(t *testing.T, sample []byte) {
		format, ok := accesslog.Detect(sample)
		if ok == (format.String() == "") {
			t.Fatalf("detected %q, %v", format, ok)
		}
	})
}
