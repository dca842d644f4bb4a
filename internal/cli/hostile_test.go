package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHostile runs attacks against a server in a process of its own: the program named
// lately in the folder that LATELY_HOSTILE names.
//
//	make hostile
//
// While each attack runs, another client asks for decisions. The resident memory of the
// server must stay below its --memory and 150 MiB, and the client's latency within a
// multiple of that of an idle server, or, on a busy machine, of that of another server which
// nobody attacks and which is asked at the same time. To see what an attack does to an older server, put
// its program into the folder.
func TestHostile(t *testing.T) {
	folder := os.Getenv("LATELY_HOSTILE")
	if folder == "" {
		t.Skip("SKIP: attacks take minutes; run make hostile")
	}
	if runtime.GOOS != "linux" {
		t.Skip("SKIP: resident memory is read from /proc")
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, c := range []struct {
		name   string
		flags  func(t *testing.T) []string // nil for none
		attack func(h *siege)
	}{
		{"half-sent bodies", nil, halfSentBodies},
		{"half-sent logins", withTokens, halfSentLogins},
		{"half-sent headers", nil, halfSentHeaders},
		{"half-sent commands", nil, halfSentCommands},
		{"huge lists", nil, hugeLists},
		{"lists of bans", nil, listsOfBans},
		{"wide rates", withManyRules, wideRates},
		{"failed logins", withTokens, failedLogins},
		{"subscribers that do not read", nil, deafSubscribers},
		{"clients that do not read", nil, deafClients},
		{"long paths under hot rules", nil, longPaths},
		{"odd rules files", nil, oddRulesFiles},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHostile(t, c.flags)
			c.attack(h)
			if !h.judged {
				h.verdict()
			}
		})
	}
}

const (
	hostileMemory = 256 // MiB: --memory
	besideMemory  = 150 // MiB more that may be resident

	// slower is by how much an attack may raise the latency of others, at the 90th
	// percentile, from the larger of what it was and leastLatency. The attackers share
	// the processors with the server.
	slower       = 200
	leastLatency = 250 * time.Microsecond

	// slowerThanControl is by how much the latency may be above that of the server that
	// nobody attacks, which the attackers share the processors with, too.
	slowerThanControl = 10
)

const hostileRules = `version: 1
limits:
  - {name: per-client, key: client, limit: 1000000 per 1m}
bans:
  - {name: knock, key: client, when: {path: /knock}, after: 1 hits in 1m, for: 1h}
  - {name: by-hand, key: user, after: 60000 hits in 1m, for: 1h}
hot:
  - {name: page, key: path, threshold: 1000 per 2s, hold: 60s}
`

// A siege is a server under attack.
type siege struct {
	*testing.T
	*serving
	control       *serving // that nobody attacks
	rules         string   // its rules file
	alone, beside []time.Duration
	quiet         []time.Duration // of the control, during attacks
	deadline      time.Time
	judged        bool // there was a verdict
}

func newHostile(t *testing.T, flags func(t *testing.T) []string) *siege {
	t.Helper()
	h := &siege{T: t, deadline: time.Now().Add(time.Minute)}
	args := []string{"--memory", fmt.Sprint(hostileMemory, "MiB"), "--log-level", "warn"}
	if help, _ := exec.Command("lately", "serve", "--help").Output(); !strings.Contains(string(help), "--memory") {
		args = []string{"--memory-limit", "64MiB", "--counter-budget", "64MiB"} // an older one
	}
	if flags != nil {
		args = append(args, flags(t)...)
	}
	if !slices.Contains(args, "--rules") {
		h.rules = writeRules(t, hostileRules)
		args = append(args, "--rules", h.rules)
	}
	h.serving, h.control = serve(t, args...), serve(t, "--rules", writeRules(t, hostileRules))
	h.alone = h.ask(h.healthy(), func(n int) bool { return n < 500 })
	return h
}

// under runs an attack, and asks for decisions meanwhile.
func (h *siege) under(attack func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		attack()
	}()
	going := func(int) bool {
		select {
		case <-done:
			return false
		default:
			return true
		}
	}
	var quiet sync.WaitGroup
	control := h.control.dial()
	quiet.Go(func() { h.quiet = append(h.quiet, h.ask(control, going)...) })
	h.beside = append(h.beside, h.ask(h.healthy(), going)...)
	quiet.Wait()
}

// ask asks for decisions as long as going says, and returns how long each took.
func (h *siege) ask(c *talker, going func(n int) bool) (took []time.Duration) {
	for going(len(took)) {
		at := time.Now()
		if _, err := c.do("CHECK", "client", "192.0.2.1", "path", "/"); err != nil {
			h.Errorf("a client beside the attack: %v\n%s", err, h.log.String())
			return took
		}
		took = append(took, time.Since(at))
		time.Sleep(time.Millisecond)
	}
	return took
}

// healthy returns a connection of a client that may do everything.
func (h *siege) healthy() *talker {
	c := h.serving.dial()
	if token := os.Getenv("HOSTILE_TOKEN"); token != "" {
		if _, err := c.do("AUTH", token); err != nil {
			h.Fatalf("a valid token: %v", err)
		}
	}
	return c
}

// verdict ends the case: it compares memory and latency with their limits.
func (h *siege) verdict() {
	h.judged = true
	rss := h.resident()
	alone, beside, quiet := p90(h.alone), p90(h.beside), p90(h.quiet)
	h.Logf("resident memory at most %d MiB; a client's p90 %v, alone %v, of a server that nobody attacks %v; asked %d times", rss, beside, alone, quiet, len(h.beside))
	if most := hostileMemory + besideMemory; rss > most {
		h.Errorf("%d MiB were resident; want at most %d", rss, most)
	}
	if most := max(slower*max(alone, leastLatency), slowerThanControl*quiet); beside > most {
		h.Errorf("a client beside the attack waits %v; want at most %v", beside, most)
	}
	if w, err := http.Get(h.http + "/healthz"); err != nil || w.StatusCode != http.StatusOK {
		h.Errorf("the server does not answer any more: %v", err)
	} else {
		w.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

func p90(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)*9/10]
}

// resident returns the most memory that was resident so far, in MiB.
func (h *siege) resident() int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(h.cmd.Process.Pid), "status"))
	if err != nil {
		h.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		h.Fatalf("the server has ended\n%s", h.log.String())
	}
	kib, err := strconv.Atoi(f[0])
	if err != nil {
		h.Fatal(err)
	}
	return kib >> 10
}

// attackers runs n attackers at once, each with connections from another address than
// that of the healthy client, and waits for them.
func (h *siege) attackers(n int, attack func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { attack(i) })
	}
	all.Wait()
}

// open opens a connection of an attacker, or returns nil if the server does not let it
// in.
func (h *siege) open(addr string) net.Conn {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 5 * time.Second}
	conn, err := from.Dial("tcp", strings.TrimPrefix(addr, "http://"))
	if err != nil {
		return nil
	}
	conn.SetDeadline(h.deadline)
	return conn
}

// hold sends text, waits until the server closes the connection or most is over, and
// begins again, for a while.
func (h *siege) hold(addr, text string, most, while time.Duration) {
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(most / 2) {
		conn := h.open(addr)
		if conn == nil {
			continue
		}
		conn.SetDeadline(time.Now().Add(most))
		if _, err := io.WriteString(conn, text); err == nil {
			_, _ = io.Copy(io.Discard, conn)
		}
		conn.Close()
	}
}

// repeat sends text, reads what comes until pause passes without anything, and begins
// again, for a while.
func (h *siege) repeat(addr, text string, while time.Duration) {
	end := time.Now().Add(while)
	for time.Now().Before(end) {
		conn := h.open(addr)
		if conn == nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		buf := make([]byte, 64<<10)
		for time.Now().Before(end) {
			if _, err := io.WriteString(conn, text); err != nil {
				break
			}
			// An answer that has come in part is read with the next.
			conn.SetReadDeadline(end)
			if _, err := conn.Read(buf); err != nil {
				break
			}
		}
		conn.Close()
	}
}

// postText returns a request with a body.
func postText(path, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
}

// announced returns a request that announces a body and sends the beginning of it.
func announced(path string, size int, begin string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, size, begin)
}

// statusOf sends a request of the healthy client and returns the status of the answer.
func (h *siege) statusOf(r *http.Request) (int, http.Header) {
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(errors.Join(err, errors.New(h.log.String())))
	}
	defer w.Body.Close()
	_, _ = io.Copy(io.Discard, w.Body)
	return w.StatusCode, w.Header
}
