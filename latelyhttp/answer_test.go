package latelyhttp

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// counting returns a rule about answers that allows n in a minute.
func counting(t testing.TB, name string, n uint64, when match.When) ratelimit.Rule {
	t.Helper()
	r := limited(t, name, n, time.Minute)
	r.When = when
	return r
}

// TestConcurrentAnswers serves requests with every way to answer, or none, and checks which status is counted.
func TestConcurrentAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		handle http.HandlerFunc
		status string
	}{
		{"nothing", func(http.ResponseWriter, *http.Request) {}, "200"},
		{"body", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") }, "200"},
		{"status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401); w.WriteHeader(200) }, "401"},
		{"early hints", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(404) }, "404"},
		{"flush", func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); w.WriteHeader(500) }, "200"},
		{"controller", func(w http.ResponseWriter, _ *http.Request) {
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Hour)); err != nil {
				panic(err)
			}
			w.WriteHeader(403)
		}, "403"},
		{"file", func(w http.ResponseWriter, _ *http.Request) { io.Copy(w, strings.NewReader("x")) }, "200"},
		{"panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "500"},
		{"panic in the body", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x"); panic(http.ErrAbortHandler) }, "200"},
		{"hijack", func(w http.ResponseWriter, _ *http.Request) { hijack(w.(http.Hijacker)) }, "101"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := mustLimiter(t, counting(t, "a", 100, match.When{Status: []string{c.status}}), counting(t, "others", 100, match.When{Status: []string{"100-599"}}))
			h, counted := mustNew(t, l, Config{}).Wrap(c.handle), make(chan struct{})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(counted)
				h.ServeHTTP(w, r)
			}))
			defer server.Close()
			if w, err := server.Client().Get(server.URL); err == nil {
				w.Body.Close()
			}
			<-counted
			for _, rule := range []string{"a", "others"} {
				r := must.Get(l.Rule(rule))(t)
				if d := r.Peek("127.0.0.1"); d.Remaining != 98 {
					t.Errorf("%s has %d of 100 left after the answer, as Peek counts its own; want 98", rule, d.Remaining)
				}
			}
		})
	}
}

// hijack answers by itself.
func hijack(h http.Hijacker) {
	conn, _, err := h.Hijack()
	if err != nil {
		panic(err)
	}
	io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n")
	conn.Close()
}

// TestAnswersLimit has a handler fail until it is no longer called.
func TestAnswersLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := counting(t, "failures", 2, match.When{Path: []string{"/login"}, Status: []string{"401"}})
		large := counting(t, "large", 1, match.When{Path: []string{"/large"}, Fields: map[string][]string{"size": {"1000*"}}})
		slow := counting(t, "slow", 1, match.When{Fields: map[string][]string{"duration": {"2.500"}}})
		m := mustNew(t, mustLimiter(t, failures, large, slow), Config{})
		status := 200
		h := m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			if r.URL.Path == "/large" {
				w.Write(make([]byte, 10_000))
			}
			if r.URL.Path == "/slow" {
				time.Sleep(2500 * time.Millisecond)
			}
		}))
		for i, step := range []struct {
			path         string
			status, want int
		}{
			{"/login", 200, 200},
			{"/login", 401, 401},
			{"/login", 200, 200},
			{"/login", 401, 401},
			{"/login", 200, 429},
			{"/other", 401, 401},
			{"/large", 200, 200},
			{"/large", 200, 429},
			{"/other", 200, 200},
			{"/slow", 200, 200},
			{"/other", 200, 429},
		} {
			status = step.status
			r, w := request("192.0.2.1:1"), httptest.NewRecorder()
			r.URL.Path = step.path
			if h.ServeHTTP(w, r); w.Code != step.want {
				t.Fatalf("step %d, %s: %d, want %d", i, step.path, w.Code, step.want)
			}
		}
	})
}

// TestAnswersAfterReload changes the rules while a request is served: its answer is counted under the new ones, also by
// a field that the old ones did not use.
func TestAnswersAfterReload(t *testing.T) {
	l := mustLimiter(t, counting(t, "a", 1, match.When{Status: []string{"401"}}))
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, counting(t, "a", 1, match.When{Method: []string{"GET"}, Status: []string{"4xx"}})))(t)
	h := mustNew(t, l, Config{}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if err := l.Update(set); err != nil {
			t.Error(err)
		}
		w.WriteHeader(404)
	}))
	for _, want := range []int{404, 429} {
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, request("192.0.2.1:1")); w.Code != want {
			t.Errorf("%d, want %d", w.Code, want)
		}
	}
}

// TestSameWriter checks that handlers get the writer itself if no rule counts answers, and that a recorder has no
// method that the writer does not have.
func TestSameWriter(t *testing.T) {
	answers := counting(t, "a", 5, match.When{Status: []string{"401"}})
	for _, c := range []struct {
		rule             ratelimit.Rule
		w                http.ResponseWriter
		same             bool
		flushes, hijacks bool
	}{
		{limited(t, "a", 5, time.Minute), httptest.NewRecorder(), true, true, false},
		{answers, httptest.NewRecorder(), false, true, false},
		{answers, struct{ http.ResponseWriter }{httptest.NewRecorder()}, false, false, false},
		{answers, hijackable{httptest.NewRecorder()}, false, true, true},
	} {
		mustNew(t, mustLimiter(t, c.rule), Config{}).Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, flushes := w.(http.Flusher)
			_, hijacks := w.(http.Hijacker)
			if (w == c.w) != c.same || flushes != c.flushes || hijacks != c.hijacks {
				t.Errorf("%T is served as %T", c.w, w)
			}
		})).ServeHTTP(c.w, request("192.0.2.1:1"))
	}
}

type hijackable struct{ *httptest.ResponseRecorder }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return nil, nil, fmt.Errorf("no connection")
}

// TestLeaseAnswer ends leases in every order: one answer counts, and none after Done.
func TestLeaseAnswer(t *testing.T) {
	l := mustLimiter(t, counting(t, "a", 100, match.When{Status: []string{"401"}}))
	m := mustNew(t, l, Config{})
	for i, end := range []func(Lease){
		func(l Lease) { l.Answer(401, 0); l.Answer(401, 0); l.Done() },
		func(l Lease) { l.Done(); l.Answer(401, 0) },
		func(l Lease) { l.Answer(401, 0); l.Done(); l.Done() },
	} {
		lease, ok := m.Allow(httptest.NewRecorder(), request("192.0.2.1:1"))
		if !ok {
			t.Fatal("it is refused")
		}
		end(lease)
		r := must.Get(l.Rule("a"))(t)
		if d, want := r.Peek("192.0.2.1"), []uint64{98, 98, 97}[i]; d.Remaining != want {
			t.Errorf("after lease %d: %d left, want %d", i, d.Remaining, want)
		}
	}
	Lease{}.Answer(200, 0)
}
