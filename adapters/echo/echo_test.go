package latelyecho_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	latelyecho "github.com/lately-go/lately/adapters/echo"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// newLimits returns a middleware of one rule: n an hour for each key of fields.
func newLimits(t testing.TB, c latelyhttp.Config, n uint64, fields ...string) *latelyhttp.Middleware {
	t.Helper()
	return newLimitsOf(t, c, ratelimit.Rule{Name: "rule", Key: newKey(t, fields...), Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}})
}

// inFlight is a rule of n requests of a client at one time.
func inFlight(t testing.TB, n uint64) ratelimit.Rule {
	return ratelimit.Rule{Name: "at-once", Key: newKey(t, "client"), Algorithm: ratelimit.InFlight, Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}}
}

func newKey(t testing.TB, fields ...string) match.Key {
	t.Helper()
	key, err := match.NewKey(match.Fold{}, fields...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newLimitsOf(t testing.TB, c latelyhttp.Config, rule ratelimit.Rule) *latelyhttp.Middleware {
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

// newEcho returns an Echo with others before a route that counts what
// reaches it.
func newEcho(reached *int, before ...echo.MiddlewareFunc) *echo.Echo {
	e := echo.New()
	e.Use(before...)
	e.Any("/items/:id", func(c *echo.Context) error {
		*reached++
		return c.String(http.StatusOK, "item "+c.Param("id"))
	})
	return e
}

// get sends a request from a peer, with header fields given as pairs.
func get(h http.Handler, method, target, peer string, header ...string) *http.Response {
	r := httptest.NewRequest(method, target, nil)
	r.RemoteAddr = peer
	for n := 0; n < len(header); n += 2 {
		r.Header.Add(header[n], header[n+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t testing.TB, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRefusalIsAnsweredAndEndsTheChain(t *testing.T) {
	reached, statuses := 0, map[int]int{}
	e := newEcho(&reached,
		func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				err := next(c)
				r, unwrapErr := echo.UnwrapResponse(c.Response())
				if unwrapErr != nil {
					t.Error(unwrapErr)
					return err
				}
				statuses[r.Status]++ // as a logger sees it
				return err
			}
		},
		latelyecho.New(newLimits(t, latelyhttp.Config{}, 2, "client")),
		func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				reached += 100
				return next(c)
			}
		})
	for n := range 4 {
		r := get(e, "GET", "/items/1", "192.0.2.1:99")
		if r.Header.Get("RateLimit-Policy") != `"rule";q=2;w=3600` || !strings.HasPrefix(r.Header.Get("RateLimit"), `"rule";r=`) {
			t.Errorf("request %d has the fields %v", n+1, r.Header)
		}
		if n < 2 {
			if r.StatusCode != http.StatusOK || body(t, r) != "item 1" {
				t.Errorf("request %d: %s", n+1, r.Status)
			}
			continue
		}
		wait, err := strconv.Atoi(r.Header.Get("Retry-After"))
		if r.StatusCode != http.StatusTooManyRequests || err != nil || wait < 3590 || wait > 3600 {
			t.Errorf("request %d: %s, Retry-After %d (%v)", n+1, r.Status, wait, err)
		}
		if text := body(t, r); r.Header.Get("Content-Type") != "application/problem+json" || !strings.Contains(text, "quota-exceeded") {
			t.Errorf("request %d: %s %s", n+1, r.Header.Get("Content-Type"), text)
		}
	}
	if reached != 202 || statuses[http.StatusOK] != 2 || statuses[http.StatusTooManyRequests] != 2 {
		t.Errorf("handlers counted %d, a logger %v, want 202 and two of each", reached, statuses)
	}
	if r := get(e, "HEAD", "/items/1", "192.0.2.1:99"); r.StatusCode != http.StatusTooManyRequests || body(t, r) != "" {
		t.Errorf("HEAD: %s", r.Status)
	}
	if r := get(e, "GET", "/items/1", "192.0.2.2:99"); r.StatusCode != http.StatusOK {
		t.Errorf("another client: %s", r.Status)
	}
}

func TestSpoofedHeadersAreIgnored(t *testing.T) {
	reached := 0
	e := newEcho(&reached, latelyecho.New(newLimits(t, latelyhttp.Config{}, 3, "client")))
	for n := range 100 {
		ip := fmt.Sprintf("198.51.100.%d", n)
		get(e, "GET", "/items/1", "192.0.2.1:"+strconv.Itoa(1024+n), "X-Forwarded-For", ip, "X-Real-Ip", ip, "Forwarded", "for="+ip, "CF-Connecting-IP", ip)
	}
	if reached != 3 {
		t.Errorf("%d requests reached the handler, want 3", reached)
	}
}

func TestTrustedProxies(t *testing.T) {
	reached := 0
	c := latelyhttp.Config{Identity: latelyhttp.IdentityConfig{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}}
	e := newEcho(&reached, latelyecho.New(newLimits(t, c, 1, "client")))
	for n := range 6 {
		// The client writes the first address afresh each time, the proxy the second.
		get(e, "GET", "/items/1", "10.0.0.1:99", "X-Forwarded-For", fmt.Sprintf("198.51.100.%d, 203.0.113.%d", n, n%2))
	}
	if reached != 2 {
		t.Errorf("%d requests reached the handler, want one of each of 2 clients", reached)
	}
}

func TestPatternIsTheRoute(t *testing.T) {
	reached := 0
	e := newEcho(&reached, latelyecho.New(newLimits(t, latelyhttp.Config{}, 2, "pattern")))
	for n := range 5 {
		get(e, "GET", "/items/"+strconv.Itoa(n), "192.0.2.1:99")
	}
	if reached != 2 {
		t.Errorf("%d requests reached the handler, want 2: all are to one route", reached)
	}
}

func TestField(t *testing.T) {
	reached := 0
	c := latelyhttp.Config{Fields: map[string]func(*http.Request) string{
		"user": latelyecho.Field(func(c *echo.Context) string {
			user, _ := c.Get("user").(string)
			return user
		}),
	}}
	e := newEcho(&reached,
		func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				c.Set("user", c.QueryParam("as"))
				return next(c)
			}
		},
		latelyecho.New(newLimits(t, c, 1, "user")))
	for _, as := range []string{"ann", "bob", "ann", "bob"} {
		get(e, "GET", "/items/1?as="+as, "192.0.2.1:99")
	}
	if reached != 2 {
		t.Errorf("%d requests reached the handler, want one of each user", reached)
	}
}

// Elsewhere, Field has no context of echo to ask.
func TestFieldElsewhere(t *testing.T) {
	f := latelyecho.Field(func(*echo.Context) string { panic("no context") })
	if v := f(httptest.NewRequest("GET", "/", nil)); v != "" {
		t.Errorf("the field is %q", v)
	}
}

// A request is in flight until its handlers have returned or panicked.
func TestInFlight(t *testing.T) {
	limits := newLimitsOf(t, latelyhttp.Config{}, inFlight(t, 1))
	reached, inside := 0, func() {}
	recovering := func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) (err error) {
			defer func() {
				if recover() != nil {
					err = echo.ErrInternalServerError
				}
			}()
			return next(c)
		}
	}
	e := newEcho(&reached, recovering, latelyecho.New(limits), func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			inside()
			return next(c)
		}
	})
	status := func() int { return get(e, "GET", "/items/1", "192.0.2.1:99").StatusCode }
	inside = func() {
		inside = func() { t.Error("two are in flight") }
		if code := status(); code != http.StatusTooManyRequests {
			t.Errorf("the second at one time: %d", code)
		}
	}
	if code := status(); code != http.StatusOK {
		t.Errorf("the first: %d", code)
	}
	inside = func() { panic("the handler fails") }
	for range 3 {
		if code := status(); code != http.StatusInternalServerError {
			t.Errorf("one that panics: %d", code)
		}
	}
	inside = func() {}
	if code := status(); code != http.StatusOK {
		t.Errorf("after the panics: %d", code)
	}
}

// answers is a rule of n answers of a client with that status.
func answers(t testing.TB, n uint64, status string) ratelimit.Rule {
	return ratelimit.Rule{Name: "answers", Key: newKey(t, "client"), When: match.When{Status: []string{status}}, Limits: []ratelimit.Limit{{N: n, Span: time.Hour}}}
}

// The answers of handlers are counted, also of those that return an error.
func TestAnswers(t *testing.T) {
	for status, inside := range map[string]func() error{
		"404": func() error { return echo.ErrNotFound },
		"500": func() error { return errors.New("the handler fails") },
		"200": func() error { return nil },
	} {
		reached := 0
		e := newEcho(&reached, latelyecho.New(newLimitsOf(t, latelyhttp.Config{}, answers(t, 2, status))), func(next echo.HandlerFunc) echo.HandlerFunc {
			return func(c *echo.Context) error {
				if err := inside(); err != nil {
					return err
				}
				return next(c)
			}
		})
		for i := range 4 {
			code := get(e, "GET", "/items/1", "192.0.2.1:99").StatusCode
			if refused := code == http.StatusTooManyRequests; refused != (i >= 2) {
				t.Errorf("request %d under a limit of two answers with status %s: %d", i, status, code)
			}
		}
	}
}

func BenchmarkNew(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(map[bool]string{false: "bare", true: "limited"}[with], func(b *testing.B) {
			reached := 0
			var handlers []echo.MiddlewareFunc
			if with {
				handlers = append(handlers, latelyecho.New(newLimits(b, latelyhttp.Config{}, 1<<31, "client")))
			}
			e := newEcho(&reached, handlers...)
			r := httptest.NewRequest("GET", "/items/1", nil)
			r.RemoteAddr = "192.0.2.1:99"
			b.ReportAllocs()
			for b.Loop() {
				e.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
