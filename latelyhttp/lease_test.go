package latelyhttp

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// atOnce is a rule: n requests of a client under way at one time.
func atOnce(t testing.TB, n uint64, lease time.Duration) ratelimit.Rule {
	t.Helper()
	r := limited(t, "at-once", n, lease)
	r.Algorithm = ratelimit.InFlight
	return r
}

func TestConcurrentInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := mustNew(t, mustLimiter(t, atOnce(t, 2, time.Hour), limited(t, "per-client", 5, time.Hour)), Config{})
		h := m.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Second)
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
		}))
		var mu sync.Mutex
		codes := map[string]int{}
		send := func(path string) {
			defer func() {
				_ = recover()
			}()
			r := request("192.0.2.1:1")
			r.URL.Path = path
			w := httptest.NewRecorder()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				codes[path] = w.Code
				checkDraft(t, w.Header(), w.Code)
				if got := header(t, w, "RateLimit-Policy"); got != `"at-once";q=2;qu="concurrent-requests", "per-client";q=5;w=3600` {
					t.Errorf("%s: RateLimit-Policy is %s", path, got)
				}
			}()
			h.ServeHTTP(w, r)
		}
		var wg sync.WaitGroup
		for _, step := range []struct {
			at   int // seconds
			path string
			want int
		}{
			{0, "/a", 200},
			{1, "/panic", 200},
			{2, "/full", 429},
			{5, "/full2", 429},
			{12, "/b", 200},
			{13, "/c", 200},
			{14, "/full3", 429},
			{30, "/d", 200},
			{60, "/fifth", 429},
		} {
			wg.Go(func() {
				time.Sleep(time.Duration(step.at) * time.Second)
				send(step.path)
				mu.Lock()
				defer mu.Unlock()
				if codes[step.path] != step.want {
					t.Errorf("%s at %d s: %d; want %d", step.path, step.at, codes[step.path], step.want)
				}
			})
		}
		wg.Wait()
	})
}

// Whatever goes wrong between the decision and the handler gives the place back.
func TestInFlightIsGivenBack(t *testing.T) {
	broken := true
	m := mustNew(t, mustLimiter(t, atOnce(t, 1, time.Hour)), Config{
		Observe: func(*http.Request, Verdict) {
			if broken {
				panic("the observer")
			}
		},
	})
	next := new(ok)
	func() {
		defer func() {
			if recover() != "the observer" {
				t.Error("the panic was lost")
			}
		}()
		do(m.Wrap(next), request("192.0.2.1:1"))
	}()
	broken = false
	lease, allowed := m.Allow(httptest.NewRecorder(), request("192.0.2.1:1"))
	if !allowed || next.served != 0 {
		t.Fatal("the place was lost")
	}
	w := do(m.Wrap(next), request("192.0.2.1:1"))
	if w.Code != 429 || header(t, w, "RateLimit-Policy") != `"at-once";q=1;qu="concurrent-requests"` {
		t.Errorf("with all places taken: %d %v", w.Code, w.Header())
	}
	if b := readBody(t, w); !slices.Equal(b.Violated, []string{"at-once"}) {
		t.Errorf("the body is %+v", b)
	}
	lease.Done()
	lease.Done()
	if w := do(m.Wrap(next), request("192.0.2.1:1")); w.Code != 200 {
		t.Errorf("after Done: %d", w.Code)
	}
	if w := do(m.Wrap(next), request("192.0.2.1:1")); w.Code != 200 {
		t.Errorf("after a request: %d", w.Code)
	}
}

// A queue serves requests in turn, and gives back the places of requests that do not wait.
func TestConcurrentQueue(t *testing.T) {
	queue := limited(t, "queue", 1, time.Second)
	queue.Algorithm, queue.Limits[0].Burst = ratelimit.LeakyBucket, 3
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var seen []string
		var served []time.Duration
		var mu sync.Mutex
		m := mustNew(t, mustLimiter(t, queue), Config{Observe: func(r *http.Request, v Verdict) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprintf("%s %v", r.URL.Path, v.Decision.Allowed))
			if v.Decision.Allowed {
				served = append(served, time.Since(start))
			}
		}})
		h := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		var wg sync.WaitGroup
		for _, step := range []struct {
			at       time.Duration
			path     string
			timeout  time.Duration // of the client; 0 is no end
			deadline bool          // the server detects it
			want     int
			retry    string
		}{
			{0, "/first", 0, false, 200, ""},
			{1 * time.Millisecond, "/second", 0, false, 200, ""},
			{2 * time.Millisecond, "/hurried", 100 * time.Millisecond, true, 429, "2"},
			{3 * time.Millisecond, "/gone", 100 * time.Millisecond, false, 429, "2"},
			{4 * time.Millisecond, "/over", 0, false, 429, "1"},
			{200 * time.Millisecond, "/third", 0, false, 200, ""},
			{10 * time.Second, "/later", 0, false, 200, ""},
		} {
			wg.Go(func() {
				time.Sleep(step.at)
				r := request("192.0.2.1:1")
				r.URL.Path = step.path
				ctx, cancel := context.WithCancel(t.Context())
				if step.deadline {
					ctx, cancel = context.WithTimeout(t.Context(), step.timeout)
				} else if step.timeout > 0 {
					time.AfterFunc(step.timeout, cancel)
				}
				defer cancel()
				w := do(h, r.WithContext(ctx))
				checkDraft(t, w.Header(), w.Code)
				if w.Code != step.want || w.Header().Get("Retry-After") != step.retry {
					t.Errorf("%s: %d, Retry-After %q; want %d, %q", step.path, w.Code, w.Header().Get("Retry-After"), step.want, step.retry)
				}
				if w.Code == 429 && !slices.Equal(readBody(t, w).Violated, []string{"queue"}) {
					t.Errorf("%s: %s", step.path, w.Body)
				}
			})
		}
		wg.Wait()
		want := []string{"/first true", "/hurried false", "/over false", "/gone false", "/second true", "/third true", "/later true"}
		if !slices.Equal(seen, want) {
			t.Errorf("they were served as\n%q\nwant\n%q", seen, want)
		}
		for i := 1; i < len(served); i++ {
			if served[i]-served[i-1] < time.Second {
				t.Errorf("they were served at %v, less than a second apart", served)
			}
		}
	})
}

// Rules change under load: each answer follows one Set or the other.
func TestConcurrentLiveRules(t *testing.T) {
	var sets []*ratelimit.Set
	for range 8 {
		for _, rules := range [][]ratelimit.Rule{
			{limited(t, "a", 1000, time.Minute)},
			{atOnce(t, 50, time.Minute), limited(t, "a", 2000, time.Minute), limited(t, "b", 3000, time.Minute, "client", "path")},
			{limited(t, "c", 0, time.Minute, "tenant")},
		} {
			set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: sources}, rules...))(t)
			sets = append(sets, set)
		}
	}
	l := must.Get(ratelimit.NewLimiter(sets[0], ratelimit.Config{}))(t)
	m := mustNew(t, l, Config{})
	for _, s := range sets {
		must.Do(t, m.Check(s))
	}
	h := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	var wg sync.WaitGroup
	done := make(chan struct{})
	for i := range 4 {
		wg.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				r := request(fmt.Sprintf("192.0.2.%d:1", i))
				r.Header.Set("X-Tenant", "t")
				w := do(h, r)
				checkDraft(t, w.Header(), w.Code)
			}
		})
	}
	for _, s := range sets {
		if err := l.Update(s); err != nil {
			t.Error(err)
		}
	}
	close(done)
	wg.Wait()
	must.Do(t, l.Update(sets[1]))
	w := do(h, request("192.0.2.99:1"))
	if got := header(t, w, "RateLimit-Policy"); got != `"at-once";q=50;qu="concurrent-requests", "a";q=2000;w=60, "b";q=3000;w=60` {
		t.Errorf("in the end RateLimit-Policy is %s", got)
	}
}

// TestFirstInFlightRule adds a rule for requests in flight between the moment when a request is first looked up and the
// moment when it is judged: it is judged by that rule, and gives back its place at its end.
func TestFirstInFlightRule(t *testing.T) {
	l := mustLimiter(t, limited(t, "plain", 5, time.Hour))
	both := mustLimiter(t, limited(t, "plain", 5, time.Hour), atOnce(t, 2, time.Hour)).Set()
	held := func() uint64 {
		r := must.Get(l.Rule("at-once"))(t)
		return 2 - r.TakeAt(l.Now(), 0, "192.0.2.1").Remaining
	}
	m := mustNew(t, l, Config{Cost: func(*http.Request) uint64 {
		if err := l.Update(both); err != nil {
			t.Error(err)
		}
		return 1
	}})
	w := do(m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n := held(); n != 1 {
			t.Errorf("%d places are held by a request under way", n)
		}
	})), request("192.0.2.1:1"))
	if n := held(); w.Code != 200 || n != 0 {
		t.Errorf("%d; %d places are held by nobody", w.Code, n)
	}
}
