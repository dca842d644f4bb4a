package accesslog_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
)

// seedLines are good lines and near misses of each format: the tests below mutate them, and the fuzz targets begin with
// them. All addresses are in the ranges for documentation.
var seedLines = map[string][]string{
	"clf": {
		`192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET /a?b=c HTTP/1.1" 200 30 "-" "Wren/2.1 (Finch 9)" "203.0.113.1, 192.0.2.9"`,
		`2001:db8::1 - bob smith [29/Feb/2016:23:59:59 -0130] "POST /b HTTP/1.0" 404 -`,
		`  198.51.100.7 ident user [x] [01/Jan/0001:00:00:00 +9999] "\x16\x03\"x\\" 400 0 "r\"r" "a" 22`,
		`host.example - a [b [31/Dec/9999:23:59:59 +0000] "GET /c d?e" 301 7 - "x"`,
		`shop.example 192.0.2.1 - ada [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 1`,
		`shop.example 192.0.2.1 ada [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 1`,
		`h i u [02/Xyz/2018:06:25:06 +0000] "GET / H" 200 1 [02/May/2018:06:25:06 +0000] "GET / H" 200 1 "" ""`,
		`h i u [02/May/2018:06:25:06 +0000] "GET /" 20 [02/May/2018:06:25:06 +0000] "PUT ?q HTTP/2.0" 200 1`,
	},
	"clf-quoted": {
		`"192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET /a?b=c HTTP/1.1" 200 30 "-" "Wren/2.1""`,
		`" 192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "-" 408 -"`,
		`192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 30 "-" "Wren/2.1"`,
	},
	"clf-vhost": {
		`shop.example:443 192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET /a HTTP/1.1" 200 30 "-" "Wren/2.1"`,
		`2001:db8::9:80  198.51.100.2 - u [17/Apr/2018:06:25:06 +0000] "OPTIONS * HTTP/1.1" 200 -`,
		`:80 198.51.100.2 - u [17/Apr/2018:06:25:06 +0000] "OPTIONS * HTTP/1.1" 200 -`,
	},
	"json-nginx": {
		`{"remote_addr":"192.0.2.1","time_local":"17/Apr/2018:06:25:06 +0000","request":"GET /a?b HTTP/1.1","status":"200"}`,
		` { "time_local" : "17\/Apr\/2018:06:25:06 +0530" , "x" : [1, -2.5e+3, {"y": null}], "request": "GET\n /\u00e4\ud83d\ude00", "remote_addr": "" } `,
		`{"remote_addr":"192.0.2.1","remote_addr":7,"time_local":"17/Apr/2018:06:25:06 +0000\n","request":"\ud800 x","remote_addr":"198.51.100.3"}`,
		`{"remote_addr":{"a":"b"},"time_local":"17/Apr/2018:06:25:06 +0000","request":"-"}`,
	},
	"json-zeek-dns": {
		`{"ts":"2018-03-24T17:15:20.865716Z","id.orig_h":"203.0.113.5","query":"a.example","answers":["x",1.5,[],{}],"AA":false}`,
		`{"ts":"2018-03-24T17:15:20Z","id.orig_h":"2001:db8::5","query":"","TTLs":[2230.0,41830.0]}`,
		`{"ts":"2016-02-30T17:15:20.1234567891Z","id":{"orig_h":"203.0.113.5"},"id.orig_h":"203.0.113.6","query":null}`,
	},
	"traefik": {
		exampleLine0("traefik"),
		`203.0.113.7, 192.0.2.1 - x [y - [17/Apr/2018:06:25:06 +0200] "PUT /a\"b HTTP/2.0" 404 - "-" "-" 3 "-" "-" 0ms`,
		`[2001:db8::1]:80 - - [29/Feb/2016:06:25:06 +0200] "-" - 7 "a" "b" 3 "c" "" 12345ms and more`,
	},
	"envoy": {
		exampleLine0("envoy"),
		`[2018-04-17T06:25:06Z] "- - -" 0 DC 0 0 3 - "203.0.113.7,2001:db8::1" "-" "-" "-" "-"`,
		`[2018-04-17T06:25:06+01:00] "POST /a HTTP/1.1" 503 UF,URX 9 91 0 - "-" "a [b] \"c\"" "x" "h:80" "-" x y`,
	},
	"haproxy": {
		exampleLine0("haproxy"),
		`[2001:db8::1]:5 [17/Apr/2018:06:25:06.999] f b/<NOSRV> -1/-1/-1/-1/0 400 187 - - PR-- 2/2/0/0/3 0/0 {a|"b} {c} "<BADREQ>"`,
		`::ffff:203.0.113.9:20000 [17/Apr/2018:06:25:06.999] f b/s 0/0/0/1/1 200 187 - - ---- 2/2/0/0/3 0/0 "GET / HTTP/1.1"`,
		`::ffff:203:20000 [17/Apr/2018:06:25:06.999] f b/s 0/0/0/1/1 200 187 - - ---- 2/2/0/0/3 0/0 "GET / HTTP/1.1"`,
		`<134>Apr 17 06:25:06 g haproxy[1]: 192.0.2.9:5 [17/Apr/2018:06:25:06] f b/s 1/0/0/10/+11 -1 +512 a=b - ---- 2/2/0/0/3 0/0 "GET /a/b?c HTTP/1.1" x`,
		`Apr 17 06:25:06 g haproxy[1]: Server b/s is DOWN`,
	},
	"alb": {
		exampleLine0("alb"),
		`ws 2018-04-17T06:25:06.25Z a [2001:db8::1]:9 - -1 -1 -1 460 - 0 0 "- http://shop.example:80- -" "-"`,
		`h2 2018-04-17T06:25:06Z a 192.0.2.1:9 - 0.1 0.25 0 301 301 34 1 "GET https://shop.example HTTP/2.0" "a\"b" - - - "x" "-" "y" 0`,
	},
	"elb": {
		exampleLine0("elb"),
		`2018-04-17T06:25:06Z a 192.0.2.1:9 198.51.100.7:80 0.1 0.2 0.3 - - 8 30 "- - - " "-" - -`,
		`2018-04-17T06:25:06Z a 192.0.2.1:9 - -1 -1 -1 504 0 0 0 "GET http://a/b/c?d=e://f HTTP/1.0"`,
	},
	"s3": {
		exampleLine0("s3"),
		`o b [17/Apr/2018:06:25:06 +0000] - - R S3.EXPIRE.OBJECT a/key "-" - - - 512 - - "-" "-" v`,
		`o b [c [17/Apr/2018:06:25:06 -0100] 192.0.2.1 a R REST.PUT.PART k "x "PUT /k?p=1 HTTP/1.1" 403 AccessDenied 243 - 7 - "-" "a\"b" - h s c A`,
	},
	"cloudfront": {
		exampleLine0("cloudfront"),
		"2018-04-17\t06:25:06\tFRA2-C1\t0\t2001:db8::1\tPOST\td\t/a/b\t000\t-\t\"x \"\"y\"\"\"\t-\t-\tError\tid==\t-\thttps\t7\t0.001\t203.0.113.1,%20192.0.2.2\t-",
		"2018-04-17\t06:25:06.5 F 1 192.0.2.3 GET d http://h:80/p 200 r a q c t i h https 1 2",
	},
	"caddy": {
		exampleLine0("caddy"),
		`{"msg":"handled request","ts":"2018-04-17T06:25:06.5+0200","request":{"remote_addr":"[2001:db8::1]:80","uri":"/a","headers":{"User-Agent":[]}},"status":0}`,
		`{"msg":"handled request","ts":1523946306,"request":{"client_ip":"","remote_ip":"192.0.2.7","uri":"","method":"GET","headers":{"Referer":["\u0061",1],"X-Forwarded-For":[null]}},"duration":1e-05}`,
		`{"msg":"other","ts":1523946306,"request":{"remote_ip":"192.0.2.7"}}`,
	},
	"traefik-json": {
		exampleLine0("traefik-json"),
		`{"StartUTC":"2018-04-17T06:25:06Z","ClientHost":"198.51.100.4, 192.0.2.7:80","RequestMethod":"GET","RequestPath":"?a","ClientUsername":"-","Duration":5}`,
		`{"StartUTC":"2018-04-17T06:25:06Z","ClientAddr":"[::1]:80","RequestMethod":"","Duration":"10.5"}`,
		`{"level":"debug","msg":"x","time":"2018-04-17T06:25:06Z"}`,
	},
	"envoy-json": {
		exampleLine0("envoy-json"),
		`{"start_time":"2018-04-17T06:25:06.5Z",":authority":"a",":path":"/x?y",":method":"PUT","response_code":0,"downstream_remote_address":"[2001:db8::1]:9","duration":1234567,"user-agent":"-"}`,
		`{"start_time":"2018-04-17T06:25:06Z","x-envoy-origin-path":"?o","path":"/p","response_code":"200","downstream_remote_address":"x"}`,
		`{"start_time":"2018-04-17T06:25:06Z","x-envoy-origin-path":"/o","path":"/p","method":null,"response_code":"200","downstream_remote_address":"x"}`,
	},
}

// exampleLine0 is the event of the example of a named format.
func exampleLine0(name string) string {
	lines := exampleOf(name)
	return lines[len(lines)-1]
}

// readingOf returns what the parser makes of a line, in terms of the model.
func readingOf(p *accesslog.Parser, line []byte, latin bool, knows []string) reading {
	var ev match.Event
	r := reading{ok: p.Parse(line, &ev), time: ev.Time, fields: map[string]string{}}
	for _, name := range knows {
		v := ev.GetNamed(name)
		if v == nil {
			continue
		}
		r.fields[name] = string(v)
		if latin {
			r.fields[name] = latin1(v)
		}
	}
	return r
}

// checkLine compares the parser with the slow reader on one line.
func checkLine(t *testing.T, format string, p *accesslog.Parser, line []byte) {
	t.Helper()
	if len(line) > accesslog.MaxLine || bytes.IndexByte(line, '\n') >= 0 || bytes.HasPrefix(line, []byte("\ufeff")) {
		return // the slow readers do not handle byte order marks
	}
	slow := slowReaders[format]
	text := string(line)
	if slow.latin {
		text = latin1(line)
	}
	p.Reset()
	before := bytes.Clone(line)
	got, want := readingOf(p, line, slow.latin, slow.knows), slow.read(text)
	if !bytes.Equal(line, before) {
		t.Fatalf("%s: the line was changed", format)
	}
	if want.unknown {
		return
	}
	if got.ok != want.ok {
		t.Fatalf("%s: parsed = %v, want %v, for\n%q", format, got.ok, want.ok, line)
	}
	if !got.ok {
		if len(got.fields) > 0 || !got.time.IsZero() {
			t.Fatalf("%s: a bad line left %v in the event:\n%q", format, got, line)
		}
		return
	}
	if !got.time.Equal(want.time) {
		t.Fatalf("%s: time %v, want %v, for\n%q", format, got.time, want.time, line)
	}
	if !slow.latin { // encoding/json makes U+FFFD of half a surrogate pair
		for name, v := range got.fields {
			got.fields[name] = accesslog.ReplaceSurrogates(v)
		}
	}
	if !maps.Equal(got.fields, want.fields) {
		t.Fatalf("%s: fields\n%q, want\n%q, for\n%q", format, got.fields, want.fields, line)
	}
}

// differentialParser is a parser in the year of the slow reader.
func differentialParser(t testing.TB, format string) *accesslog.Parser {
	return newParser(t, format, accesslog.Options{Year: 2016})
}

// Lines that look real and are then damaged must read as the regular
// expressions of the reference read them.
func TestParserAgreesWithSlowReader(t *testing.T) {
	seed := randtest.Seed(t)
	for format, lines := range seedLines {
		t.Run(format, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			p := differentialParser(t, format)
			good, rounds := 0, 20_000
			if format != "clf" && !strings.HasPrefix(format, "clf-") {
				rounds = 5_000 // their slow readers are slower
			}
			if testing.Short() {
				rounds /= 20
			}
			for _, line := range lines {
				checkLine(t, format, p, []byte(line))
			}
			for range rounds {
				line := mutate(rng, lines)
				checkLine(t, format, p, line)
				if p.Parse(line, new(match.Event)) {
					good++
				}
			}
			if good < rounds/20 {
				t.Errorf("only %d of the lines were good: the mutations are too wild to test anything", good)
			}
		})
	}
}

// telling are the bytes that make a difference to some format.
const telling = "  \"\"\\\\[]{}:,/?-+.=0123456789:TZnu\t\v\x1c\x1d\x1f\x80\x85\xa0\xc3\xa4\xff\x00aGe"

// mutate damages a few places of a line.
func mutate(rng *rand.Rand, lines []string) []byte {
	line := []byte(lines[rng.IntN(len(lines))])
	for range rng.IntN(4) {
		if len(line) == 0 {
			break
		}
		i := rng.IntN(len(line))
		j := min(len(line), i+1+rng.IntN(12))
		c := telling[rng.IntN(len(telling))]
		switch rng.IntN(7) {
		case 0:
			line[i] = c
		case 1:
			line = append(line[:i], append([]byte{c}, line[i:]...)...)
		case 2:
			line = append(line[:i], line[i+1:]...)
		case 3:
			line = append(line[:i], line[j:]...)
		case 4: // repeat a piece
			line = append(line[:j], append(bytes.Clone(line[i:j]), line[j:]...)...)
		case 5: // another line's end
			other := lines[rng.IntN(len(lines))]
			line = append(line[:i], other[rng.IntN(len(other)):]...)
		case 6: // another digit
			if at := bytes.IndexAny(line[i:], "0123456789"); at >= 0 {
				line[i+at] = byte('0' + rng.IntN(10))
			}
		}
	}
	return line
}
