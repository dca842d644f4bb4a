package accesslog_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// textClients are texts with the client that they name.
var textClients = map[string]string{
	"Failed login from 192.0.2.1":                                          "192.0.2.1",
	"login of ann refused from IP address 192.0.2.1.":                      "192.0.2.1",
	"192.0.2.1 tried to log in":                                            "192.0.2.1",
	"[auth] 192.0.2.1 max errors exceeded":                                 "192.0.2.1",
	"rhost=192.0.2.1 user=ann":                                             "192.0.2.1",
	"remote_addr=192.0.2.1:4711 status=401":                                "192.0.2.1",
	"(client: 192.0.2.1)":                                                  "192.0.2.1",
	"connect host.example[192.0.2.1] refused":                              "192.0.2.1",
	"relay attempt by host.example [192.0.2.1]":                            "192.0.2.1",
	"remote host [ipv4:192.0.2.1:4711] local host [ipv4:198.51.100.1:445]": "192.0.2.1",
	"stream from 192.0.2.1:4711 to 198.51.100.1:80":                        "192.0.2.1",
	"{TCP} 192.0.2.1:4711 -> 198.51.100.1:80":                              "192.0.2.1",
	"block: 192.0.2.1.4711 198.51.100.1.1080: no such user":                "192.0.2.1",
	"user ann 192.0.2.1 authentication failure":                            "192.0.2.1",
	"2: 192.0.2.1|401|/login":                                              "192.0.2.1",
	"blocked 192.0.2.1/32":                                                 "192.0.2.1",
	"192.0.2.1 again: 192.0.2.1":                                           "192.0.2.1",
	"0.0.0.0:80 accepted 192.0.2.1:4711":                                   "192.0.2.1",
	"from ::ffff:192.0.2.1: refused":                                       "::ffff:192.0.2.1",
	"from 2001:db8::1.":                                                    "2001:db8::1",
	"peer [2001:db8::1]:4711 left":                                         "2001:db8::1",
	"client fe80::1%eth0 left":                                             "fe80::1",
	"[client 2001:db8:1:2:3:4:5:6]":                                        "2001:db8:1:2:3:4:5:6",
	`msg="login refused, client 192.0.2.1" level=warn`:                     "192.0.2.1",
	`{"message":"login of \"ann\" refused, ip 192.0.2.1"}`:                 "192.0.2.1",
	`{"peer":"192.0.2.1","port":80}`:                                       "192.0.2.1",
	`rcon from "192.0.2.1:27015"`:                                          "192.0.2.1",
	"client=192.0.2.1 agent=Chrome/91.0.4.114 version 7.4.0.1":             "192.0.2.1",
	`client: 192.0.2.1, server: x, host: "198.51.100.1"`:                   "192.0.2.1",
	"client 192.0.2.1, see http://198.51.100.1/ or sip:ann@198.51.100.2":   "192.0.2.1",

	"login of 'x from 198.51.100.2' refused, client '192.0.2.1:80'": "192.0.2.1",
	"can't greet ann's host, client 192.0.2.1":                      "192.0.2.1",
	`user 'x" from 198.51.100.2' unknown, client 192.0.2.1`:         "192.0.2.1",
	`{"message":"user 'x unknown","ip":"192.0.2.1"}`:                "192.0.2.1",
	"login of user 198.51.100.2 from 192.0.2.1 failed":              "192.0.2.1",
	"user=198.51.100.2 user_ip=192.0.2.1":                           "192.0.2.1",
	"connected to shop 198.51.100.1:80 from 192.0.2.1:4711":         "192.0.2.1",

	"listening on 192.0.2.1:80":                                  "",
	"connect to mx.example[192.0.2.1]:25: timed out":             "",
	"relay=mx.example[192.0.2.1]:25, status=sent":                "",
	"server: 192.0.2.1":                                          "",
	"version 4.4.0.1 started":                                    "",
	"adjusting clock 192.0.2.1 by 3 ms":                          "",
	"route 192.0.2.0/24 added":                                   "",
	"login from 192.0.2.1 or 198.51.100.1":                       "",
	"from 192.0.2.1, 198.51.100.1":                               "",
	`user "x from 192.0.2.1" unknown`:                            "",
	`log "x from 192.0.2.1" of ann`:                              "",
	`{"message":"user \"x from 192.0.2.1\" unknown"}`:            "",
	"GET http://192.0.2.1/ refused":                              "",
	"from 192.0.2.1.example.org":                                 "",
	"from 192.0.2.256":                                           "",
	"from 192.0.2.01":                                            "",
	"from 192.0.2":                                               "",
	"from 0.0.0.0":                                               "",
	"from ::":                                                    "",
	"MAC 00:17:10:88:bc:02":                                      "",
	"MAC=24:8a:07:9a:2a:f2:24:8a:07:50:2c:9e:08:00":              "",
	"key 24:8a:07:9a:2a:f2:24:8a":                                "",
	"Auth::Plain failed in Face::Add":                            "",
	"from ann@192.0.2.1":                                         "",
	"took 12:57:32 from start":                                   "",
	`login of "ann" refused`:                                     "",
	"localAddress: 192.0.2.1":                                    "",
	"user 'x from 192.0.2.1' unknown":                            "",
	"login of user 192.0.2.1 failed":                             "",
	"user=192.0.2.1":                                             "",
	"public ip: 192.0.2.1":                                       "",
	"external IP address 192.0.2.1":                              "",
	"connecting to database 192.0.2.1:5432":                      "",
	"cannot connect 192.0.2.1:5432: refused":                     "",
	"dial tcp 192.0.2.1:5432: connect: connection refused":       "",
	"dial tcp 198.51.100.1:4711->192.0.2.1:5432: i/o timeout":    "",
	"sending from a to 192.0.2.1":                                "",
	"sending packet: from 192.0.2.1[4500] to 198.51.100.1[4500]": "",
	"request > 192.0.2.1 dropped":                                "",
	"":                                                           "",
}

// textEvent returns the client and the fields of an event of text, nothing for no event.
func textEvent(t testing.TB, format, line string) string {
	var ev match.Event
	if !newParser(t, format, accesslog.Options{Year: 2018}).Parse([]byte(line), &ev) {
		return ""
	}
	return fmt.Sprintf("%s %s %s|%s|%s", ev.Time.Format("2006-01-02T15:04:05"), ev.Get(match.Client), ev.GetNamed("program"), ev.GetNamed("message"), ev.GetNamed("reason"))
}

// A text yields the client where a client stands. With another text there it yields none.
func TestTextClients(t *testing.T) {
	for text, want := range textClients {
		if want != "" {
			want = "2018-04-17T06:25:06 " + want + " |" + text + "|"
		}
		if got := textEvent(t, "text", "2018-04-17 06:25:06.5 "+text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if got := textEvent(t, "text", "2018-04-17 06:25:06.5 "+text+" from 203.0.113.9"); want != "" && got != "" {
			t.Errorf("%q with another client: %q, want no event", text, got)
		}
	}
}

// Nothing is allocated for a line.
func TestTextAllocatesNothing(t *testing.T) {
	p := newParser(t, "text", accesslog.Options{})
	for text := range textClients {
		line := []byte("2018-04-17 06:25:06.5 " + text)
		var ev match.Event
		if n := testing.AllocsPerRun(10, func() { p.Parse(line, &ev) }); n > 0 {
			t.Errorf("%q: %v allocations", line, n)
		}
	}
}

// The head of syslog is not part of the message, and messages of the table have their reasons.
func TestTextFields(t *testing.T) {
	const refused = "login of ann refused, client 192.0.2.1"
	for line, want := range map[string]string{
		"Apr 17 06:25:06 gate shop[812]: " + refused:                                          "192.0.2.1 shop|" + refused + "|",
		"Apr 17 06:25:06 198.51.100.1 shop: " + refused:                                       "192.0.2.1 shop|" + refused + "|",
		"Apr 17 06:25:06 198.51.100.1 " + refused:                                             "192.0.2.1 |" + refused + "|",
		"<13>1 2018-04-17T06:25:06Z gate shop 812 - - " + refused:                             "192.0.2.1 shop|" + refused + "|",
		"2018-04-17T06:25:06Z gate shop[812]: " + refused:                                     "192.0.2.1 shop|" + refused + "|",
		"[2018-04-17 06:25:06] WARN: " + refused:                                              "192.0.2.1 |WARN: " + refused + "|",
		"WARN [2018-04-17 06:25:06] " + refused:                                               "192.0.2.1 |WARN [2018-04-17 06:25:06] " + refused + "|",
		"Apr 17 06:25:06 gate sshd[1]: Failed password for root from 192.0.2.1 port 1 ssh2":   "192.0.2.1 sshd|Failed password for root from 192.0.2.1 port 1 ssh2|login failed",
		"Apr 17 06:25:06 gate sshd[1]: Accepted password for root from 192.0.2.1 port 1 ssh2": "192.0.2.1 sshd|Accepted password for root from 192.0.2.1 port 1 ssh2|",
		"Apr 17 06:25:06 gate sshd[1]: Accepted password for root":                            "",
		"2018-04-17T06:25:06Z shop 192.0.2.1:4711 198.51.100.9:80 0.04 200":                   "192.0.2.1 |shop 192.0.2.1:4711 198.51.100.9:80 0.04 200|",
		refused: "",
	} {
		if want != "" {
			want = "2018-04-17T06:25:06 " + want
		}
		if got := textEvent(t, "text", line); got != want {
			t.Errorf("%q:\n\t%q, want\n\t%q", line, got, want)
		}
	}
}

// The first time of a line counts, of whatever form.
func TestTextTimes(t *testing.T) {
	for line, want := range map[string]string{
		"17-04-2018 06:25:06":                        "text 2018-04-17T06:25:06",
		"17.04.2018 06:25:06":                        "text 2018-04-17T06:25:06",
		"04/17/2018 06:25:06":                        "text 2018-04-17T06:25:06",
		"04/17/18 06:25:06":                          "text 2018-04-17T06:25:06",
		"04/05/2018 06:25:06":                        "text 2018-04-05T06:25:06",
		"04-05-2018 06:25:06":                        "text 2018-05-04T06:25:06",
		"17/04/2018 06:25:06":                        "text-dmy 2018-04-17T06:25:06",
		"04-17-2018 06:25:06":                        "text-mdy 2018-04-17T06:25:06",
		"04/17/2018-06:25:06.25":                     "text-dmy 2018-04-17T06:25:06",
		"04/17/2018:06:25:06":                        "text-dmy 2018-04-17T06:25:06",
		"04/17/18@06:25:06":                          "text-dmy 2018-04-17T06:25:06",
		"L 04/17/2018 - 06:25:06:":                   "text-dmy 2018-04-17T06:25:06",
		"04/17/2018, 6:25:06 AM":                     "text 2018-04-17T06:25:06",
		"04/17/2018, 6:25:06 PM":                     "text 2018-04-17T18:25:06",
		"04/17/2018, 12:25:06 AM":                    "text 2018-04-17T00:25:06",
		"04/17/2018, 12:25:06 PM":                    "text 2018-04-17T12:25:06",
		"17-04-2018 06:25:06 +0200":                  "text 2018-04-17T04:25:06",
		"7 Apr 2018 06:25:06":                        "text 2018-04-07T06:25:06",
		"[7/Apr/2018 06:25:06]":                      "text 2018-04-07T06:25:06",
		"[02/sept./2018:06:25:06 +0200]":             "text 2018-09-02T04:25:06",
		"Apr-17-18 06:25:06":                         "text 2018-04-17T06:25:06",
		"180417  6:25:06":                            "text 2018-04-17T06:25:06",
		"[GIN] 2018/04/17 - 06:25:06 |":              "text 2018-04-17T06:25:06",
		"[PDT Apr 17 06:25:06]":                      "text 2018-04-17T06:25:06",
		"WARN: [Apr 17 06:25:06.643]":                "text 2018-04-17T06:25:06",
		"Tue Apr 17 06:25:06 CEST 2018":              "text 2018-04-17T04:25:06",
		"Tue Apr 17 06:25:06 XYZ 2018":               "text 2018-04-17T06:25:06",
		"@400000005ad5934c0ee6b280":                  "text 2018-04-17T06:25:06",
		"2018-04-17 06:25:06,797::WARN::":            "text 2018-04-17T06:25:06",
		"(W) 2018-04-17T06:25:06 -":                  "text 2018-04-17T06:25:06",
		"\x1b[33m[Nest] \x1b[39m04/17/2018 06:25:06": "text 2018-04-17T06:25:06",
		`{"ts":1523946306.25}`:                       "text 2018-04-17T06:25:06",
		"1523946306.25":                              "text 2018-04-17T06:25:06",
		"04-17 06:25:06.25":                          "text 2018-04-17T06:25:06",
		"id 1523946306":                              "text",
		"06:25:06":                                   "text",
		"04/17/2018 - 06":                            "text",
		"31-04-2018 06:25:06":                        "text",
		"17-17-2018 06:25:06":                        "text",
		"17-04/2018 06:25:06":                        "text",
		"x17-04-2018 06:25:06":                       "text",
		"180417 26:25:06":                            "text",
	} {
		format, at, _ := strings.Cut(want, " ")
		got, _, _ := strings.Cut(textEvent(t, format, line+" client 192.0.2.1"), " ")
		if got != at {
			t.Errorf("%q as %s is %q, want %q", line, format, got, at)
		}
	}
}

// A log is marked if its dates may be read in another order.
func TestTextOfEitherOrder(t *testing.T) {
	for sample, want := range map[string]bool{
		"04/05/2018 06:25:06 client 192.0.2.1\n":                                       true,
		"04-05-2018 06:25:06 client 192.0.2.1\n":                                       true,
		"04/04/2018 06:25:06 client 192.0.2.1\n":                                       false,
		"04/17/2018 06:25:06 client 192.0.2.1\n":                                       false,
		"04/05/2018-06:25:06 client 192.0.2.1\n":                                       false,
		"2018/04/05 06:25:06 client 192.0.2.1\n":                                       false,
		"04/05/2018 06:25:06 client 192.0.2.1\n04/13/2018 06:25:06 client 192.0.2.1\n": false,
	} {
		f, ok := accesslog.Detect([]byte(sample))
		if _, got := f.EitherOrder([]byte(sample), time.Now()); !ok || got != want {
			t.Errorf("%q as %s: %v, want %v", sample, f, got, want)
		}
	}
}

// The order whose last time is nearer to the clock, before or after it, is chosen.
func TestTextNearestOrder(t *testing.T) {
	for now, want := range map[string]string{
		"2018-04-07T06:00:00Z": "text-mdy", // of 04/06, 6 April, and 4 June in two months
		"2018-05-03T06:00:00Z": "text-mdy",
		"2018-06-04T06:20:00Z": "text-dmy",
		"2026-01-01T00:00:00Z": "text-dmy",
	} {
		at := must.Get(time.Parse(time.RFC3339, now))(t)
		sample := []byte("04/05/2018 06:25:06 client 192.0.2.1\n04/06/2018 06:25:06 client 192.0.2.1\n")
		f, _ := accesslog.Detect(sample)
		if nearest, either := f.EitherOrder(sample, at); !either || nearest.String() != want {
			t.Errorf("%s: %s, %v, want %s", now, nearest, either, want)
		}
	}
}

// FuzzText must find addresses that are in the line.
func FuzzText(f *testing.F) {
	for text := range textClients {
		f.Add([]byte("2018-04-17 06:25:06 " + text))
	}
	parsers := []*accesslog.Parser{newParser(f, "text", accesslog.Options{Year: 2016}), newParser(f, "text-dmy", accesslog.Options{Year: 2016}), newParser(f, "text-mdy", accesslog.Options{Year: 2016})}
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, p := range parsers {
			var ev match.Event
			if !p.Parse(line, &ev) || len(ev.GetNamed("reason")) > 0 {
				continue
			}
			client := string(ev.Get(match.Client))
			if _, ok := address.Parse(client); !ok || !strings.Contains(string(line), client) {
				t.Fatalf("client %q of %q", client, line)
			}
			if !strings.Contains(string(line), string(ev.GetNamed("message"))) || !strings.Contains(string(ev.GetNamed("message")), client) {
				t.Fatalf("message %q of %q", ev.GetNamed("message"), line)
			}
		}
	})
}
