package httpapi

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/test/must"
)

// long reports whether the long forms of tests run.
func long() bool { return os.Getenv("LATELY_LONG") != "" }

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	conn := must.Get(net.Dial("tcp", addr))(t)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs has failed
	return conn
}

// answerOf reads the answer on conn.
func answerOf(t testing.TB, conn net.Conn) (status int, body string, header http.Header) {
	t.Helper()
	r := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	defer r.Body.Close()
	b := must.Get(io.ReadAll(r.Body))(t)
	return r.StatusCode, string(b), r.Header
}

// An idle connection is closed after the time in the settings.
func TestIdleConnections(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Millisecond, -1} {
		s := newServer(t, func(c *Config) { c.IdleTimeout = idle })
		conn := dial(t, serve(t, s))
		for range 2 { // the second one after a pause, unless the connection is closed by then
			io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if idle == time.Millisecond {
				if _, err := io.Copy(io.Discard, conn); err != nil { // the answer, and the end
					t.Errorf("after %v idle: %v; want the end of the connection", idle, err)
				}
				break
			}
			if status, _, _ := answerOf(t, conn); status != 200 {
				t.Errorf("idle timeout %v: status %d; want 200", idle, status)
			}
		}
	}
	if got := newServer(t, nil).newHTTP().IdleTimeout; got != 5*time.Minute {
		t.Errorf("the default is %v; want 5m", got)
	}
}

func TestRejectedBodies(t *testing.T) {
	s := newServer(t, nil)
	deep := strings.Repeat(`{"event":`, 100_000) + strings.Repeat("}", 100_000)
	many := `{"event":{` + strings.TrimSuffix(strings.Repeat(`"f%d":"v",`, maxFields+1), ",") + `}}`
	for i := range maxFields + 1 {
		many = strings.Replace(many, "%d", fmt.Sprint(i), 1)
	}
	for name, body := range map[string]string{
		"deep": deep, "deep list": strings.Repeat("[", 100_000), "many fields": many, "no UTF-8": "{\"event\":{\"client\":\"\xff\"}}",
		"many events": `{"events":[` + strings.TrimSuffix(strings.Repeat(`{"event":{}},`, maxBatch+1), ",") + `]}`, "empty": "",
	} {
		w := post(s, "/v1/check", body)
		p := wantProblem(t, w, 400, api.BadArg)
		if len(p.Detail) > 300 {
			t.Errorf("%s: the answer has %d bytes", name, len(p.Detail))
		}
	}
	wantProblem(t, post(s, "/v1/check", strings.Repeat(" ", maxBody+1)), 413, api.BadArg)
	if w := post(s, "/v1/check", `{"event":{}}`+strings.Repeat(" ", maxBody-12)); w.Code != 200 {
		t.Errorf("a body of the largest size: %d %s", w.Code, w.Body)
	}
	wantProblem(t, ask(s, request{method: "POST", path: "/v1/check", body: "{}", header: http.Header{"Content-Encoding": {"gzip"}}}), 415, api.BadArg)
	long := strings.Repeat("k", keys.Max+1)
	for path, body := range map[string]string{
		"/v1/take": `{"rule":"per-client","key":"` + long + `"}`, "/v1/peek": `{"rule":"login","key":["a","` + long + `"]}`,
		"/v1/throttle": `{"key":"` + long + `","burst":1,"count":1,"period_ms":1}`, "/v1/counters/c/add": `{"key":"` + long + `"}`,
		"/v1/bans": `{"rule":"flood","key":"` + long + `","for":"1m"}`,
	} {
		if w := post(s, path, body); w.Code != 400 {
			t.Errorf("%s with a long key: %d %s", path, w.Code, w.Body)
		}
	}
}

// A body of ten gigabytes, announced or not, is refused after the allowed part.
func TestEndlessBodies(t *testing.T) {
	addr := serve(t, newServer(t, nil))
	const head = "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
	conn := dial(t, addr)
	fmt.Fprintf(conn, "%sContent-Length: 10737418240\r\n\r\n", head)
	if status, body, _ := answerOf(t, conn); status != 413 {
		t.Errorf("%d %s", status, body)
	}
	if _, err := io.Copy(io.Discard, conn); err != nil && os.IsTimeout(err) {
		t.Error("the connection is still open")
	}
	conn = dial(t, addr)
	fmt.Fprintf(conn, "%sTransfer-Encoding: chunked\r\n\r\n", head)
	sent := int64(0)
	chunk := append([]byte("10000\r\n"), append(bytes.Repeat([]byte(" "), 0x10000), "\r\n"...)...)
	for sent < 10<<30 {
		n, err := conn.Write(chunk)
		if sent += int64(n); err != nil {
			break
		}
	}
	if sent > 64<<20 {
		t.Errorf("%d MiB were taken", sent>>20)
	}
	if w, err := http.Get("http://" + addr + "/healthz"); err != nil || w.StatusCode != 200 {
		t.Errorf("the next request: %v", err)
	} else {
		w.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
}

// Connections that send next to nothing are closed, and keep no other client out meanwhile. The long form has two thousand,
// half of which have sent the whole header.
//
//	LATELY_LONG=1 go test ./internal/server/httpapi -run Slowloris -v
func TestSlowloris(t *testing.T) {
	n := 100
	if long() {
		n = 2000
	}
	s := newServer(t, nil)
	addr := serve(t, s)
	healthy := dial(t, addr)
	in := bufio.NewReader(healthy)
	ask := func(going func(asked int) bool) (late []time.Duration) {
		for going(len(late)) {
			at := time.Now()
			fmt.Fprint(healthy, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			w, err := http.ReadResponse(in, nil)
			if err != nil || w.StatusCode != 200 {
				t.Fatalf("a request meanwhile: %v, %v", w, err)
			}
			io.Copy(io.Discard, w.Body)
			w.Body.Close()
			late = append(late, time.Since(at))
			time.Sleep(5 * time.Millisecond)
		}
		slices.Sort(late)
		return late
	}
	alone := ask(func(asked int) bool { return asked < 100 })
	var slow sync.WaitGroup
	var gone atomic.Int64
	began := time.Now()
	for i := range n {
		conn := dial(t, addr)
		if i%2 == 0 || !long() { // a body has 5 seconds
			fmt.Fprintf(conn, "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nX-%d: ", i)
		} else {
			fmt.Fprint(conn, "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
		}
		slow.Go(func() {
			defer gone.Add(1)
			conn.Write([]byte("x")) // one more byte does not extend the time
			if _, err := io.Copy(io.Discard, conn); err != nil && os.IsTimeout(err) {
				t.Errorf("connection %d is still open", i)
			}
		})
	}
	beside := ask(func(int) bool { return gone.Load() < int64(n) })
	slow.Wait()
	t.Logf("%d slow clients, all gone after %v; a client meanwhile: p50 %v, p99 %v; alone: %v, %v", n, time.Since(began),
		beside[len(beside)/2], beside[len(beside)*99/100], alone[len(alone)/2], alone[len(alone)*99/100])
}

func TestSlowBody(t *testing.T) {
	if !long() {
		t.Skip("SKIP: it takes 5 seconds; LATELY_LONG is not set")
	}
	conn := dial(t, serve(t, newServer(t, nil)))
	fmt.Fprint(conn, "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if status, body, _ := answerOf(t, conn); status != 408 {
		t.Errorf("%d %s; want 408", status, body)
	}
}

// TestLargeHeader sends heads as large as nginx accepts, with what it adds, and larger.
func TestLargeHeader(t *testing.T) {
	addr := serve(t, newServer(t, nil))
	for _, c := range []struct{ lines, size, status int }{
		{4, 8 << 10, 200}, // large_client_header_buffers 4 8k
		{5, 8 << 10, 200}, // and X-Original-URI
		{1, 56 << 10, 200},
		{1, 80 << 10, 431},
		{10, 8 << 10, 431},
	} {
		conn := dial(t, addr)
		line := fmt.Sprintf("X: %s\r\n", strings.Repeat("x", c.size-5))
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n%s\r\n", strings.Repeat(line, c.lines))
		if status, body, _ := answerOf(t, conn); status != c.status {
			t.Errorf("%d lines of %d bytes: %d %s; want %d", c.lines, c.size, status, body, c.status)
		}
	}
}

func TestTooManyConnections(t *testing.T) {
	s := newServer(t, func(c *Config) { c.MaxConnections, c.PeerConnections = 3, 2 })
	addr := serve(t, s)
	healthy := func(conn net.Conn) int {
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		status, _, _ := answerOf(t, conn)
		return status
	}
	first, second := dial(t, addr), dial(t, addr)
	if a, b := healthy(first), healthy(second); a != 200 || b != 200 {
		t.Fatalf("the first two: %d and %d", a, b)
	}
	status, body, _ := answerOf(t, dial(t, addr))
	if status != 503 || !strings.Contains(body, "OVERLOAD") {
		t.Errorf("the third of one peer: %d %s", status, body)
	}
	other := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	conn, err := other.Dial("tcp", addr)
	if err != nil {
		t.Skip("SKIP: 127.0.0.2 is no address here:", err)
	}
	defer conn.Close()
	if got := healthy(conn); got != 200 {
		t.Errorf("another peer: %d", got)
	}
	if open, accepted, refused := s.Conns.Counts(); open != 3 || accepted != 3 || refused != 1 {
		t.Errorf("%d open, %d accepted, %d refused", open, accepted, refused)
	}
	first.Close()
	until(t, "a connection has left", func() bool { return s.Open() == 2 })
	if got := healthy(dial(t, addr)); got != 200 {
		t.Errorf("when one has gone: %d", got)
	}
}
