package accesslog_test

import (
	"strings"
	"testing"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestSkippedLines has lines without an event: ordinary lines of other kinds are skipped; broken ones are bad.
func TestSkippedLines(t *testing.T) {
	const sshd, kernel = "May  8 00:02:30 gate sshd[15788]: ", "May  8 00:00:52 gate kernel: [35266.781076] "
	for format, lines := range map[string]map[string]bool{
		"messages": {
			sshd + "Accepted password for root from 203.0.113.9 port 1 ssh2":         true,
			sshd + "Connection closed by 203.0.113.9":                                true,
			sshd + "Failed password for root from 203.0.113.9 port 1 ssh2 [preauth]": true,
			"May  8 00:02:30 gate CRON[1]: pam_unix(cron:session): session opened":   true,
			"May  8 00:02:30 gate kernel: eth0 up":                                   true,
			kernel + "[UFW ALLOW] IN=e0 SRC=203.0.113.4 DST=x PROTO=TCP DPT=25 ":     true,
			kernel + "[UFW BLOCK] IN=e0":                                             true,
			"2026-05-08T00:02:30Z gate CRON[1]: x":                                   true,
			"<86>1 2026-05-08T00:02:30Z gate CRON 1 - - x":                           true,
			"<86>1 2026-05-08T00:02:30Z gate CRON 1 - [x":                            false,
			"<86>1 now gate CRON 1 - - x":                                            false,
			"May  8 00:02:30 ":                                                       false,
			"May 32 00:02:30 gate sshd[1]:":                                          false,
			"not a line of syslog":                                                   false,
			"":                                                                       false,
		},
		"clf":   {"not a line of clf": false, "": false, "# a comment": true},
		"caddy": {`{"level":"info","ts":1,"logger":"tls","msg":"cleaning storage unit"}`: true, `{"msg":"handled request","ts":"x"}`: false, "{": false, "x": false},
		"haproxy": {
			"Apr 17 06:25:06 gate haproxy[1]: Server shop/app1 is DOWN":                                                    true,
			"Apr 17 06:25:06 gate haproxy[1]: 192.0.2.1:9 [17/Apr/2018:06:25:06.250] tcp tcp/a 1/0/3 212 -- 0/0/0/0/0 0/0": true,
			"Apr 17 06:25:06 gate CRON[1]: x":                                                                              true,
			`Apr 17 06:25:06 gate haproxy[1]: 192.0.2.1:9 [17/Apr/2018:06:25:06.250] web web/a "GET`:                       false,
			"192.0.2.1:9": false,
		},
		"elb": {
			`2018-04-17T06:25:06Z a 192.0.2.1:9 198.51.100.7:80 0.1 0.2 0.3 - - 8 30 "- - - " "-" - -`: true,
			`2018-04-17T06:25:06Z a 192.0.2.1:9 198.51.100.7:80 0.1 0.2`:                               false,
		},
		"w3c":          {"#Version: 1.0": true, "  ": true, "2018-04-17 06:25:06 192.0.2.1": false},
		"traefik-json": {`{"level":"debug","msg":"x","time":"2018-04-17T06:25:06Z"}`: true, `{"RequestMethod":"GET"}`: false},
		"journald-json": {
			`{"__REALTIME_TIMESTAMP":"1","SYSLOG_IDENTIFIER":"cron","MESSAGE":"x"}`:                          true,
			`{"__REALTIME_TIMESTAMP":"1","SYSLOG_IDENTIFIER":"sshd","MESSAGE":"Connection closed"}`:          true,
			`{"__REALTIME_TIMESTAMP":"1","SYSLOG_IDENTIFIER":"sshd","MESSAGE":[70,97]}`:                      true,
			`{"__REALTIME_TIMESTAMP":"1","SYSLOG_IDENTIFIER":"sshd","MESSAGE":"Failed password for x from"}`: true,
			`{"SYSLOG_IDENTIFIER":"sshd","MESSAGE":"x"}`:                                                     false,
		},
		"docker-json:clf": {
			`{"log":"x\n","stream":"stderr","time":"t"}`: true,
			`{"log":"# x\n","stream":"stdout"}`:          true,
			`{"log":"x\n","stream":"stdout"}`:            false,
			`{"log":"x\n"}`:                              false,
			"2018-04-17T06:25:06Z stderr F x":            true,
			"2018-04-17T06:25:06Z stdout F x":            false,
		},
	} {
		for line, want := range lines {
			p := newParser(t, format, accesslog.Options{Year: 2022})
			var ev match.Event
			if p.Parse([]byte(line), &ev) || p.Skipped() != want {
				t.Errorf("%s: %q is skipped: %v, want %v", format, line, p.Skipped(), want)
			}
		}
		var all []string
		skipped := int64(0)
		for line, skip := range lines {
			all = append(all, line)
			if skip {
				skipped++
			}
		}
		f := must.Get(accesslog.ParseFormat(format))(t)
		log := []byte(strings.Join(all, "\n") + "\n")
		got := readLog(t, log, f, accesslog.Options{Year: 2022}, func(*match.Event) { t.Errorf("%s: an event", format) })
		if want := (lineCounts{skipped: skipped, bad: int64(len(lines)) - skipped}); got != want {
			t.Errorf("%s: lines %+v, want %+v", format, got, want)
		}
	}
}

// TestByteOrderMarks has marks in front of lines, where files of Windows programs were joined. They are not part of the
// client.
func TestByteOrderMarks(t *testing.T) {
	for format, line := range map[string]string{
		"clf":                   `192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 5`,
		"clf-vhost":             `a:80 192.0.2.1 - - [17/Apr/2018:06:25:06 +0000] "GET / HTTP/1.1" 200 5`,
		"json-zeek-dns":         `{"ts":"2018-03-24T17:15:20Z","id.orig_h":"192.0.2.1"}`,
		"messages":              "May  8 00:02:30 gate sshd[1]: Failed password for root from 192.0.2.1 port 1 ssh2",
		"csv:time=2@s,client=1": "192.0.2.1,5",
	} {
		for _, marks := range []string{"", "\ufeff", "\ufeff\ufeff"} {
			p := newParser(t, format, accesslog.Options{Year: 2018})
			var ev match.Event
			if !p.Parse([]byte(marks+line), &ev) || string(ev.Get(match.Client)) != "192.0.2.1" {
				t.Errorf("%s with marks %q: client %q", format, marks, ev.Get(match.Client))
			}
			if f, ok := accesslog.Detect([]byte(marks + line + "\n")); !strings.Contains(format, ":") && (!ok || f.String() != format) {
				t.Errorf("%s with marks %q is detected as %q", format, marks, f)
			}
		}
	}
}
