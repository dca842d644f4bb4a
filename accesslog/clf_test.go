package accesslog_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
)

// A lineTest is a line with its fields as "name=value" in any order, or bad.
type lineTest struct {
	name, line, time string
	fields           []string
}

// bad is the fields of a bad line.
var bad []string

func checkTable(t *testing.T, format string, o accesslog.Options, latin bool, knows []string, tests []lineTest) {
	t.Helper()
	for _, tt := range tests {
		p := newParser(t, format, o)
		got := readingOf(p, []byte(tt.line), latin, knows)
		if got.ok != (tt.fields != nil) {
			t.Errorf("%s: parsed = %v, want %v", tt.name, got.ok, !got.ok)
			continue
		}
		if !got.ok {
			continue
		}
		if at := got.time.Format("2006-01-02T15:04:05.999999999Z07:00"); tt.time != "" && at != tt.time {
			t.Errorf("%s: time %s, want %s", tt.name, at, tt.time)
		}
		want := map[string]string{}
		for _, f := range tt.fields {
			name, value, _ := strings.Cut(f, "=")
			want[name] = value
		}
		if !maps.Equal(got.fields, want) {
			t.Errorf("%s: fields %q, want %q", tt.name, got.fields, want)
		}
	}
}

const clfStart = `192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] `

func TestCLF(t *testing.T) {
	base := []string{"client=192.0.2.1", "status=200"}
	with := func(more ...string) []string { return append(base[:2:2], more...) }
	get := []string{"method=GET", "object=/a", "path=/a", "protocol=HTTP/1.1"}
	checkTable(t, "clf", accesslog.Options{}, true, eventfield.WellKnown(), []lineTest{
		{
			"combined", clfStart + `"GET /a?b=c?d HTTP/1.1" 200 30 "https://shop.example/" "Wren/2"`, "2018-04-17T06:25:06Z",
			with(append(get, "query=b=c?d", "size=30", "referer=https://shop.example/", "agent=Wren/2")...),
		},
		{"common", clfStart + `"GET /a HTTP/1.1" 200 -`, "", with(get...)},
		{"zone", strings.Replace(clfStart, "+0000", "-0130", 1) + `"GET /a HTTP/1.1" 200 -`, "2018-04-17T07:55:06Z", with(get...)},
		{"dashes", clfStart + `"GET /a HTTP/1.1" 200 30 "-" "-"`, "", with(append(get, "size=30")...)},
		{"one space only before the first field", "  " + clfStart + `"-" 200 30`, "", with("size=30")},
		{"tab before the first field", "\t" + clfStart + `"-" 200 30`, "", bad},
		{"user with spaces", `192.0.2.1 - a [b] c [17/Apr/2018:06:25:06 +0000] "-" 200 1`, "", with("user=a [b] c", "size=1")},
		{
			"user that is a date", `192.0.2.1 - [17/Apr/2018:06:25:06 +0000] [17/Apr/2018:06:25:07 +0000] "-" 200 1`,
			"2018-04-17T06:25:07Z", with("user=[17/Apr/2018:06:25:06 +0000]", "size=1"),
		},
		{"no user", `192.0.2.1 - [17/Apr/2018:06:25:06 +0000] "-" 200 1`, "", bad},
		{"user of one space", `192.0.2.1 -   [17/Apr/2018:06:25:06 +0000] "-" 200 1`, "", with("user= ", "size=1")},
		{
			"a bad date decides even before a good one",
			`192.0.2.1 - u [31/Apr/2018:06:25:06 +0000] "-" 200 1 [17/Apr/2018:06:25:06 +0000] "-" 200 1`, "", bad,
		},
		{
			"what is not of the form does not", `192.0.2.1 - u [31/Apr/2018:06:25:06 +0000] "-" 2000 1 [17/Apr/2018:06:25:06 +0000] "-" 200 1`,
			"", with(`user=u [31/Apr/2018:06:25:06 +0000] "-" 2000 1`, "size=1"),
		},
		{
			"escaped quotes", clfStart + `"GET /\"a\\" 200 1 "r\"" "a\\"`, "",
			with("method=GET", `object=/\"a\\`, `path=/"a\`, "size=1", `referer=r\"`, `agent=a\\`),
		},
		{
			"escaped backslashes", clfStart + `"GET /x\x5C..\\a\x5cb\x5\xg1\n?\x5C HTTP/1.1" 200 1`, "",
			with("method=GET", `object=/x\x5C..\\a\x5cb\x5\xg1\n`, `path=/x\..\a\b\x5\xg1\n`, `query=\x5C`, "protocol=HTTP/1.1", "size=1"),
		},
		{"open request", clfStart + `"GET /\" 200 1`, "", bad},
		{"request of one byte", clfStart + `"\x16" 200 1`, "", with("size=1")},
		{"empty request", clfStart + `"" 200 1`, "", with("size=1")},
		{"no target", clfStart + `"GET  HTTP/1.1" 200 1`, "", with("size=1")},
		{"method only", clfStart + `"GET" 200 1`, "", with("size=1")},
		{"method in lower case", clfStart + `"get /a HTTP/1.1" 200 1`, "", with("size=1")},
		{
			"target without a path", clfStart + `"GET ?q HTTP/1.1" 200 1`, "",
			with("method=GET", "object=", "path=", "query=q", "protocol=HTTP/1.1", "size=1"),
		},
		{"target with a space", clfStart + `"GET /a b HTTP/1.1" 200 1`, "", with(append(get, "size=1")...)},
		{"HTTP/0.9", clfStart + `"GET /a" 200 1`, "", with("method=GET", "object=/a", "path=/a", "size=1")},
		{"port behind the agent", clfStart + `"-" 200 1 "r" "a" 22`, "", with("size=1", "referer=r", "agent=a")},
		{"anything behind the size", clfStart + `"-" 200 1 "r`, "", with("size=1")},
		{"size and a letter", clfStart + `"-" 200 1x`, "", bad},
		{"no size", clfStart + `"-" 200 `, "", bad},
		{"nothing behind the status", clfStart + `"-" 200`, "", bad},
		{"status of four digits", clfStart + `"-" 2000 1`, "", bad},
		{"two dashes as size", clfStart + `"-" 200 --`, "", bad},
		{"no-break space in the client", strings.Replace(clfStart, "1 ", "1\xa0x ", 1) + `"-" 200 1`, "", bad},
		{
			"a high byte in the client", strings.Replace(clfStart, "192.0.2.1", "\xe4", 1) + `"-" 200 1`, "",
			[]string{"client=ä", "status=200", "size=1"},
		},
		{"empty", "", "", bad},
		{"spaces", "   ", "", bad},
		{"cut in the date", clfStart[:len(clfStart)-4], "", bad},
		{"cut behind the date", clfStart, "", bad},
		{"cut in the request", clfStart + `"`, "", bad},
	})
}

func TestCLFVHost(t *testing.T) {
	line := clfStart + `"-" 200 1`
	fields := func(host string) []string {
		return []string{"client=192.0.2.1", "status=200", "size=1", "host=" + host}
	}
	checkTable(t, "clf-vhost", accesslog.Options{}, true, eventfield.WellKnown(), []lineTest{
		{"name", "shop.example:443 " + line, "", fields("shop.example")},
		{"address", "2001:db8::1:443 " + line, "", fields("2001:db8::1")},
		{"two colons", "a::0 " + line, "", fields("a:")},
		{"more spaces", "a:1   " + line, "", fields("a")},
		{"no port", "shop.example: " + line, "", bad},
		{"no digits", "shop.example:44x " + line, "", bad},
		{"no name", ":443 " + line, "", bad},
		{"digits only", "443 " + line, "", bad},
		{"leading space", " shop.example:443 " + line, "", bad},
		{"plain clf", line, "", bad},
		{"nothing else", "shop.example:443 ", "", bad},
		{"tab", "shop.example:443\t" + line, "", bad},
	})
}

func TestCLFQuoted(t *testing.T) {
	line := clfStart + `"-" 200 1`
	checkTable(t, "clf-quoted", accesslog.Options{}, true, eventfield.WellKnown(), []lineTest{
		{"quoted", `"` + line + ` "r" "a""`, "", []string{"client=192.0.2.1", "status=200", "size=1", "referer=r", "agent=a"}},
		{"plain", line, "", bad},
		{"no end", `"` + line, "", bad},
		{"no start", line + `"`, "", bad},
		{"one quote", `"`, "", bad},
		{"two quotes", `""`, "", bad},
		{"empty", ``, "", bad},
	})
}
