package cli

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/resp"
)

// How long an attack lasts that could go on for ever, and how many connections one has
// that holds many: less than one address may have.
const (
	attackTime  = 4 * time.Second
	attackConns = 1000
)

const (
	hostileAdmin = "hostile-admin-token-0123456789-0123456789"
	hostileRead  = "hostile-read-token-0123456789-01234567890"
)

// withTokens starts a server with tokens.
func withTokens(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte("admin "+hostileAdmin+"\nread "+hostileRead+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOSTILE_TOKEN", hostileAdmin)
	return []string{"--token-file", path}
}

// withManyRules starts a server with 300 rules.
func withManyRules(t *testing.T) []string {
	t.Helper()
	text := hostileRules + "counters:\n  requests: {key: client, spans: [1m]}\n"
	for i := range 300 {
		text = strings.Replace(text, "bans:\n", fmt.Sprintf("  - {name: r%d, key: client, when: {path: /r%d}, limit: 5 per 1m}\nbans:\n", i, i), 1)
	}
	return []string{"--rules", writeRules(t, text)}
}

// halfSentBodies announces 1 MiB and sends 600 KB of it.
func halfSentBodies(h *siege) {
	text := announced("/v1/check", 1<<20, strings.Repeat(" ", 600_000))
	h.under(func() { h.attackers(attackConns, func(int) { h.hold(h.http, text, attackTime, attackTime) }) })
}

// halfSentLogins announces the largest body and sends one byte, without a token, and
// comes back: memory that is used again has to be cleared, and so is resident.
func halfSentLogins(h *siege) {
	text := announced("/v1/login", 1<<20, "{")
	h.under(func() { h.attackers(attackConns, func(int) { h.hold(h.http, text, time.Second, attackTime) }) })
}

// halfSentHeaders sends 50 KB of a header line.
func halfSentHeaders(h *siege) {
	text := "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 50_000)
	h.under(func() { h.attackers(attackConns, func(int) { h.hold(h.http, text, attackTime, attackTime) }) })
}

// halfSentCommands sends 500 KB of a command.
func halfSentCommands(h *siege) {
	arg := fmt.Sprintf("$60000\r\n%s\r\n", strings.Repeat("x", 60_000))
	text := "PING\r\n*100\r\n" + strings.Repeat(arg, 8) + "$60000\r\n"
	h.under(func() { h.attackers(attackConns, func(int) { h.hold(h.resp, text, attackTime, attackTime) }) })
}

// hugeLists sends lists of 349,000 empty objects in 1 MiB.
func hugeLists(h *siege) {
	text := postText("/v1/take", `{"takes":[`+strings.Repeat("{},", 349_000)+`{}]}`)
	h.under(func() { h.attackers(16, func(int) { h.repeat(h.http, text, attackTime) }) })
}

// listsOfBans reads 150,000 bans again and again.
func listsOfBans(h *siege) {
	const bans = 150_000
	c := h.healthy()
	for i := 0; i < bans; {
		c.buf = c.buf[:0]
		for range 500 {
			c.buf = resp.AppendCommand(c.buf, "BAN", "by-hand", fmt.Sprintf("user-%d", i), "1h", "an attack of which there is something to say")
			i++
		}
		if _, err := c.Write(c.buf); err != nil {
			h.Fatal(err)
		}
		for range 500 {
			if v, err := c.replies.Next(); err != nil || v.Err() != nil {
				h.Fatal(err, v.Err())
			}
		}
	}
	commands := []string{"BANS COUNT 10000\r\n", "BANS COUNT 1000\r\n"}
	requests := []string{"limit=1000&offset=100000", "limit=1000", "limit=1000&q=no"}
	h.under(func() {
		h.attackers(48, func(i int) {
			if i < 32 {
				h.repeat(h.resp, commands[i%2], attackTime)
				return
			}
			h.repeat(h.http, "GET /v1/bans?"+requests[i%3]+" HTTP/1.1\r\nHost: localhost\r\n\r\n", attackTime)
		})
	})
}

// wideRates asks for the rates of 300 rules in as many parts as there are.
func wideRates(h *siege) {
	path := "/v1/rates?span=24h&points=1440&rules=1"
	h.under(func() {
		h.attackers(16, func(int) { h.repeat(h.http, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", attackTime) })
	})
	r, _ := http.NewRequest("GET", h.http+path, nil)
	if status, _ := h.statusOf(r); status != http.StatusBadRequest {
		h.Errorf("1440 parts for each of 300 rules: %d; want 400", status)
	}
}

// failedLogins guesses tokens from the address of a client with a valid one, and logs in
// more often than sessions used to be kept.
func failedLogins(h *siege) {
	login := func(token string) (int, string) {
		r, _ := http.NewRequest("POST", h.http+"/v1/login", strings.NewReader(`{"token":"`+token+`"}`))
		r.Header.Set("Content-Type", "application/json")
		status, header := h.statusOf(r)
		cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
		return status, cookie
	}
	_, session := login(hostileAdmin)
	wrong := postText("/v1/login", `{"token":"wrong-wrong-wrong-wrong-wrong-wrong-wrong"}`)
	h.under(func() {
		h.attackers(32, func(i int) {
			if i%2 == 0 {
				h.repeat(h.http, wrong, attackTime)
				return
			}
			h.repeat(h.resp, "AUTH wrong-wrong-wrong-wrong-wrong-wrong\r\n", attackTime)
		})
	})
	for range 20 {
		login("wrong-wrong-wrong-wrong-wrong-wrong-wrong")
	}
	for range 1100 {
		if status, _ := login(hostileRead); status != http.StatusOK {
			h.Fatalf("a login with a valid token beside those that failed: %d", status)
		}
	}
	r, _ := http.NewRequest("GET", h.http+"/v1/status", nil)
	r.Header.Set("Cookie", session)
	if status, _ := h.statusOf(r); status != http.StatusOK {
		h.Errorf("the admin's session after 1,100 other logins: %d", status)
	}
	if n := len(h.log.String()); n > 100_000 {
		h.Errorf("the log has %d bytes about failed logins", n)
	}
}

// deafSubscribers subscribes to events and does not read, while decisions begin bans.
func deafSubscribers(h *siege) {
	var next atomic.Int64
	bans := func(c *talker, n int) time.Duration { // begins n bans, pipelined
		began := time.Now()
		for range n / 100 {
			c.buf = c.buf[:0]
			for range 50 {
				i := next.Add(1)
				client := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
				c.buf = resp.AppendCommand(c.buf, "CHECK", "client", client, "path", "/knock")
				c.buf = resp.AppendCommand(c.buf, "CHECK", "client", client, "path", "/knock")
			}
			if _, err := c.Write(c.buf); err != nil {
				h.Fatal(err)
			}
			for range 100 {
				if _, err := c.replies.Next(); err != nil {
					h.Fatal(err)
				}
			}
		}
		return time.Since(began)
	}
	const n = 1600
	healthy, control := h.healthy(), h.control.dial()
	alone := bans(healthy, n)
	for range 10 {
		alone = min(alone, bans(healthy, n))
	}
	stop := make(chan struct{})
	var subscribed atomic.Int64
	var took, quiet time.Duration
	h.under(func() {
		go func() {
			for end := time.Now().Add(10 * time.Second); subscribed.Load() < attackConns && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
			}
			bans(healthy, n)
			time.Sleep(500 * time.Millisecond) // what the kernels keep for them is full then
			var both sync.WaitGroup
			both.Go(func() { took = bans(healthy, n) })
			both.Go(func() { quiet = bans(control, n) })
			both.Wait()
			close(stop)
		}()
		h.attackers(attackConns, func(i int) {
			addr, text := h.resp, "SUBSCRIBE bans\r\n"
			if i%2 == 0 {
				addr, text = h.http, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
			}
			if conn := h.open(addr); conn != nil {
				defer conn.Close()
				_ = conn.(*net.TCPConn).SetReadBuffer(4096)
				_, _ = conn.Write([]byte(text))
				_, _ = conn.Read(make([]byte, 64))
			}
			subscribed.Add(1)
			<-stop
		})
	})
	h.Logf("%d bans begin within %v beside %d subscribers that do not read; alone %v, on a server that nobody attacks %v", n/2, took, attackConns, alone, quiet)
	if took > 5*max(alone, quiet, 20*time.Millisecond) {
		h.Errorf("decisions that begin bans take %v beside subscribers that do not read; alone %v", took, alone)
	}
}

// deafClients asks for much and reads nothing.
func deafClients(h *siege) {
	commands := strings.Repeat(string(resp.AppendCommand(nil, "ECHO", strings.Repeat("x", 60_000))), 20)
	requests := strings.Repeat("GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n", 200)
	h.under(func() {
		h.attackers(attackConns, func(i int) {
			addr, text := h.resp, commands
			if i%2 == 0 {
				addr, text = h.http, requests
			}
			conn := h.open(addr)
			if conn == nil {
				return
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(attackTime))
			for {
				if _, err := conn.Write([]byte(text)); err != nil {
					return
				}
			}
		})
	})
}

// longPaths has events with paths of 60 KB, each another one, under a hot rule.
func longPaths(h *siege) {
	h.under(func() {
		h.attackers(8, func(i int) {
			conn := h.open(h.resp)
			if conn == nil {
				return
			}
			defer conn.Close()
			path := "/" + strings.Repeat("x", 60_000)
			buf := make([]byte, 4096)
			for n := range 2000 {
				text := resp.AppendCommand(nil, "CHECK", "client", "192.0.2.66", "path", fmt.Sprintf("%s%d.%d", path, i, n))
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

// oddRulesFiles replaces the rules file by what does not end, and ends the server.
func oddRulesFiles(h *siege) {
	replace := func(with func(path string) error) {
		if err := os.Remove(h.rules); err != nil {
			h.Fatal(err)
		}
		if err := with(h.rules); err != nil {
			h.Fatal(err)
		}
		_ = h.cmd.Process.Signal(syscall.SIGHUP)
		time.Sleep(2500 * time.Millisecond) // it is also looked at every two seconds
	}
	h.under(func() {
		replace(func(path string) error { return os.Symlink("/dev/zero", path) })
		replace(func(path string) error { return syscall.Mkfifo(path, 0o600) })
	})
	h.verdict()
	if err := h.end(); err != nil {
		h.Errorf("SIGTERM with a FIFO for a rules file: %v", err)
	}
}
