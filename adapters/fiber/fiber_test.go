package latelyfiber_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v3"
	recoverer "github.com/gofiber/fiber/v3/middleware/recover"
	"github.com/valyala/fasthttp"

	latelyfiber "github.com/lately-go/lately/adapters/fiber"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/test/adaptertest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/latelyhttp"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// sendTo returns what sends requests to an app.
func sendTo(t testing.TB, app *fiber.App) adaptertest.Send {
	var from net.Addr
	s := serve(t, app, func() net.Addr { return from })
	return func(method, target, peer string, header ...string) *http.Response {
		var lines []string
		for n := 0; n < len(header); n += 2 {
			lines = append(lines, header[n]+": "+header[n+1])
		}
		from = tcp(peer)
		r, text := s.send(method, target, lines...)
		r.Body = io.NopCloser(strings.NewReader(text))
		return r
	}
}

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, func(t testing.TB, m *latelyhttp.Middleware, f func()) adaptertest.Send {
		return sendTo(t, newApp(new(int), recoverer.New(), latelyfiber.New(m), func(c fiber.Ctx) error {
			f()
			return c.Next()
		}))
	})
}

// All lines of the header count, the last one most: the proxy appended it.
func TestTrustedProxies(t *testing.T) {
	var clients []string
	c := latelyhttp.Config{
		Identity: latelyhttp.IdentityConfig{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}},
		Observe:  func(_ *http.Request, v latelyhttp.Verdict) { clients = append(clients, v.Client.String()) },
	}
	reached := 0
	s := serve(t, newApp(&reached, latelyfiber.New(adaptertest.Limits(t, c, 9, "client"))), at("10.0.0.1:99"))
	for _, lines := range [][]string{
		{"X-Forwarded-For: 198.51.100.1, 203.0.113.1"},
		{"X-Forwarded-For: 198.51.100.2", "X-Forwarded-For: 203.0.113.2"},
		{"X-Forwarded-For: 198.51.100.3", "x-forwarded-for: 203.0.113.3", "X-FORWARDED-FOR: 10.0.0.2"},
		{"X-Forwarded-For: 203.0.113.4", "X-Forwarded-For: junk"},
		{},
	} {
		s.send("GET", "/items/1", lines...)
	}
	want := "203.0.113.1 203.0.113.2 203.0.113.3 proxy:10.0.0.1 proxy:10.0.0.1"
	if got := strings.Join(clients, " "); got != want {
		t.Errorf("the clients are %s, want %s", got, want)
	}
}

func TestUnixSocket(t *testing.T) {
	var clients []string
	c := latelyhttp.Config{
		Identity: latelyhttp.IdentityConfig{TrustUnix: true},
		Observe:  func(_ *http.Request, v latelyhttp.Verdict) { clients = append(clients, v.Client.String()) },
	}
	reached := 0
	remote := &net.UnixAddr{Name: filepath.Join(t.TempDir(), "socket"), Net: "unix"}
	s := serve(t, newApp(&reached, latelyfiber.New(adaptertest.Limits(t, c, 9, "client"))), func() net.Addr { return remote })
	s.send("GET", "/items/1", "X-Forwarded-For: 203.0.113.1")
	s.send("GET", "/items/1")
	if got := strings.Join(clients, " "); got != "203.0.113.1 proxy:unix" {
		t.Errorf("the clients are %s", got)
	}
}

// Events of requests have the same fields as in net/http.
func TestFieldsOfARequest(t *testing.T) {
	names := []string{"method", "path", "query", "host", "protocol", "agent", "referer", "user", "tenant", "session", "page"}
	want := []string{"PUT", "/items/a%2Fb/../1", "page=%20", "shop.example", "HTTP/1.1", "curl", "there", "ann", "acme", "s1", " "}
	var rules []ratelimit.Rule
	for _, name := range names {
		key := must.Get(match.NewKey(match.Fold{Off: true}, name))(t)
		rules = append(rules, ratelimit.Rule{Name: name, Key: key, Limits: []ratelimit.Limit{{N: 1, Span: time.Hour}}})
	}
	keys := &keyStore{}
	set, err := ratelimit.NewSet(ratelimit.SetConfig{Fields: []match.Source{
		{Field: "tenant", Header: "X-Tenant"}, {Field: "session", Cookie: "session"}, {Field: "page", Query: "page"},
	}}, rules...)
	if err != nil {
		t.Fatal(err)
	}
	l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{Store: keys}))(t)
	limits := must.Get(latelyhttp.New(l, latelyhttp.Config{}))(t)
	reached := 0
	s := serve(t, newApp(&reached, latelyfiber.New(limits)), at("192.0.2.1:99"))
	s.send("PUT", "/items/a%2Fb/../1?page=%20", "User-Agent: curl", "Referer: there", "X-Tenant: acme", "X-Tenant: acme",
		"Cookie: a=b; session=s1", "Authorization: Basic YW5uOnNlY3JldA==")
	if g, w := strings.Join(keys.keys, " | "), strings.Join(want, " | "); g != w {
		t.Errorf("the fields are\n%s, want\n%s", g, w)
	}
}

// A keyStore allows everything and keeps the keys.
type keyStore struct {
	store.Store[*ratelimit.Set, ratelimit.BanRecord] // no other method is called

	keys []string
}

func (*keyStore) DecideKnown(*store.Request[*ratelimit.Set]) bool { return false }

func (k *keyStore) Decide(_ context.Context, batch []*store.Request[*ratelimit.Set]) {
	for _, r := range batch {
		for _, s := range r.Subjects {
			k.keys = append(k.keys, string(s.Key))
		}
	}
}

func TestPatternIsTheRoute(t *testing.T) {
	reached := 0
	limits := latelyfiber.New(adaptertest.Limits(t, latelyhttp.Config{}, 2, "pattern"))
	handler := func(fiber.Ctx) error {
		reached++
		return nil
	}
	app := fiber.New()
	app.Get("/items/:id", limits, handler)
	app.Get("/shops/:id", limits, handler)
	s := serve(t, app, at("192.0.2.1:99"))
	for n := range 5 {
		s.send("GET", "/items/"+strconv.Itoa(n))
		s.send("GET", "/shops/"+strconv.Itoa(n))
	}
	if reached != 4 {
		t.Errorf("%d requests reached the handler, want 2 for each route", reached)
	}
}

func TestField(t *testing.T) {
	c := latelyhttp.Config{Fields: map[string]func(*http.Request) string{
		"user": latelyfiber.Field(func(c fiber.Ctx) string { return fiber.Locals[string](c, "user") }),
	}}
	adaptertest.CheckUsers(t, sendTo(t, newApp(new(int),
		func(c fiber.Ctx) error {
			fiber.Locals(c, "user", c.Query("as"))
			return c.Next()
		},
		latelyfiber.New(adaptertest.Limits(t, c, 1, "user")))))
}

// The output of OnRefused is sent, and list fields of earlier handlers stay.
func TestOnRefused(t *testing.T) {
	reached := 0
	for _, tt := range []struct {
		write func(http.ResponseWriter)
		code  int
		body  string
	}{
		{func(w http.ResponseWriter) {
			w.Header().Set("X-Why", "busy")
			w.WriteHeader(http.StatusTeapot)
			w.WriteHeader(http.StatusOK) // too late
			fmt.Fprint(w, "later, ")
			fmt.Fprint(w, "please")
		}, http.StatusTeapot, "later, please"},
		{func(w http.ResponseWriter) { w.Header().Set("X-Why", "busy") }, http.StatusOK, ""},
	} {
		c := latelyhttp.Config{OnRefused: func(w http.ResponseWriter, _ *http.Request, _ latelyhttp.Verdict) { tt.write(w) }}
		app := newApp(&reached,
			func(c fiber.Ctx) error {
				c.Set("RateLimit", `"outer";r=1`)
				return c.Next()
			},
			latelyfiber.New(adaptertest.Limits(t, c, 0, "client")))
		r, text := serve(t, app, at("192.0.2.1:99")).send("GET", "/items/1")
		if r.StatusCode != tt.code || text != tt.body || r.Header.Get("X-Why") != "busy" {
			t.Errorf("%s %q with %v, want %d %q", r.Status, text, r.Header, tt.code, tt.body)
		}
		if fields := r.Header.Values("RateLimit"); len(fields) != 2 || fields[0] != `"outer";r=1` {
			t.Errorf("the RateLimit fields are %q", fields)
		}
	}
	if reached > 0 {
		t.Errorf("%d requests reached the handler", reached)
	}
}

// The answers of handlers are counted, including those that return an error or panic.
func TestAnswers(t *testing.T) {
	for status, inside := range map[string]func(fiber.Ctx) error{
		"404": func(fiber.Ctx) error { return fiber.ErrNotFound },
		"403": func(c fiber.Ctx) error { return c.SendStatus(http.StatusForbidden) },
		"500": func(fiber.Ctx) error { panic("the handler fails") },
		"200": func(c fiber.Ctx) error { return c.Next() },
	} {
		adaptertest.CheckAnswers(t, status, sendTo(t, newApp(new(int), recoverer.New(), latelyfiber.New(adaptertest.Answers(t, 2, status)), inside)))
	}
}

func BenchmarkNew(b *testing.B) {
	for _, with := range []bool{false, true} {
		b.Run(map[bool]string{false: "bare", true: "limited"}[with], func(b *testing.B) {
			reached := 0
			var handlers []any
			if with {
				handlers = append(handlers, latelyfiber.New(adaptertest.Limits(b, latelyhttp.Config{}, 1<<31, "client")))
			}
			handle := newApp(&reached, handlers...).Handler()
			var c fasthttp.RequestCtx
			c.Request.SetRequestURI("/items/1")
			c.Init(&c.Request, tcp("192.0.2.1:99"), nil)
			b.ReportAllocs()
			for b.Loop() {
				c.Response.Reset()
				handle(&c)
			}
		})
	}
}
