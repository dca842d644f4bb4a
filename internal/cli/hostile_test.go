package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// An attack is a case of TestHostile.
type attack struct {
	name  string
	flags func(h *attacked) []string // nil for none
	run   func(h *attacked)

	// control switches off the defence that the case is about: the case must fail then.
	control fault
}

// attacks are all cases.
var attacks = slices.Concat(clientAttacks, readerAttacks, protocolAttacks, engineAttacks, storeAttacks)

// TestHostile runs attacks against a server in a process of its own: the program named lately in the folder LATELY_HOSTILE.
//
//	make hostile
//
// While each attack runs, another client requests decisions, from this server and from a control, another server without
// attacks. The resident memory of the attacked server must stay below its --memory and 150 MiB, and the client's latency at
// the 90th and 99th percentile within a multiple of that of the control, in one of three attempts. Other programs on the
// machine do not count: the control waits for them, too, and an attacked server that the kernel runs for a tenth of the
// time it needs may take ten times as long. Each case also checks its own defence, for example that the server has closed
// connections with incomplete requests. TestHostileControls shows that each case can fail. To see what an attack does to an
// older server, put its program into the folder.
func TestHostile(t *testing.T) {
	folder := os.Getenv("LATELY_HOSTILE")
	if folder == "" {
		t.Skip("SKIP: attacks take minutes; run make hostile")
	}
	if runtime.GOOS != "linux" {
		t.Skip("SKIP: resident memory is read from /proc")
	}
	t.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	for _, c := range attacks {
		t.Run(c.name, func(t *testing.T) {
			for attempt := 1; ; attempt++ {
				h := newAttacked(t, c.flags)
				c.run(h)
				if !h.judged {
					h.judge()
				}
				if h.slow == nil {
					return
				}
				if attempt == attempts {
					t.Fatal(h.slow)
				}
				t.Logf("again: %v", h.slow)
				h.serving.kill()
				h.control.kill()
			}
		})
	}
}

const (
	hostileMemory = 256 // MiB: --memory, unless a case needs more
	besideMemory  = 150 // MiB more that may be resident

	// slowerThanControl is the allowed ratio of the latency of the attacked server to the
	// control's, and leastLatency an allowed addition, both for a server that always gets its
	// processor: see attacked.most.
	slowerThanControl = 10
	leastLatency      = 100 * time.Millisecond // at the 90th percentile; four times that at the 99th

	// attempts is how often an attack must delay others: what else runs on a machine may delay them once.
	attempts = 3

	// maxHeld is how long an attacker waits for the server to close its connection.
	maxHeld = 2 * time.Minute

	// maxCase is how long a case may take, also on a machine with much else to do.
	maxCase = 15 * time.Minute
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

// An attacked is a server under attack.
type attacked struct {
	*testing.T
	*serving
	control       *serving // the server without attacks
	rules         string   // the path of its rules file
	memory        int      // MiB: --memory
	tls           bool     // its listeners use TLS
	proxy         *badProxy
	followed      string // the path of the log that it follows
	beside, quiet []time.Duration
	before        turns // of the attacked server, before the attack
	deadline      time.Time
	held          atomic.Int64 // connections of attackers that were not closed within maxHeld
	judged        bool
	slow          error // that the client waited for too long
}

func newAttacked(t *testing.T, flags func(h *attacked) []string) *attacked {
	t.Helper()
	h := &attacked{T: t, memory: hostileMemory, deadline: time.Now().Add(maxCase)}
	args := []string{"--memory", fmt.Sprint(h.memory, "MiB"), "--log-level", "warn"}
	if flags != nil {
		args = append(args, flags(h)...)
	}
	if !slices.Contains(args, "--rules") {
		h.rules = writeRules(t, hostileRules)
		args = append(args, "--rules", h.rules)
	}
	h.serving, h.control = serve(t, args...), serve(t, "--rules", writeRules(t, hostileRules))
	h.before = h.turns()
	return h
}

// during runs an attack, and requests decisions meanwhile.
func (h *attacked) during(attack func()) {
	healthy, control := h.healthy(), h.control.dial()
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
	quiet.Go(func() { h.quiet = append(h.quiet, h.ask(control, going)...) })
	h.beside = append(h.beside, h.ask(healthy, going)...)
	quiet.Wait()
}

// ask requests decisions while going returns true, and returns how long each took. A slow one also stands for those, one
// each millisecond, that would have been sent meanwhile and would have waited for the rest of it.
func (h *attacked) ask(c *talker, going func(n int) bool) (took []time.Duration) {
	for going(len(took)) {
		at := time.Now()
		if _, err := c.do("CHECK", "client", "192.0.2.1", "path", "/"); err != nil {
			h.Errorf("a client beside the attack: %v, %v after it was sent\n%s", err, time.Since(at), h.serving.log.String())
			return took
		}
		for d := time.Since(at); d > 0; d -= time.Millisecond {
			took = append(took, d)
		}
		time.Sleep(time.Millisecond)
	}
	return took
}

// healthy returns a connection of a client that may do everything, and has sent its first command: the attack may delay the next.
func (h *attacked) healthy() *talker {
	conn := must.Get(net.Dial("tcp", h.resp))(h)
	h.Cleanup(func() { conn.Close() })
	if h.tls {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	}
	conn.SetDeadline(h.deadline)
	c := &talker{Conn: conn, replies: resptest.NewReader(conn)}
	first := []string{"PING"}
	if token := os.Getenv("HOSTILE_TOKEN"); token != "" {
		first = []string{"AUTH", token}
	}
	if _, err := c.do(first...); err != nil {
		h.Fatalf("%s: %v", first[0], err)
	}
	return c
}

// judge ends the case: it compares memory and latency with their limits.
func (h *attacked) judge() {
	h.Helper()
	h.judged = true
	rss := h.resident()
	h.Logf("resident memory at most %d MiB; a client's p90 %v and p99 %v, of the control %v and %v; over %d ms; the server needs %.1f times as long as it runs",
		rss, percentile(h.beside, 90), percentile(h.beside, 99), percentile(h.quiet, 90), percentile(h.quiet, 99), len(h.beside), h.slowed())
	if most := h.memory + besideMemory; rss > most {
		h.Errorf("%d MiB were resident; want at most %d", rss, most)
	}
	for p, least := range map[int]time.Duration{90: leastLatency, 99: 4 * leastLatency} {
		if took, most := percentile(h.beside, p), h.most(least, percentile(h.quiet, p)); took > most {
			h.slow = errors.Join(h.slow, fmt.Errorf("a client beside the attack waits %v at the percentile %d; want at most %v", took, p, most))
		}
	}
	if n := h.held.Load(); n > 0 {
		h.Errorf("%d connections of attackers were not closed within %v", n, maxHeld)
	}
	if status, _ := h.get("/healthz"); status != http.StatusOK {
		h.Errorf("the server does not answer any more: %d", status)
	}
	h.web().CloseIdleConnections()
}

// most returns the allowed time on the attacked server for what takes quiet on the control. The attacked server is treated
// as if it ran whenever it can: a server that computes all the time gets a share of the processors that depends on the
// other programs, while the control, which sleeps most of the time, runs at once.
func (h *attacked) most(least, quiet time.Duration) time.Duration {
	return time.Duration(float64(least)*h.slowed()) + slowerThanControl*quiet
}

// slowed returns by which factor the attacked server was slower since the attack began than with processors of its own: 1
// if it never had to wait for one.
func (h *attacked) slowed() float64 {
	now := h.turns()
	if ran := now.ran - h.before.ran; ran > 0 {
		return 1 + float64(now.waited-h.before.waited)/float64(ran)
	}
	return 1
}

// turns are how long the threads of a process have run, and how long they have waited for a processor, both together.
type turns struct{ ran, waited time.Duration }

// turns reads how often the attacked server ran: 0 where the kernel does not count it.
func (h *attacked) turns() (sum turns) {
	threads := must.Get(filepath.Glob(filepath.Join("/proc", strconv.Itoa(h.cmd.Process.Pid), "task", "*", "schedstat")))(h)
	for _, path := range threads {
		text, _ := os.ReadFile(path) // not there if the thread has ended
		var t turns
		if n, _ := fmt.Sscan(string(text), &t.ran, &t.waited); n == 2 {
			sum.ran, sum.waited = sum.ran+t.ran, sum.waited+t.waited
		}
	}
	return sum
}

// web returns a client of the HTTP listener.
func (h *attacked) web() *http.Client {
	return &http.Client{Timeout: maxHeld, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

// get returns the status and the body of an answer, 0 if none comes.
func (h *attacked) get(path string) (status int, body string) {
	r := must.Get(http.NewRequest("GET", h.http+path, nil))(h)
	if token := os.Getenv("HOSTILE_TOKEN"); token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w, err := h.web().Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer w.Body.Close()
	text, _ := io.ReadAll(w.Body)
	return w.StatusCode, string(text)
}

// metric returns the largest value of a metric among all its labels.
func (h *attacked) metric(name string) (most float64) {
	_, text := h.get("/metrics")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && strings.ContainsAny(rest[:1], "{ ") {
			v, _ := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
			most = max(most, v)
		}
	}
	return most
}

// percentile returns how long p of 100 took at most.
func percentile(d []time.Duration, p int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)*p/100]
}

// resident returns the most memory that was resident so far, in MiB.
func (h *attacked) resident() int {
	text := must.Get(os.ReadFile(filepath.Join("/proc", strconv.Itoa(h.cmd.Process.Pid), "status")))(h)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	f := strings.Fields(rest)
	if len(f) == 0 {
		h.Fatalf("the server has ended\n%s", h.serving.log.String())
	}
	kib := must.Get(strconv.Atoi(f[0]))(h)
	return kib >> 10
}

// attackers runs n attackers at once, with connections from another address than the healthy client, and waits for them.
func (h *attacked) attackers(n int, attack func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { attack(i) })
	}
	all.Wait()
}

// open opens a connection of an attacker, or returns nil if the server does not let it
// in.
func (h *attacked) open(addr string) net.Conn {
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 5 * time.Second}
	conn, err := from.Dial("tcp", addr[strings.LastIndexByte(addr, '/')+1:])
	if err != nil {
		return nil
	}
	conn.SetDeadline(h.deadline)
	return conn
}

// hold sends text, waits until the server closes the connection, and begins again, for a
// while.
func (h *attacked) hold(addr, text string, while time.Duration) {
	for end := time.Now().Add(while); time.Now().Before(end); {
		conn := h.open(addr)
		if conn == nil {
			time.Sleep(100 * time.Millisecond)
			continue
		}
		conn.SetDeadline(time.Now().Add(maxHeld))
		_, err := io.WriteString(conn, text)
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			h.held.Add(1)
		}
		conn.Close()
	}
}

// repeat sends text, reads what comes until pause passes without anything, and begins
// again, for a while.
func (h *attacked) repeat(addr, text string, while time.Duration) {
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
func (h *attacked) statusOf(r *http.Request) (int, http.Header) {
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		h.Fatal(errors.Join(err, errors.New(h.serving.log.String())))
	}
	defer w.Body.Close()
	_, _ = io.Copy(io.Discard, w.Body)
	return w.StatusCode, w.Header
}
