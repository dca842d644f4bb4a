package cli

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
)

// engineAttacks have the server compute or keep too much.
var engineAttacks = []attack{
	{"huge lists", nil, hugeLists, fault{"internal/server/httpapi/body.go", "a list of 349,001 entries", []string{"case list[depth] && n >= maxBatch:", "case list[depth] && n >= maxBatch<<20:"}}},
	{"lists of bans", nil, listsOfBans, fault{"internal/server/respapi/limits.go", "10,000 bans are in one answer", []string{"= 1000     // bans", "= 1 << 20  // bans"}}},
	{"wide rates", withManyRules, wideRates, fault{"internal/server/engine/stats.go", "want 400", []string{"perRule && points*rules > maxRuleRates", "perRule && points > rules*maxRuleRates"}}},
	{"long paths under hot rules", nil, longPaths, fault{"internal/server/hotkeys/list.go", "were resident", []string{"for l.bytes+n > l.budget", "for l.bytes+n > 1<<40+l.budget"}}},
	{"reports of hot keys", nil, hotReports, fault{"hotkey/detector.go", "of hot keys take", []string{"bound, reserve, sketches := cmp.Or(c.Budget, defaultBudget)", "bound, reserve, sketches := max(cmp.Or(c.Budget, NoBudget), 1<<32)"}}},
	{"open transactions", withTrustedProxy, openTransactions, fault{"internal/server/respapi/transaction.go", "forward-auth beside open transactions", []string{"if !s.queues.Take(n) {", "if s.queues.Take(n); n < 0 {"}}},
	{"trials", withKeptEvents, trials, fault{"internal/server/httpapi/rules.go", "another draft", []string{"ctx, stop := c.allow(maxTrial)", "ctx, stop := context.WithCancel(context.Background())"}}},
	{"states of followers", nil, followerStates, fault{"internal/server/follow/feeds.go", "were resident", []string{"maxFeedBytes = 64 << 20", "maxFeedBytes = 64 << 40"}}},
	{"a log with a huge line", withFollowedLog, hugeLine, fault{"internal/server/follow/generation.go", "were resident", []string{"const blockSize = 512 << 10", "const blockSize = 512 << 20"}}},
	{"odd rules files", nil, oddRulesFiles, fault{"internal/file/fileperm/fileperm.go", "SIGTERM with a FIFO", []string{"	f, _, err := Open(path)\n", "	f, err := os.Open(path)\n"}}},
}

// withManyRules starts a server with 300 rules.
func withManyRules(h *attacked) []string {
	h.Helper()
	text := hostileRules + "counters:\n  requests: {key: client, spans: [1m]}\n"
	for i := range 300 {
		text = strings.Replace(text, "bans:\n", fmt.Sprintf("  - {name: r%d, key: client, when: {path: /r%d}, limit: 5 per 1m}\nbans:\n", i, i), 1)
	}
	return []string{"--rules", writeRules(h.T, text)}
}

// withKeptEvents starts a server that keeps events for trials.
func withKeptEvents(h *attacked) []string {
	h.memory = 896
	return []string{"--keep-events", "32MiB", "--memory", "896MiB"}
}

// withFollowedLog starts a server that follows a log.
func withFollowedLog(h *attacked) []string {
	h.followed = filepath.Join(h.TempDir(), "access.log")
	must.Do(h, os.WriteFile(h.followed, []byte(goodLine), 0o600))
	return []string{"--follow", h.followed + "=clf"}
}

const goodLine = `192.0.2.50 - - [02/Mar/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 1 "-" "-"` + "\n"

// hugeLists sends lists of 349,000 empty objects in 1 MiB.
func hugeLists(h *attacked) {
	text := postText("/v1/take", `{"takes":[`+strings.Repeat("{},", 349_000)+`{}]}`)
	h.during(func() { h.attackers(16, func(int) { h.repeat(h.http, text, attackTime) }) })
	r, _ := http.NewRequest("POST", h.http+"/v1/take", strings.NewReader(text[strings.Index(text, "{"):]))
	r.Header.Set("Content-Type", "application/json")
	w := must.Get(h.web().Do(r))(h)
	defer w.Body.Close()
	if answer, _ := io.ReadAll(w.Body); !strings.Contains(string(answer), "a list has more than 1000 entries") {
		h.Errorf("a list of 349,001 entries is answered with %s", answer)
	}
}

// listsOfBans reads 150,000 bans again and again.
func listsOfBans(h *attacked) {
	const bans = 150_000
	c := h.healthy()
	for i := 0; i < bans; {
		c.buf = c.buf[:0]
		for range 500 {
			c.buf = resp.AppendCommand(c.buf, "BAN", "by-hand", fmt.Sprintf("user-%d", i), "1h", "an attack of which there is something to say")
			i++
		}
		must.Get(c.Write(c.buf))(h)
		for range 500 {
			if v, err := c.replies.Next(); err != nil || v.Err() != nil {
				h.Fatal(err, v.Err())
			}
		}
	}
	commands := []string{"BANS COUNT 10000\r\n", "BANS COUNT 1000\r\n"}
	requests := []string{"limit=1000&offset=100000", "limit=1000", "limit=1000&q=no"}
	h.during(func() {
		h.attackers(48, func(i int) {
			if i < 32 {
				h.repeat(h.resp, commands[i%2], attackTime)
				return
			}
			h.repeat(h.http, "GET /v1/bans?"+requests[i%3]+" HTTP/1.1\r\nHost: localhost\r\n\r\n", attackTime)
		})
	})
	if _, err := c.do("BANS", "COUNT", "10000"); err == nil {
		h.Errorf("10,000 bans are in one answer")
	}
}

// wideRates requests the rates of 300 rules in the largest number of parts.
func wideRates(h *attacked) {
	path := "/v1/rates?span=24h&points=1440&rules=1"
	h.during(func() {
		h.attackers(16, func(int) { h.repeat(h.http, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", attackTime) })
	})
	r, _ := http.NewRequest("GET", h.http+path, nil)
	if status, _ := h.statusOf(r); status != http.StatusBadRequest {
		h.Errorf("1440 parts for each of 300 rules: %d; want 400", status)
	}
}

// longPaths has events with paths of 60 KB, each another one, that become hot.
func longPaths(h *attacked) {
	h.during(func() {
		h.attackers(8, func(i int) {
			conn := h.open(h.resp)
			if conn == nil {
				return
			}
			defer conn.Close()
			path := "/" + strings.Repeat("x", 60_000)
			buf := make([]byte, 4096)
			for n := range 2000 {
				text := resp.AppendCommand(nil, "CHECK", "client", "192.0.2.66", "path", fmt.Sprintf("%s%d.%d", path, i, n), "COST", "1000")
				if _, err := conn.Write(text); err != nil {
					return
				}
				if _, err := conn.Read(buf); err != nil {
					return
				}
			}
		})
	})
}

// hotReports reports keys that were never reported before.
func hotReports(h *attacked) {
	h.during(func() {
		h.attackers(8, func(i int) {
			conn := h.open(h.resp)
			if conn == nil {
				return
			}
			defer conn.Close()
			buf := make([]byte, 4096)
			n := 0
			for end := time.Now().Add(attackTime); time.Now().Before(end); {
				args := []string{"HOT.REPORT", "page"}
				for range 200 {
					args = append(args, fmt.Sprintf("/%d/%d/%s", i, n, strings.Repeat("x", 150)), "1", "0")
					n++
				}
				if _, err := conn.Write(resp.AppendCommand(nil, args...)); err != nil {
					return
				}
				if _, err := conn.Read(buf); err != nil {
					return
				}
			}
		})
	})
	if bytes := h.metric("lately_hot_memory_bytes"); bytes > hostileMemory<<20/16 {
		h.Errorf("the counts of hot keys take %.0f MB; want at most a sixteenth of --memory", bytes/1e6)
	}
}

// trials tries drafts of 1,000 rules on all events that the server keeps, and goes away. Then another draft can be tried.
func trials(h *attacked) {
	c := h.healthy()
	for n := 0; n < 200_000; {
		c.buf = c.buf[:0]
		for range 1000 {
			c.buf = resp.AppendCommand(c.buf, "CHECK", "client", fmt.Sprintf("10.%d.%d.%d", n>>16&255, n>>8&255, n&255), "path", "/")
			n++
		}
		must.Get(c.Write(c.buf))(h)
		for range 1000 {
			must.Get(c.replies.Next())(h)
		}
	}
	var draft strings.Builder
	draft.WriteString("version: 1\nlimits:\n")
	for i := range 1000 {
		fmt.Fprintf(&draft, "  - {name: r%d, key: client, limit: %d per 1h}\n", i, i+1)
	}
	text := postText("/v1/rules/try", jsonText(map[string]string{"rules": draft.String()}))
	h.during(func() {
		h.attackers(4, func(int) {
			for end := time.Now().Add(attackTime); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
				if conn := h.open(h.http); conn != nil {
					_, _ = conn.Write([]byte(text))
					time.Sleep(200 * time.Millisecond)
					conn.Close()
				}
			}
		})
	})
	small := jsonText(map[string]string{"rules": "version: 1\n"})
	if !eventually(func() bool {
		r, _ := http.NewRequest("POST", h.http+"/v1/rules/try", strings.NewReader(small))
		r.Header.Set("Content-Type", "application/json")
		status, _ := h.statusOf(r)
		return status == http.StatusOK
	}) {
		h.Errorf("another draft cannot be tried a minute after those who tried one have gone")
	}
}

// followerStates opens feeds under thousands of names, each with the largest state.
func followerStates(h *attacked) {
	state := base64.StdEncoding.EncodeToString(make([]byte, 300<<10))
	var full atomic.Int64
	post := func(path string, body any) (status int, answer struct{ Session, Detail string }) {
		r, _ := http.NewRequest("POST", h.http+path, strings.NewReader(jsonText(body)))
		r.Header.Set("Content-Type", "application/json")
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, answer
		}
		defer w.Body.Close()
		_ = json.NewDecoder(w.Body).Decode(&answer)
		if strings.Contains(answer.Detail, "MiB of state") {
			full.Add(1)
		}
		return w.StatusCode, answer
	}
	h.during(func() {
		h.attackers(4, func(i int) {
			for n := range 500 {
				name := fmt.Sprintf("%d.%d", i, n)
				if _, feed := post("/v1/feeds/open", map[string]string{"feed": name, "process": "p"}); feed.Session != "" {
					post("/v1/feeds/events", map[string]any{"feed": name, "session": feed.Session, "number": 1, "events": "", "state": state})
				}
			}
		})
	})
	if full.Load() == 0 {
		h.Errorf("no state of 2,000 followers, 600 MB together, was refused")
	}
	http.DefaultClient.CloseIdleConnections()
}

// hugeLine writes a line of 450 MB into a log that is followed, and then a flood of good ones. These are judged.
func hugeLine(h *attacked) {
	f := must.Get(os.OpenFile(h.followed, os.O_APPEND|os.O_WRONLY, 0))(h)
	defer f.Close()
	h.during(func() {
		block, good := []byte(strings.Repeat("x", 1<<20)), []byte(strings.Repeat(goodLine, 10_000))
		for range 450 {
			if _, err := f.Write(block); err != nil {
				h.Error(err)
			}
		}
		if _, err := f.Write([]byte("\n")); err != nil {
			h.Error(err)
		}
		for range 20 {
			if _, err := f.Write(good); err != nil {
				h.Error(err)
			}
		}
		if !eventually(func() bool { return h.metric("lately_log_lines_total") >= 200_002 }) {
			h.Errorf("%.0f lines were read; want 200,002", h.metric("lately_log_lines_total"))
		}
	})
}

// jsonText returns v as JSON.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// oddRulesFiles replaces the rules file by what does not end, and ends the server.
func oddRulesFiles(h *attacked) {
	replace := func(with func(path string) error) {
		must.Do(h, os.Remove(h.rules))
		must.Do(h, with(h.rules))
		_ = h.cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(2500 * time.Millisecond) // it is also looked at every two seconds
	}
	h.during(func() {
		replace(func(path string) error { return os.Symlink("/dev/zero", path) })
		replace(func(path string) error { return syscall.Mkfifo(path, 0o600) })
	})
	h.judge()
	if err := h.end(); err != nil {
		h.Errorf("SIGTERM with a FIFO for a rules file: %v", err)
	}
}

// withTrustedProxy starts a server that answers forward-auth.
func withTrustedProxy(*attacked) []string { return []string{"--trusted-proxy", "127.0.0.0/8"} }

// openTransactions queues commands, and never executes them.
func openTransactions(h *attacked) {
	text := "MULTI\r\n" + strings.Repeat("*2\r\n$4\r\nECHO\r\n$60000\r\n"+strings.Repeat("x", 60_000)+"\r\n", 16)
	h.during(func() {
		h.attackers(200, func(i int) {
			if i == 0 {
				h.forwardAuth(attackTime)
				return
			}
			if conn := h.open(h.resp); conn != nil {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(2 * attackTime))
				if _, err := io.WriteString(conn, text); err == nil {
					_, _ = io.Copy(io.Discard, conn)
				}
			}
		})
	})
}

// forwardAuth requests a decision as a proxy does, with 12 KB of headers, from the middle of an attack on. Memory for one
// request must become free.
func (h *attacked) forwardAuth(since time.Duration) {
	time.Sleep(since)
	status := 0
	for end := time.Now().Add(since); time.Now().Before(end) && status != http.StatusNoContent; time.Sleep(20 * time.Millisecond) {
		r, _ := http.NewRequest("GET", h.http+"/v1/auth", nil)
		r.Header.Set("X-Forwarded-For", "192.0.2.1")
		r.Header.Set("X-Forwarded-Uri", "/")
		r.Header.Set("Cookie", strings.Repeat("c", 12_000))
		if w, err := h.web().Do(r); err == nil {
			status = w.StatusCode
			w.Body.Close()
		}
	}
	if status != http.StatusNoContent {
		h.Errorf("forward-auth beside open transactions is answered by %d", status)
	}
}
