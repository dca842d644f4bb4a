package accesslog_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

func TestCommonJSON(t *testing.T) {
	checkTable(t, "json", accesslog.Options{}, true, eventfield.WellKnown(), []lineTest{
		{"cloud", `{"eventTime":"2023-04-11T15:24:00Z","sourceIPAddress":"192.0.2.1","eventName":"Login"}`, "2023-04-11T15:24:00Z", []string{"client=192.0.2.1"}},
		{"seconds", `{"ts":1523946306.25,"client_ip":"192.0.2.1","uri":"/a?b"}`, "2018-04-17T06:25:06.25Z", []string{"client=192.0.2.1", "path=/a", "object=/a", "query=b"}},
		{"milliseconds", `{"timestamp":1523946306250,"ip":"192.0.2.1"}`, "2018-04-17T06:25:06.25Z", []string{"client=192.0.2.1"}},
		{"no zone is UTC", `{"asctime":"2023-01-31 15:09:23,351","request_ip":"192.0.2.1"}`, "2023-01-31T15:09:23.351Z", []string{"client=192.0.2.1"}},
		{"a date and a time", `{"date":"2024-11-20","time":"10:00:01","c-ip":"192.0.2.1","sc-status":"403","cs-uri-stem":"/a"}`, "2024-11-20T10:00:01Z", []string{"client=192.0.2.1", "status=403", "path=/a", "object=/a"}},
		{"in objects", `{"t":{"$date":"2022-07-28T18:00:00.903+02:00"},"msg":"Authentication failed","attr":{"remote":"192.0.2.1:4071"}}`, "2022-07-28T16:00:00.903Z", []string{"client=192.0.2.1"}},
		{"the first address counts", `{"time":"2022-07-28T18:00:00Z","ip":"192.0.2.2","remote_addr":"-","client_ip":"192.0.2.1"}`, "", []string{"client=192.0.2.1"}},
		{"no address", `{"time":"2022-07-28T18:00:00Z","ip":"web"}`, "", bad},
		{"no time", `{"ip":"192.0.2.1"}`, "", bad},
		{"another time", `{"time":"noon","ip":"192.0.2.1"}`, "", bad},
		{"no object", `["2022-07-28T18:00:00Z","192.0.2.1"]`, "", bad},
	})
}

func TestLogfmt(t *testing.T) {
	checkTable(t, "logfmt", accesslog.Options{}, true, append(eventfield.WellKnown(), "reason"), []lineTest{
		{"quotes", `time="2022-02-14T13:47:54+02:00" level=error msg="no \"user\" ip=192.0.2.9 here" remote_ip=192.0.2.1`, "2022-02-14T11:47:54Z", []string{"client=192.0.2.1", `reason=no \"user\" ip=192.0.2.9 here`}},
		{"other keys", `logger=context uname= t=2023-03-14T06:10:23.366875297+02:00 msg="Invalid username" remote_addr=192.0.2.1 status=401`, "2023-03-14T04:10:23.366875297Z", []string{"client=192.0.2.1", "status=401", "reason=Invalid username"}},
		{"a date and a time", `date=2024-10-14 time=13:46:40 remip=192.0.2.1 user="ada"`, "2024-10-14T13:46:40Z", []string{"client=192.0.2.1", "user=ada"}},
		{"no address", `time=2022-02-14T13:47:54Z ip=x`, "", bad},
		{"no time", `ip=192.0.2.1`, "", bad},
		{"an open quote", `time=2022-02-14T13:47:54Z ip=192.0.2.1 msg="x`, "", bad},
		{"words", `time=2022-02-14T13:47:54Z ip=192.0.2.1 and more`, "", bad},
		{"empty", "", "", bad},
	})
}

func TestSquid(t *testing.T) {
	checkTable(t, "squid", accesslog.Options{}, true, append(eventfield.WellKnown(), "duration"), []lineTest{
		{
			"denied", "1386543323.000      4 192.0.2.1 TCP_DENIED/403 4099 GET http://shop.example/a?b - HIER_NONE/- text/html", "2013-12-08T22:55:23Z",
			[]string{"client=192.0.2.1", "status=403", "size=4099", "method=GET", "host=shop.example", "object=/a", "path=/a", "query=b", "duration=0.004"},
		},
		{
			"a tunnel", "1386543323.5 5 192.0.2.1 TCP_TUNNEL/200 3364 CONNECT shop.example:443 ada HIER_DIRECT/198.51.100.9 -", "2013-12-08T22:55:23.5Z",
			[]string{"client=192.0.2.1", "status=200", "size=3364", "method=CONNECT", "host=shop.example", "object=", "path=", "user=ada", "duration=0.005"},
		},
		{"no status", "1386543323.000 4 192.0.2.1 TCP_DENIED 4099 GET http://shop.example/ - HIER_NONE/- text/html", "", bad},
		{"cut off", "1386543323.000 4 192.0.2.1 TCP_DENIED/403 4099 GET", "", bad},
		{"no time", "x 4 192.0.2.1 TCP_DENIED/403 4099 GET http://shop.example/ - HIER_NONE/- text/html", "", bad},
	})
}

// FuzzCommon must find addresses only, which are in the line, in JSON and pairs, and not panic in
// the fields of squid.
func FuzzCommon(f *testing.F) {
	f.Add(`{"time":"2022-07-28T18:00:00Z","ip":"192.0.2.1"}`)
	f.Add(`time="2022-02-14T13:47:54+02:00" msg="a \"b" ip=192.0.2.1`)
	f.Add("1386543323.000      4 192.0.2.1 TCP_DENIED/403 4099 GET http://shop.example/a?b - HIER_NONE/- text/html")
	json, pairs, squid := newParser(f, "json", accesslog.Options{}), newParser(f, "logfmt", accesslog.Options{}), newParser(f, "squid", accesslog.Options{})
	f.Fuzz(func(t *testing.T, line string) {
		var ev match.Event
		squid.Parse([]byte(line), &ev)
		for _, p := range []*accesslog.Parser{json, pairs} {
			if !p.Parse([]byte(line), &ev) {
				continue
			}
			client := string(ev.Get(match.Client))
			if _, ok := address.Parse(client); !ok || !strings.Contains(line, client) && !strings.Contains(line, `\`) {
				t.Fatalf("client %q of %q", client, line)
			}
			if p == json && !utf8.ValidString(line) {
				t.Fatalf("%q is not JSON", line)
			}
		}
	})
}
