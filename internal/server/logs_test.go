//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

const logRules = `version: 1
counters:
  requests: {key: client, spans: [24h]}
bans:
  - {name: flood, key: client, after: 50 hits in 1h, for: 2h}
hot:
  - {name: page, key: path, threshold: 20 per 10s, hold: 60s}
`

// A logWriter writes the access log of a web server.
type logWriter struct {
	t    *testing.T
	path string
}

func (w logWriter) requests(client string, at time.Time, n int) {
	w.t.Helper()
	line := fmt.Sprintf("%s - - [%s] \"GET /p HTTP/1.1\" 200 5\n", client, at.Format("02/Jan/2006:15:04:05 -0700"))
	f := must.Get(os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600))(w.t)
	defer f.Close()
	must.Get(f.WriteString(strings.Repeat(line, n)))(w.t)
}

// requestsOf returns how many requests of a client s has counted.
func requestsOf(t *testing.T, s *Server, client string) uint64 {
	t.Helper()
	count, _, err := s.engine.Session().Count("requests", 24*time.Hour, client)
	if err != nil {
		t.Fatal(err)
	}
	return count.Hi
}

// bansOf returns the bans that hold, by client.
func bansOf(t *testing.T, s *Server) map[string]api.Ban {
	t.Helper()
	bans := map[string]api.Ban{}
	for b, err := range s.engine.Bans().All() {
		if err != nil {
			t.Fatal(err)
		}
		bans[b.Values()[0]] = b
	}
	return bans
}

// following returns the settings of a server that follows a log, and the log.
func following(t *testing.T) (Config, logWriter) {
	t.Helper()
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yaml")
	must.Do(t, os.WriteFile(rules, []byte(logRules), 0o600))
	w := logWriter{t, filepath.Join(dir, "access.log")}
	return Config{RulesFiles: []string{rules}, Data: filepath.Join(dir, "data"), Follow: []follow.Log{{Path: w.path}}}, w
}

// TestFollow judges the events of a log at their own times: a ban begins and ends by them, and a ban that has already ended
// is not begun.
func TestFollow(t *testing.T) {
	c, log := following(t)
	now := time.Now().Truncate(time.Second)
	log.requests("192.0.2.1", now.Add(-3*time.Hour), 60) // banned for two hours
	log.requests("192.0.2.2", now.Add(-time.Hour), 60)
	s, url := started(t, c)
	log.requests("192.0.2.3", now, 51)
	eventually(t, "all events are counted", func() bool { return requestsOf(t, s, "192.0.2.3") == 51 })
	eventually(t, "the last one is judged", func() bool { return bansOf(t, s)["192.0.2.3"].Rule != "" }) // it is counted first
	bans := bansOf(t, s)
	if len(bans) != 2 || !bans["192.0.2.2"].Until.Equal(now.Add(time.Hour)) || !bans["192.0.2.3"].Until.Equal(now.Add(2*time.Hour)) {
		t.Errorf("the bans are %+v", bans)
	}
	eventually(t, "the lines are in the metrics", func() bool { // they are counted after a block
		_, values := scrape(t, url, "")
		return values[`lately_log_lines_total{file="`+log.path+`"}`] == 171 && values[`lately_log_bad_lines_total{file="`+log.path+`"}`] == 0
	})
	_, body := got(t, url+"/v1/status")
	var status api.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil || len(status.Logs) != 1 || status.Logs[0].File != log.path || status.Logs[0].Lines != 171 || status.Enforcement != nil {
		t.Errorf("the status is %+v, %v", status, err)
	}
	for k, err := range s.engine.Bans().All() {
		if err == nil && k.Values()[0] == "192.0.2.1" {
			t.Errorf("%+v is over", k)
		}
	}
	if d := must.Get(s.engine.Limiter().Rule("flood"))(t).Take("192.0.2.2"); d.Err != nil || d.Allowed {
		t.Errorf("a request of a client that the log banned: %+v", d)
	}
}

// TestFollowBehindProxy finds the clients behind a trusted proxy, and believes no others.
func TestFollowBehindProxy(t *testing.T) {
	c, log := following(t)
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	at := time.Now().Format("02/Jan/2006:15:04:05 -0700")
	var text strings.Builder
	for range 51 {
		fmt.Fprintf(&text, "192.0.2.1 - - [%[1]s] \"GET /a HTTP/1.1\" 200 5 \"-\" \"-\" \"203.0.113.9, 198.51.100.1\"\n"+
			"203.0.113.5 - - [%[1]s] \"GET /b HTTP/1.1\" 200 5 \"-\" \"-\" \"203.0.113.9\"\n", at)
	}
	must.Do(t, os.WriteFile(log.path, []byte(text.String()), 0o600))
	s, _ := started(t, c)
	eventually(t, "both clients are banned", func() bool { return len(bansOf(t, s)) >= 2 })
	bans := bansOf(t, s)
	for _, client := range []string{"198.51.100.1", "203.0.113.5"} {
		if _, ok := bans[client]; !ok || len(bans) != 2 {
			t.Errorf("the bans are %+v", bans)
		}
	}
}

// craftedLines are lines that nginx writes, with escapes, for requests of A that name V where
// a client may write: as user, request line, referer, agent and X-Forwarded-For.
var craftedLines = []string{
	`A - V [TIME] "GET / HTTP/1.1" 401 5 "-" "-"`,
	`A - V - - [TIME] \x22GET / HTTP/1.1\x22 200 5 [TIME] "GET / HTTP/1.1" 401 5 "-" "-"`,
	`A - x\x0AV - - [TIME] "GET / HTTP/1.1" 401 5 "-" "-"`,
	`A - - [TIME] "GET /\x0AV - - [TIME] \x22GET / HTTP/1.1\x22 200 5 HTTP/1.1" 400 5 "-" "-"`,
	`A - - [TIME] "V - - [TIME] \x22GET / HTTP/1.1\x22 200 5" 400 150 "-" "-"`,
	`A - - [TIME] "\x0D\x0AV" 400 150 "-" "-"`,
	`A - - [TIME] "GET /?client=V HTTP/1.1" 200 5 "V - - [TIME]" "-"`,
	`A - - [TIME] "GET / HTTP/1.1" 200 5 "-" "\x22\x0AV - - [TIME] \x22GET / HTTP/1.1\x22 200 5"`,
	`A - - [TIME] "GET / HTTP/1.1" 200 5 "-" "-" "V"`,
}

// TestFollowCraftedLines bans the sender of crafted requests, and not the client that they name. A program that writes a
// line end as it was sent would have that client banned.
func TestFollowCraftedLines(t *testing.T) {
	const victim = "203.0.113.7"
	for name, unescaped := range map[string]bool{"escaped": false, "control": true} {
		t.Run(name, func(t *testing.T) {
			c, log := following(t)
			at := time.Now().Format("02/Jan/2006:15:04:05 -0700")
			var text strings.Builder
			for i, line := range craftedLines {
				attacker := fmt.Sprintf("192.0.2.%d", i+1)
				line = strings.NewReplacer("A ", attacker+" ", "V", victim, "TIME", at).Replace(line)
				if unescaped {
					line = strings.NewReplacer(`\x0A`, "\n", `\x22`, `"`).Replace(line)
				}
				text.WriteString(strings.Repeat(line+"\n", 51))
			}
			must.Do(t, os.WriteFile(log.path, []byte(text.String()), 0o600))
			log.requests("198.51.100.1", time.Now(), 51)
			s, _ := started(t, c)
			eventually(t, "the last client is banned", func() bool { return !bansOf(t, s)["198.51.100.1"].Until.IsZero() })
			bans := bansOf(t, s)
			if got := !bans[victim].Until.IsZero(); got != unescaped {
				t.Errorf("the victim is banned: %v", got)
			}
			for i, line := range craftedLines {
				if attacker := fmt.Sprintf("192.0.2.%d", i+1); !unescaped && bans[attacker].Until.IsZero() {
					t.Errorf("who sends this is not banned: %s", line)
				}
			}
		})
	}
}

// TestFollowAfterKill kills a server after a snapshot and more lines: the next one has each line
// counted once, and the ban.
func TestFollowAfterKill(t *testing.T) {
	c, log := following(t)
	c.SnapshotEvery = time.Hour
	now := time.Now().Truncate(time.Second)
	s, _ := started(t, c)
	log.requests("192.0.2.1", now, 30)
	log.requests("192.0.2.2", now, 7)
	eventually(t, "the first lines are counted", func() bool { return requestsOf(t, s, "192.0.2.2") == 7 })
	must.Do(t, s.save())
	log.requests("192.0.2.1", now, 30)
	log.requests("192.0.2.2", now, 5)
	eventually(t, "the next lines are counted", func() bool { return requestsOf(t, s, "192.0.2.2") == 12 })
	want := bansOf(t, s)["192.0.2.1"]
	if want.Until != now.Add(2*time.Hour).UTC() && !want.Until.Equal(now.Add(2*time.Hour)) {
		t.Fatalf("the ban is %+v", want)
	}
	eventually(t, "the ban is in the journal", func() bool {
		state := must.Get(os.ReadFile(filepath.Join(c.Data, "state")))(t)
		return strings.Contains(string(state), `"key":["192.0.2.1"]`)
	})
	// The files as a killed process leaves them, and a rotation before the next one begins.
	c.Data = copied(t, c.Data)
	must.Do(t, os.Rename(log.path, log.path+".1"))
	logWriter{t, log.path + ".1"}.requests("192.0.2.2", now, 1)
	log.requests("192.0.2.2", now, 2)
	next, _ := started(t, c)
	if got := bansOf(t, next)["192.0.2.1"]; !got.Until.Equal(want.Until) {
		t.Errorf("at once, the ban is %+v, want %+v", got, want)
	}
	eventually(t, "all lines are counted", func() bool { return requestsOf(t, next, "192.0.2.2") >= 15 })
	if a, b := requestsOf(t, next, "192.0.2.1"), requestsOf(t, next, "192.0.2.2"); a != 60 || b != 15 {
		t.Errorf("%d and %d requests are counted, want 60 and 15", a, b)
	}
	if got := bansOf(t, next)["192.0.2.1"]; !got.Until.Equal(want.Until) || got.Count != want.Count {
		t.Errorf("the ban is %+v, want %+v", got, want)
	}
}

// TestFollowKilledAtOnce kills a server at the first line that it judges, and rotates the log before the
// next one begins, which finds the file and counts each line once. So does one that has followed another log
// before.
func TestFollowKilledAtOnce(t *testing.T) {
	c, log := following(t)
	c.SnapshotEvery = time.Hour
	for round := range 2 {
		first, another := make(chan struct{}), make(chan struct{})
		once := sync.OnceFunc(func() { close(first); <-another })
		c.Decided = func(*match.Event, ratelimit.Decision) { once() }
		now := time.Now().Truncate(time.Second)
		client := fmt.Sprintf("192.0.2.%d", round)
		log.requests(client, now, 3)
		s, _ := started(t, c)
		<-first
		c.Data, c.Decided = copied(t, c.Data), nil // the files as a killed process leaves them
		close(another)
		eventually(t, "the lines are judged", func() bool { return requestsOf(t, s, client) == 3 })
		must.Do(t, os.Rename(log.path, log.path+".1"))
		log.requests(client, now.Add(time.Second), 2)
		next, _ := started(t, c)
		eventually(t, "all lines are counted", func() bool { return requestsOf(t, next, client) >= 5 })
		if n := requestsOf(t, next, client); n != 5 {
			t.Errorf("%d requests are counted, want 5", n)
		}
		must.Do(t, next.save())
		c.Data = copied(t, c.Data)
		log.path = filepath.Join(filepath.Dir(log.path), "other.log")
		c.Follow = append(c.Follow, follow.Log{Path: log.path})
	}
}

// TestFollowSetting reads what --follow takes.
func TestFollowSetting(t *testing.T) {
	for text, want := range map[string]string{
		"access.log": "access.log ", "access.log=clf": "access.log clf", "a=b.log=auto": "a=b.log ",
		"app.json=json:time=ts@s,client=ip": "app.json json:time=ts@s,client=ip", "=clf": "", "a=b": "",
	} {
		l, ok := followed.parse(text)
		if got := l.Path + " " + l.Format.String(); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v", text, got, ok)
		}
	}
}

// TestFollowedNames reads the names of logs with their formats.
func TestFollowedNames(t *testing.T) {
	for text, want := range map[string][2]string{
		"-":                             {"-", ""},
		"-=clf":                         {"-", "clf"},
		"access.log=auto":               {"access.log", ""},
		"a=b.log=clf":                   {"a=b.log", "clf"},
		"journal":                       {"journal", ""},
		"journal:ssh.service":           {"journal:ssh.service", ""},
		"journal:nginx=clf":             {"journal:nginx", "clf"},
		"journal:_COMM=caddy":           {"journal:_COMM=caddy", ""}, // caddy is a format, too
		"journal:a.service,_COMM=caddy": {"journal:a.service,_COMM=caddy", ""},
		"journal:_COMM=caddy=clf":       {"journal:_COMM=caddy", "clf"},
	} {
		log, ok := followed.parse(text)
		if !ok || log.Path != want[0] || log.Format.String() != want[1] {
			t.Errorf("%s: %q, format %q, %v", text, log.Path, log.Format.String(), ok)
		}
	}
	for _, text := range []string{"", "a=b", "=clf"} {
		if log, ok := followed.parse(text); ok {
			t.Errorf("%q: %q", text, log.Path)
		}
	}
}

// A mistake in a file of patterns is an error with its place.
func TestFollowedPatternsHaveErrors(t *testing.T) {
	name := filepath.Join(t.TempDir(), "wrong.regex")
	must.Do(t, os.WriteFile(name, []byte("match (a\n"), 0o600))
	var logs []follow.Log
	for _, text := range []string{"app.log=regex:" + name, "journal:app=regex:" + name} {
		if err := followedLogs(&logs)([]string{text}); err == nil || !strings.Contains(err.Error(), name+":1:7: missing closing )") {
			t.Errorf("%s: %v", text, err)
		}
	}
	must.Do(t, os.WriteFile(name, []byte("match a <HOST>\n"), 0o600))
	if err := followedLogs(&logs)([]string{"app.log=regex:" + name, "other.log"}); err != nil || len(logs) != 2 || logs[0].Format.String() != "regex:"+name || logs[1].Path != "other.log" {
		t.Errorf("%v: %v", err, logs)
	}
}
