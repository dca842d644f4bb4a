package accesslog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// formatString is a format string and a line; want has all its fields.
type formatString struct{ format, line, want string }

var formatStrings = []formatString{
	{
		`nginx:$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"`, clfExampleLine,
		"2018-04-17T06:25:06Z agent=Wren/2.1 client=192.0.2.1 method=GET object=/cart path=/cart protocol=HTTP/1.1 query=item=7 referer=https://shop.example/ size=512 status=200 user=ada",
	},
	{
		`nginx:$remote_addr - $remote_user [$time_local] "$request" $status`, `192.0.2.1 - a [b] [c [17/Apr/2018:06:25:06 +0100] "-" 400`,
		"2018-04-17T05:25:06Z client=192.0.2.1 status=400 user=a [b] [c",
	},
	{
		`nginx:$msec $remote_addr "$http_x_forwarded_for" $request_time ${request_method} $request_uri $tenant`, `1523946306.250 192.0.2.1 "203.0.113.9, 192.0.2.4" 0.042 GET /a?b acme`,
		"2018-04-17T06:25:06.25Z client=192.0.2.1 duration=0.042 method=GET object=/a path=/a query=b tenant=acme x_forwarded_for=203.0.113.9, 192.0.2.4",
	},
	{
		`nginx:$time_iso8601|$http_host|$remote_addr|$uri|$args|$bytes_sent|$server_name`, `2018-04-17T06:25:06+02:00|shop.example|[2001:db8::1]:80|/a b|x=1|7|other`,
		"2018-04-17T04:25:06Z client=2001:db8::1 host=shop.example object=/a b path=/a b query=x=1 size=7",
	},
	{`nginx:[$time_local] $msec $remote_addr`, `[17/Apr/2018:06:25:06 +0000] 1523946306.125 192.0.2.1`, "2018-04-17T06:25:06.125Z client=192.0.2.1"},
	{
		`nginx:$remote_addr [$time_local] "$request"`, `192.0.2.1 [17/Apr/2018:06:25:06 +0000] "GET /a\x5Cb\x22c HTTP/1.1"`,
		`2018-04-17T06:25:06Z client=192.0.2.1 method=GET object=/a\x5Cb\x22c path=/a\b"c protocol=HTTP/1.1`,
	},
	{
		`apache:%h %l %u %t "%r" %>s %b "%{Referer}i" "%{User-Agent}i"`, clfExampleLine,
		"2018-04-17T06:25:06Z agent=Wren/2.1 client=192.0.2.1 method=GET object=/cart path=/cart protocol=HTTP/1.1 query=item=7 referer=https://shop.example/ size=512 status=200 user=ada",
	},
	{
		`apache:%v:%p %a \"%r\" %{msec}t %D %O %X`, `shop.example:443 192.0.2.1 "PUT /a HTTP/2.0" 1523946306250 42000 99 +`,
		"2018-04-17T06:25:06.25Z client=192.0.2.1 duration=0.042 host=shop.example method=PUT object=/a path=/a protocol=HTTP/2.0 size=99",
	},
	{
		`apache:%{%Y-%m-%dT%H:%M:%S%z}t %h %m %U%q %H %!200,304{Referer}i %{ms}T %{X-Request-Id}i 100%%`, `2018-04-17T06:25:06+0100 192.0.2.1 GET /a?b=c HTTP/1.1 - 42 r1 100%`,
		"2018-04-17T05:25:06Z client=192.0.2.1 duration=0.042 method=GET object=/a path=/a protocol=HTTP/1.1 query=b=c x_request_id=r1",
	},
	{`apache:%h\t%{c}a\t%t\t%s`, "192.0.2.1\t203.0.113.1\t[17/Apr/2018:06:25:06 +0000]\t-", "2018-04-17T06:25:06Z client=192.0.2.1"},
}

const clfExampleLine = `192.0.2.1 - ada [17/Apr/2018:06:25:06 +0000] "GET /cart?item=7 HTTP/1.1" 200 512 "https://shop.example/" "Wren/2.1"`

// listed returns the time and all fields of an event, by their names.
func listed(f accesslog.Format, ev *match.Event) string {
	text := ev.Time.Format("2006-01-02T15:04:05.999999999Z07:00")
	for _, name := range slices.Sorted(slices.Values(f.Fields())) {
		if v := ev.GetNamed(name); len(v) > 0 {
			text += fmt.Sprintf(" %s=%s", name, v)
		}
	}
	return text
}

func TestFormatStrings(t *testing.T) {
	for _, c := range formatStrings {
		f, err := accesslog.ParseFormat(c.format)
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		p, _ := f.NewParser(accesslog.Options{})
		var ev match.Event
		if !p.Parse([]byte(c.line), &ev) {
			t.Errorf("%s: bad: %s: %s", c.format, c.line, f.Problem([]byte(c.line)))
		} else if got := listed(f, &ev); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.format, got, c.want)
		}
	}
}

// Each error of a compiler has its column, and what is expected there.
func TestFormatStringErrors(t *testing.T) {
	for _, c := range []struct{ format, want string }{
		{"nginx:$remote_addr $status", "accesslog: format nginx: there is no time: must have $time_local, $time_iso8601 or $msec"},
		{"nginx:$remote_addr [$time_locl]", "accesslog: format nginx: there is no time; column 15: unknown variable $time_locl: did you mean $time_local?"},
		{"nginx:$remote_adr [$time_local]", "accesslog: format nginx: there is no client; column 1: unknown variable $remote_adr: did you mean $remote_addr?"},
		{"nginx:$remote_addr$status [$time_local]", "accesslog: format nginx: column 13: $status: must have a text before it, because the end of the value before it is not known"},
		{"nginx:$remote_addr [$time_local] $", "accesslog: format nginx: column 28: $ must be followed by the name of a variable: letters, digits and '_'"},
		{"nginx:${remote_addr [$time_local]", "accesslog: format nginx: column 1: ${ without a }: must be ${name}"},
		{"nginx:", "accesslog: format nginx: there is no time: must have $time_local, $time_iso8601 or $msec"},
		{"apache:%h %>s", "accesslog: format apache: there is no time: must have %t or %{FORM}t"},
		{"apache:%h %t %Z", "accesslog: format apache: column 7: %Z: unknown directive: must be one of Apache's, such as %h, %t, %r, %>s, %b, %{Referer}i"},
		{"apache:%h %{%d.%m.%Y}t", "accesslog: format apache: column 4: %{%d.%m.%Y}t: unknown form of time: must be sec, msec, usec, %Y-%m-%dT%H:%M:%S%z or %d/%b/%Y:%H:%M:%S %z"},
		{"apache:%h %t %{h}T", "accesslog: format apache: column 7: %{h}T: unknown unit: must be one of s, ms, us"},
		{"apache:%h %t %{Referer", "accesslog: format apache: column 7: %{ without a }: must be such as %{Referer}i"},
		{"apache:%h %t %", "accesslog: format apache: column 7: %: must be followed by a letter, such as %h"},
		{"docker-json:w3c", "accesslog: format docker-json: w3c: must not be inside another format"},
		{"journald-json:xx", `accesslog: format "xx" is unknown; use clf`},
	} {
		_, err := accesslog.ParseFormat(c.format)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v\nwant %s", c.format, err, c.want)
		}
	}
}

// A line that does not match is reported with the place, and a value that contains its terminator is not cut.
func TestFormatStringLines(t *testing.T) {
	const format = `nginx:$remote_addr - $remote_user [$time_local] "$request" $status "$http_user_agent"`
	for line, want := range map[string]string{
		`192.0.2.1 - a [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 "x`:         `$http_user_agent, between " \"" and "\"", is not where the format has it`,
		`192.0.2.1 - a [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" ok "x"`:         `$status, between "\" " and " \"", is not where the format has it`,
		`192.0.2.1 - a [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 "x" more`:   "it goes on after the last value of the format",
		`192.0.2.1 - a [17/Apx/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 "x"`:        "its time is not one that the format has, or the value of a field that must be there is empty",
		` - a [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 "x"`:                 "its time is not one that the format has, or the value of a field that must be there is empty",
		`192.0.2.1 - a [17 Apr 2018 06:25:06 +0000] "GET / HTTP/1.1" 200 "x"`:        `$remote_user, between " - " and " [", is not where the format has it`,
		`192.0.2.1 a "x [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 "\\\"x\\"`: `$remote_addr, between "" and " - ", is not where the format has it`,
	} {
		f := must.Get(accesslog.ParseFormat(format))(t)
		p, _ := f.NewParser(accesslog.Options{})
		if p.Parse([]byte(line), new(match.Event)) || p.Skipped() || f.Problem([]byte(line)) != want {
			t.Errorf("%s: %q, want %q", line, f.Problem([]byte(line)), want)
		}
	}
	// A user whose name looks like the rest of a line cannot hide the rest.
	p := newParser(t, format, accesslog.Options{})
	var ev match.Event
	user := `a [17/Apr/2018:06:25:06 +0000] \x22GET / HTTP/1.1\x22 200`
	if !p.Parse([]byte(`192.0.2.1 - `+user+` [18/Apr/2018:06:25:06 +0000] "GET /own HTTP/1.1" 401 "x"`), &ev) ||
		string(ev.Get(match.User)) != user || string(ev.Get(match.Path)) != "/own" || ev.Time.Day() != 18 {
		t.Errorf("user %q, path %q, time %v", ev.Get(match.User), ev.Get(match.Path), ev.Time)
	}
}

func TestClientWithoutPort(t *testing.T) {
	p := newParser(t, "nginx:$remote_addr [$time_local]", accesslog.Options{})
	for client, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "192.0.2.1:80": "192.0.2.1", "[2001:db8::1]:80": "2001:db8::1", "[2001:db8::1]": "2001:db8::1", "2001:db8::1": "2001:db8::1",
		"host.example:80": "host.example:80", "key:7": "key:7", "192.0.2.1:": "192.0.2.1:", "[x]:80": "[x]:80", "[192.0.2.1:80]": "[192.0.2.1:80]", "unix:": "unix:",
	} {
		var ev match.Event
		if !p.Parse([]byte(client+" [17/Apr/2018:06:25:06 +0000]"), &ev) || string(ev.Get(match.Client)) != want {
			t.Errorf("%s is client %q, want %q", client, ev.Get(match.Client), want)
		}
	}
}

func ExampleParseFormat_nginx() {
	f, err := accesslog.ParseFormat(`nginx:$remote_addr [$time_iso8601] "$request" $status $request_time`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Fields())
	// Output: [client duration method object path protocol query status]
}
