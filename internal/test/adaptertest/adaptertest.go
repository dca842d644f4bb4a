// Package adaptertest has the tests that every adapter of latelyhttp to a web framework must pass.
package adaptertest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// An Open returns what sends requests to a new app of the framework, with m before the route /items/:id. The handler of the
// route calls inside, and answers "item " and the id. The app answers a panic with 500.
type Open func(t testing.TB, m *latelyhttp.Middleware, inside func()) Send

// A Send sends a request without a body from a peer, an address and port, with header fields as pairs.
type Send func(method, target, peer string, header ...string) *http.Response

// peer is a client.
const peer = "192.0.2.1:99"

// Run runs the tests.
func Run(t *testing.T, open Open) {
	t.Run("Refusal", func(t *testing.T) { testRefusal(t, open) })
	t.Run("SpoofedHeaders", func(t *testing.T) { testSpoofedHeaders(t, open) })
	t.Run("TrustedProxies", func(t *testing.T) { testTrustedProxies(t, open) })
	t.Run("InFlight", func(t *testing.T) { testInFlight(t, open) })
	t.Run("Pattern", func(t *testing.T) { testPattern(t, open) })
}

// SendTo returns what sends requests to h.
func SendTo(h http.Handler) Send {
	return func(method, target, peer string, header ...string) *http.Response {
		r := httptest.NewRequest(method, target, nil)
		r.RemoteAddr = peer
		for n := 0; n < len(header); n += 2 {
			r.Header.Add(header[n], header[n+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
}

// CheckUsers sends requests of two users, named by the parameter as, to an app with a limit of one for each user.
func CheckUsers(t testing.TB, send Send) {
	t.Helper()
	for i, as := range []string{"ann", "bob", "ann", "bob"} {
		if r := send("GET", "/items/1?as="+as, peer); (r.StatusCode == http.StatusTooManyRequests) != (i >= 2) {
			t.Errorf("request %d, by %s: %s", i, as, r.Status)
		}
	}
}

// CheckAnswers sends requests to an app with a limit of two answers with a status, which all answers have.
func CheckAnswers(t testing.TB, status string, send Send) {
	t.Helper()
	for i := range 4 {
		if r := send("GET", "/items/1", peer); (r.StatusCode == http.StatusTooManyRequests) != (i >= 2) {
			t.Errorf("request %d under a limit of two answers with status %s: %s", i, status, r.Status)
		}
	}
}

// Benchmark runs requests through the handler that app returns, without limits and with some that refuse none.
func Benchmark(b *testing.B, app func(limits ...*latelyhttp.Middleware) http.Handler) {
	for _, bb := range []struct {
		name string
		h    http.Handler
	}{{"bare", app()}, {"limited", app(Limits(b, latelyhttp.Config{}, 1<<31, "client"))}} {
		b.Run(bb.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", "/items/1", nil)
			r.RemoteAddr = peer
			b.ReportAllocs()
			for b.Loop() {
				bb.h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}

// Limits returns a middleware with one rule: n an hour for each key of fields.
func Limits(t testing.TB, c latelyhttp.Config, n uint64, fields ...string) *latelyhttp.Middleware {
	t.Helper()
	return limitsOf(t, c, ratelimit.Rule{Name: "rule", Key: match.MustKey(fields...), Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}})
}

// Answers returns a middleware that refuses a client after n answers with that status.
func Answers(t testing.TB, n uint64, status string) *latelyhttp.Middleware {
	t.Helper()
	return limitsOf(t, latelyhttp.Config{}, ratelimit.Rule{
		Name: "answers", Key: match.MustKey("client"), When: match.When{Status: []string{status}}, Limits: []ratelimit.Limit{{N: n, Span: time.Hour}},
	})
}

func limitsOf(t testing.TB, c latelyhttp.Config, rule ratelimit.Rule) *latelyhttp.Middleware {
	t.Helper()
	limiter, err := ratelimit.New(rule)
	if err != nil {
		t.Fatal(err)
	}
	limits, err := latelyhttp.New(limiter, c)
	if err != nil {
		t.Fatal(err)
	}
	return limits
}

// Body returns the body of a response.
func Body(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// testRefusal has the middleware answer the requests that it refuses, and the handler all others.
func testRefusal(t *testing.T, open Open) {
	reached := 0
	send := open(t, Limits(t, latelyhttp.Config{}, 2, "client"), func() { reached++ })
	for n := range 4 {
		r := send("GET", "/items/1", peer)
		text := Body(t, r)
		if r.Header.Get("RateLimit-Policy") != `"rule";q=2;w=3600` || !strings.HasPrefix(r.Header.Get("RateLimit"), `"rule";r=`) {
			t.Errorf("request %d has the fields %v", n+1, r.Header)
		}
		if n < 2 {
			if r.StatusCode != http.StatusOK || text != "item 1" {
				t.Errorf("request %d: %s %s", n+1, r.Status, text)
			}
			continue
		}
		wait, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if r.StatusCode != http.StatusTooManyRequests || err != nil || wait < 3590 || wait > 3600 {
			t.Errorf("request %d: %s, Retry-After %d (%v)", n+1, r.Status, wait, err)
		}
		if r.Header.Get("Content-Type") != "application/problem+json" || r.Header.Get("Cache-Control") != "no-store" || !strings.Contains(text, "quota-exceeded") {
			t.Errorf("request %d: %v %s", n+1, r.Header, text)
		}
		if r.ContentLength >= 0 && r.ContentLength != int64(len(text)) {
			t.Errorf("request %d: Content-Length %d for %d bytes", n+1, r.ContentLength, len(text))
		}
	}
	if r := send("HEAD", "/items/1", peer); r.StatusCode != http.StatusTooManyRequests || Body(t, r) != "" {
		t.Errorf("HEAD: %s", r.Status)
	}
	if reached != 2 {
		t.Errorf("%d requests reached the handler, want 2", reached)
	}
	if r := send("GET", "/items/1", "192.0.2.2:99"); r.StatusCode != http.StatusOK {
		t.Errorf("another client: %s", r.Status)
	}
}

// testSpoofedHeaders sends headers that name other clients: the client is the peer.
func testSpoofedHeaders(t *testing.T, open Open) {
	reached := 0
	send := open(t, Limits(t, latelyhttp.Config{}, 3, "client"), func() { reached++ })
	for n := range 100 {
		ip := fmt.Sprintf("198.51.100.%d", n)
		send("GET", "/items/1", "192.0.2.1:"+strconv.Itoa(1024+n), "X-Forwarded-For", ip, "X-Real-Ip", ip, "Forwarded", "for="+ip, "CF-Connecting-IP", ip, "x-forwarded-for", ip)
	}
	if reached != 3 {
		t.Errorf("%d requests reached the handler, want 3", reached)
	}
}

// testTrustedProxies has a proxy name two clients, which write another address each time.
func testTrustedProxies(t *testing.T, open Open) {
	reached := 0
	c := latelyhttp.Config{Identity: latelyhttp.IdentityConfig{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	send := open(t, Limits(t, c, 1, "client"), func() { reached++ })
	for n := range 6 {
		send("GET", "/items/1", "10.0.0.1:99", "X-Forwarded-For", fmt.Sprintf("198.51.100.%d, 203.0.113.%d", n, n%2))
	}
	if reached != 2 {
		t.Errorf("%d requests reached the handler, want one from each of 2 clients", reached)
	}
}

// testPattern sends requests to one route, which are one key.
func testPattern(t *testing.T, open Open) {
	reached := 0
	send := open(t, Limits(t, latelyhttp.Config{}, 2, "pattern"), func() { reached++ })
	for n := range 5 {
		send("GET", "/items/"+strconv.Itoa(n), peer)
	}
	if reached != 2 {
		t.Errorf("%d requests reached the handler, want 2: all are to one route", reached)
	}
}

// testInFlight has a request be in flight until its handler has returned or panicked.
func testInFlight(t *testing.T, open Open) {
	limits := limitsOf(t, latelyhttp.Config{}, ratelimit.Rule{
		Name: "at-once", Key: match.MustKey("client"), Algorithm: ratelimit.InFlight, Limits: []ratelimit.Limit{{N: 1, Span: time.Hour}},
	})
	var inside func()
	send := open(t, limits, func() { inside() })
	want := func(what string, status int) {
		t.Helper()
		if r := send("GET", "/items/1", peer); r.StatusCode != status {
			t.Errorf("%s: %s, want %d", what, r.Status, status)
		}
	}
	inside = func() {
		inside = func() { t.Error("two are in flight") }
		want("the second at one time", http.StatusTooManyRequests)
	}
	want("the first", http.StatusOK)
	inside = func() { panic("the handler fails") }
	for range 3 {
		want("one that panics", http.StatusInternalServerError)
	}
	inside = func() {}
	want("after the panics", http.StatusOK)
}
