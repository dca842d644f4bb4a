package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
)

// used returns how much of the budget is taken.
func (s *Server) used() int64 {
	_, used := s.Budget.Stats()
	return used
}

// TestBodyMemoryGrowsWithData announces large bodies and sends little of them, then more, then disconnects.
func TestBodyMemoryGrowsWithData(t *testing.T) {
	const n, part = 50, 100_000
	s := newServer(t, nil)
	addr := serve(t, s)
	conns := make([]net.Conn, n)
	for i := range conns {
		conns[i] = dial(t, addr)
		fmt.Fprintf(conns[i], "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n{", maxBody)
	}
	until(t, "all are being served", func() bool { return s.Requests.Load() == n })
	if used := s.used(); used != 0 {
		t.Errorf("for %d bytes, %d are taken", n, used)
	}
	for _, conn := range conns {
		fmt.Fprint(conn, strings.Repeat(" ", part))
	}
	until(t, "all parts have arrived", func() bool { return s.used() >= n*(part-freeBody) })
	if used := s.used(); used > 2*n*part {
		t.Errorf("for %d bytes, %d are taken", n*part, used)
	}
	for _, conn := range conns {
		conn.Close()
	}
	until(t, "all is given back", func() bool { return s.used() == 0 })
}

// TestBudgetOfBodies fills the budget with bodies that do not end: a large request is
// refused with a clear answer, a small one is not.
func TestBudgetOfBodies(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Budget = access.NewBudget(1 << 20) })
	addr := serve(t, s)
	for range 20 {
		fmt.Fprintf(dial(t, addr), "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", maxBody, strings.Repeat(" ", 100_000))
	}
	until(t, "the budget is full", func() bool { return s.Overloaded.Load() > 5 })
	if used := s.used(); used > 1<<20 {
		t.Errorf("%d bytes are taken", used)
	}
	w := wantProblemOf(t, s, `{"event":{}}`+strings.Repeat(" ", 900_000))
	if w.Header().Get("Retry-After") == "" || w.Header().Get("Connection") != "close" {
		t.Errorf("the refusal has the header %v", w.Header())
	}
	if w := post(s, "/v1/check", `{"event":{"client":"192.0.2.1"}}`); w.Code != 200 {
		t.Errorf("a small request: %d %s", w.Code, w.Body)
	}
}

// TestLoginBodies sends bodies without a login.
func TestLoginBodies(t *testing.T) {
	all := tokens(t)
	s := newServer(t, func(c *Config) { c.Tokens = tokensOf(all) })
	for _, path := range []string{"/v1/login", "/v1/logout"} {
		wantProblem(t, post(s, path, strings.Repeat(" ", maxLogin+1)), 413, api.BadArg)
	}
	body := `{"token":"` + readToken + `"}`
	if w := post(s, "/v1/login", body+strings.Repeat(" ", maxLogin-len(body))); w.Code != 200 {
		t.Errorf("a login of the largest size: %d %s", w.Code, w.Body)
	}
}

// TestShapeIsCheckedBeforeDecoding has bodies of 1 MiB that would take much more memory
// when decoded: they are refused for next to none.
func TestShapeIsCheckedBeforeDecoding(t *testing.T) {
	s := newServer(t, nil)
	members := new(strings.Builder)
	for i := range 80_000 {
		fmt.Fprintf(members, `"%d":"",`, i)
	}
	for name, body := range map[string]string{
		"takes":  `{"takes":[` + strings.Repeat("{},", 349_000) + `{}]}`,
		"events": `{"events":[` + strings.Repeat(`{"event":{}},`, 80_000) + `{}]}`,
		"fields": `{"event":{` + members.String() + `"a":""}}`,
		"key":    `{"rule":"login","key":[` + strings.Repeat(`"",`, 349_000) + `""]}`,
	} {
		for _, path := range []string{"/v1/check", "/v1/take", "/v1/peek"} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			w := post(s, path, body)
			runtime.ReadMemStats(&after)
			wantProblem(t, w, 400, api.BadArg)
			if n := after.TotalAlloc - before.TotalAlloc; n > 6<<20 { // the body, doubled as it arrives, twice: the test's recorder has one
				t.Errorf("%s to %s: %d bytes were allocated", name, path, n)
			}
		}
	}
}

// TestDecodedBodiesAreCharged has a budget that is large enough for a body, and not for
// its decoded form.
func TestDecodedBodiesAreCharged(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Budget = access.NewBudget(1 << 20) })
	wantProblemOf(t, s, `{"event":{"client":"\u0031"}}`+strings.Repeat(" ", 300_000))
	if used := s.used(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}

// wantProblemOf sends a body that is too much for the budget.
func wantProblemOf(t *testing.T, s *Server, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := post(s, "/v1/check", body)
	wantProblem(t, w, 503, api.Overload)
	return w
}

// TestBudgetOfHeads has many connections that send half of a large head: they get half
// of the budget, and the others a clear answer.
func TestBudgetOfHeads(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Budget = access.NewBudget(1 << 20) })
	addr := serve(t, s)
	conns := make([]net.Conn, 40)
	for i := range conns {
		conns[i] = dial(t, addr)
		fmt.Fprintf(conns[i], "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s", strings.Repeat("x", 30<<10))
	}
	refused := 0
	for _, conn := range conns {
		// How much of the answer a client reads while it is still sending depends on its kernel.
		if answer, _ := io.ReadAll(conn); strings.HasPrefix(string(answer), "HTTP/1.1 503 ") && strings.HasSuffix(string(answer), "\"OVERLOAD\"}\n") {
			refused++
		}
		if used := s.used(); used > 1<<19+headStep {
			t.Fatalf("heads take %d bytes of the budget", used)
		}
	}
	if refused < 20 {
		t.Errorf("%d of 40 were refused; the memory suffices for 9", refused)
	}
	if n := s.Overloaded.Load(); n < uint64(refused) {
		t.Errorf("%d refusals are counted; there were %d", n, refused)
	}
	until(t, "all is given back", func() bool { return s.used() == 0 })
}

// TestHeadsAreGivenBack sends requests with large heads on one connection.
func TestHeadsAreGivenBack(t *testing.T) {
	s := newServer(t, func(c *Config) { c.Budget = access.NewBudget(400 << 10) })
	conn := dial(t, serve(t, s))
	for range 50 {
		fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 30<<10))
		if status, body, _ := answerOf(t, conn); status != 200 {
			t.Fatalf("%d %s", status, body)
		}
	}
	until(t, "all is given back", func() bool { return s.used() == 0 })
}

// TestStreamDropsItsHead has a stream of events whose request had a large head.
func TestStreamDropsItsHead(t *testing.T) {
	s := newServer(t, nil)
	conn := dial(t, serve(t, s))
	fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n", strings.Repeat("x", 30<<10))
	until(t, "it is subscribed", func() bool { return s.Subscribers.Load() == 1 })
	until(t, "the head is given back", func() bool { return s.used() == 0 })
	if _, err := conn.Read(make([]byte, 100)); err != nil {
		t.Error(err)
	}
}

// TestAnswersAreCharged has an answer for which there is no memory, and one for which there is.
func TestAnswersAreCharged(t *testing.T) {
	budget := access.NewBudget(1 << 20)
	s := newServer(t, func(c *Config) { c.Budget = budget })
	budget.Take(1<<20 - 1000)
	wantProblem(t, ask(s, request{method: "GET", path: "/openapi.json"}), 503, api.Overload)
	budget.Give(1<<20 - 1000)
	if w := ask(s, request{method: "GET", path: "/openapi.json"}); w.Code != 200 || s.used() != 0 {
		t.Errorf("with enough: %d, %d bytes still taken", w.Code, s.used())
	}
}
