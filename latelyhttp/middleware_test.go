package latelyhttp

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/http/refusal"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func mustKey(t testing.TB, fields ...string) match.Key {
	t.Helper()
	k := must.Get(match.NewKey(match.Fold{}, fields...))(t)
	return k
}

// limited is a rule on these fields, or client: n per span.
func limited(t testing.TB, name string, n uint64, span time.Duration, fields ...string) ratelimit.Rule {
	t.Helper()
	if fields == nil {
		fields = []string{"client"}
	}
	return ratelimit.Rule{Name: name, Key: mustKey(t, fields...), Limits: []ratelimit.Limit{{N: n, Span: span}}}
}

// sources are the declared fields of the tests.
var sources = []match.Source{
	{Field: "tenant", Header: "X-Tenant"},
	{Field: "api_key", Header: "x-api-key"},
	{Field: "session", Cookie: "session"},
	{Field: "token", Bearer: true},
	{Field: "page", Query: "page"},
	{Field: "account"},
}

func mustLimiter(t testing.TB, rules ...ratelimit.Rule) *ratelimit.Limiter {
	t.Helper()
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: sources}, rules...))(t)
	l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	return l
}

func mustNew(t testing.TB, l *ratelimit.Limiter, c Config) *Middleware {
	t.Helper()
	m := must.Get(New(l, c))(t)
	return m
}

// ok answers 200 and counts, one request at a time.
type ok struct{ served int }

func (h *ok) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	h.served++
	fmt.Fprint(w, "served")
}

// do sends one request through a handler.
func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestWrap(t *testing.T) {
	m := mustNew(t, mustLimiter(t, limited(t, "per-client", 2, time.Minute)), Config{})
	next := new(ok)
	h := m.Wrap(next)
	for i, want := range []int{200, 200, 429, 429} {
		w := do(h, request("192.0.2.1:1"))
		if w.Code != want {
			t.Errorf("request %d: %d; want %d", i+1, w.Code, want)
		}
	}
	if w := do(h, request("192.0.2.2:1")); w.Code != 200 || w.Body.String() != "served" {
		t.Errorf("another client: %d %s", w.Code, w.Body)
	}
	if next.served != 3 {
		t.Errorf("%d requests were served; want 3", next.served)
	}
}

func TestSkipAndCost(t *testing.T) {
	m := mustNew(t, mustLimiter(t, limited(t, "per-client", 5, time.Minute)), Config{
		Skip: func(r *http.Request) bool { return r.URL.Path == "/health" },
		Cost: func(r *http.Request) uint64 {
			return map[string]uint64{"/look": 0, "/one": 1, "/four": 4, "/ten": 10}[r.URL.Path]
		},
	})
	h := m.Wrap(new(ok))
	for i, step := range []struct {
		path string
		want int
	}{{"/look", 200}, {"/one", 200}, {"/four", 200}, {"/one", 429}, {"/look", 200}, {"/ten", 429}, {"/health", 200}} {
		r := httptest.NewRequest("GET", step.path, nil)
		w := do(h, r)
		if w.Code != step.want {
			t.Errorf("step %d, %s: %d; want %d", i, step.path, w.Code, step.want)
		}
		if got := w.Header().Get("RateLimit") != ""; got != (step.path != "/health") {
			t.Errorf("step %d, %s: RateLimit is %q", i, step.path, w.Header().Get("RateLimit"))
		}
		// No waiting allows what costs more than the limit.
		if got := w.Header().Get("Retry-After") != ""; got != (step.want == 429 && step.path != "/ten") {
			t.Errorf("step %d, %s: Retry-After is %q", i, step.path, w.Header().Get("Retry-After"))
		}
	}
}

func TestObserve(t *testing.T) {
	shadow := limited(t, "planned", 1, time.Minute)
	shadow.Shadow = true
	l := mustLimiter(t, limited(t, "today", 2, time.Minute), shadow)
	var seen []string
	m := mustNew(t, l, Config{
		Identity: IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")},
		Observe: func(r *http.Request, v Verdict) {
			line := fmt.Sprintf("%s %s %v %v", r.Method, v.Client, v.Client.Proxied(), v.Decision.Allowed)
			for _, o := range v.Outcomes {
				line += fmt.Sprintf(" %s:%v", v.Set.Rules()[o.Rule].Name, o.Refused)
			}
			seen = append(seen, line)
		},
	})
	h := m.Wrap(new(ok))
	for range 3 {
		w := do(h, request("10.0.0.1:1", "192.0.2.1"))
		if text := fmt.Sprint(w.Header(), w.Body); strings.Contains(text, "planned") {
			t.Errorf("the client receives a shadow rule: %s", text)
		}
	}
	want := []string{
		"GET 192.0.2.1 true true today:false planned:false",
		"GET 192.0.2.1 true true today:false planned:true",
		"GET 192.0.2.1 true false today:true planned:true",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the observer saw\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
}

func TestOnRefused(t *testing.T) {
	m := mustNew(t, mustLimiter(t, limited(t, "none", 0, time.Minute), limited(t, "one", 1, time.Minute)), Config{
		OnRefused: func(w http.ResponseWriter, r *http.Request, v Verdict) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %d", v.Client, v.Decision.Rule, len(v.Outcomes))
		},
	})
	w := do(m.Wrap(new(ok)), request("192.0.2.1:1"))
	if w.Code != http.StatusTeapot || w.Body.String() != "192.0.2.1 none 2" {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
	if w.Header().Get("RateLimit") == "" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Content-Type") != "" {
		t.Errorf("its header is %v", w.Header())
	}
}

// The allow list contains addresses themselves, not proxies that do not name their client.
func TestAllowList(t *testing.T) {
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Allow: prefixes("10.0.0.0/8")}, limited(t, "none", 0, time.Minute)))(t)
	l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
	for _, c := range []struct {
		config IdentityConfig
		peer   string
		lines  []string
		want   int
	}{
		{IdentityConfig{}, "10.0.0.9:1", nil, 200},
		{IdentityConfig{}, "[::ffff:10.0.0.9]:1", nil, 200},
		{IdentityConfig{}, "192.0.2.1:1", []string{"10.0.0.9"}, 429},
		{IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")}, "10.0.0.1:1", []string{"192.0.2.1"}, 429},
		{IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")}, "10.0.0.1:1", []string{"10.0.0.9, 192.0.2.1"}, 429},
		{IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")}, "10.0.0.1:1", nil, 429},
		{IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")}, "10.0.0.1:1", []string{"_x"}, 429},
		{IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8"), ProxiesAreClients: true}, "10.0.0.1:1", nil, 200},
		{IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8"), Hops: 1}, "10.0.0.1:1", []string{"10.0.0.9"}, 200},
	} {
		w := do(mustNew(t, l, Config{Identity: c.config}).Wrap(new(ok)), request(c.peer, c.lines...))
		if w.Code != c.want {
			t.Errorf("%s, %q: %d; want %d", c.peer, c.lines, w.Code, c.want)
		}
	}
}

// One client that rotates what it may never be allowed for, and one that rotates its address within a /64, get what one
// client gets.
func TestRotationIsOneClient(t *testing.T) {
	rnd := randtest.New(t)
	m := mustNew(t, mustLimiter(t, limited(t, "ten", 10, time.Hour)), Config{
		Identity: IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")},
		Headers:  NoHeaders,
	})
	next := new(ok)
	h := m.Wrap(next)
	w := httptest.NewRecorder()
	w.Body = nil
	r := request("192.0.2.1:1", "")
	for range 30_000 {
		r.Header["X-Forwarded-For"][0] = netip.AddrFrom4([4]byte{198, 51, byte(rnd.Uint32()), byte(rnd.Uint32())}).String()
		h.ServeHTTP(w, r)
	}
	if next.served != 10 {
		t.Errorf("rotating headers: %d requests were served; want 10", next.served)
	}
	next.served = 0
	for range 30_000 {
		r.RemoteAddr = fmt.Sprintf("[2001:db8::%x:%x]:1", rnd.Uint32()>>16, rnd.Uint32()>>16)
		h.ServeHTTP(w, r)
	}
	if next.served != 10 {
		t.Errorf("rotating addresses: %d requests were served; want 10", next.served)
	}
}

func TestNewErrors(t *testing.T) {
	client := mustLimiter(t, limited(t, "a", 1, time.Minute))
	status := limited(t, "a", 1, time.Minute)
	status.When.Status = []string{"404"}
	for _, c := range []struct {
		limiter *ratelimit.Limiter
		config  Config
		want    string
	}{
		{nil, Config{}, "limiter: nil"},
		{client, Config{Headers: numHeaders}, "Headers: 4: must be Draft11"},
		{client, Config{Jitter: -time.Second}, "Jitter: -1s: must be 0 to 1h"},
		{client, Config{Fields: map[string]func(*http.Request) string{"tenant": nil}}, `Fields: "tenant": must have`},
		{client, Config{Fields: map[string]func(*http.Request) string{"": (*http.Request).UserAgent}}, `Fields: "": must have`},
		{client, Config{Identity: IdentityConfig{Hops: -1}}, "IdentityConfig.Hops: -1"},
		{mustLimiter(t, limited(t, "a", 1, time.Minute, "size")), Config{}, `rule "a": field "size" in its key: unknown when a request comes`},
		{mustLimiter(t, limited(t, "a", 1, time.Minute, "cleint")), Config{}, `unknown field "cleint" in the rules: must be client, method`},
		{mustLimiter(t, limited(t, "a", 1, time.Minute, "account")), Config{}, `unknown field "account" in the rules: must be`},
	} {
		if _, err := New(c.limiter, c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v; want an error with %q", err, c.want)
		}
	}
	own := map[string]func(*http.Request) string{"status": func(*http.Request) string { return "" }, "tenant": (*http.Request).UserAgent}
	if _, err := New(mustLimiter(t, status, limited(t, "b", 1, time.Minute, "tenant")), Config{Fields: own}); err != nil {
		t.Errorf("with functions of its own: %v", err)
	}
}

// Rules change while requests are served: the plan follows the Set, and an outcome of a rule without a plan is left out.
func TestPlanFollowsTheSet(t *testing.T) {
	l := mustLimiter(t, limited(t, "old", 5, time.Minute))
	m := mustNew(t, l, Config{})
	old := &m.rules.Plan().Policies
	must.Do(t, l.Update(mustLimiter(t, limited(t, "a", 5, time.Minute), limited(t, "b", 5, time.Minute)).Set()))
	w := do(m.Wrap(new(ok)), request("192.0.2.1:1"))
	plan := m.rules.Plan()
	if got := header(t, w, "RateLimit-Policy"); got != `"a";q=5;w=60, "b";q=5;w=60` || m.rules.Plan() != plan {
		t.Errorf("RateLimit-Policy is %s", got)
	}
	d, outcomes := new(ratelimit.Decision), []ratelimit.Outcome{{Rule: 0, Refused: true}, {Rule: 1, Refused: true}}
	h := http.Header{}
	old.WriteHeader(h, nil, outcomes, d)
	if got := h.Get("RateLimit"); got != `"old";r=0` {
		t.Errorf("RateLimit is %s", got)
	}
	d.RetryAfter = time.Second
	refused := refusal.Refusal{Policies: old, Decision: *d, Outcomes: outcomes}
	if body, _, _ := refused.AppendBody(nil, nil, nil, nil); !strings.Contains(string(body), `"violated-policies":["old"]`) {
		t.Errorf("the body is %s", body)
	}
}

// The response writer is passed on unchanged, and the handler may use it in any way.
func TestPanicsPass(t *testing.T) {
	m := mustNew(t, mustLimiter(t, limited(t, "per-client", 2, time.Minute)), Config{})
	h := m.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, is := w.(*httptest.ResponseRecorder); !is {
			t.Errorf("the handler got a %T", w)
		}
		panic(http.ErrAbortHandler)
	}))
	for range 2 {
		func() {
			defer func() {
				if recover() != http.ErrAbortHandler {
					t.Error("the panic was lost")
				}
			}()
			do(h, request("192.0.2.1:1"))
		}()
	}
	if w := do(h, request("192.0.2.1:1")); w.Code != 429 {
		t.Errorf("after two panics: %d", w.Code)
	}
}

// discard is a response writer that keeps its header map.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

func TestAllocations(t *testing.T) {
	rules := []ratelimit.Rule{
		limited(t, "per-client", 1<<30, time.Minute),
		limited(t, "login", 1<<30, time.Minute, "client", "path"),
		limited(t, "session", 1<<30, time.Minute, "session"),
		limited(t, "api", 1<<30, time.Minute, "api_key", "host", "user"),
	}
	refused := limited(t, "none", 0, time.Minute)
	for _, c := range []struct {
		name    string
		rules   []ratelimit.Rule
		headers Headers
		want    float64
	}{
		{"allowed", rules, NoHeaders, 0},
		{"allowed, with fields", rules, Draft11, 2},
		{"refused, with body", []ratelimit.Rule{refused}, NoHeaders, 4},
	} {
		m := mustNew(t, mustLimiter(t, c.rules...), Config{Headers: c.headers, Identity: IdentityConfig{TrustedProxies: prefixes("10.0.0.0/8")}})
		h := m.Wrap(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		r := request("10.0.0.1:4711", "198.51.100.1", "2001:db8::1")
		r.Host = "API.example.com:443"
		r.SetBasicAuth("ada", "secret")
		r.Header.Set("X-Api-Key", "key-1")
		r.Header.Set("Cookie", "a=b; session=123")
		w := &discard{http.Header{}}
		got := testing.AllocsPerRun(200, func() {
			clear(w.header)
			h.ServeHTTP(w, r)
		})
		if got > c.want {
			t.Errorf("%s: %v allocations; want at most %v", c.name, got, c.want)
		}
	}
}

// header returns the only line of a field.
func header(t testing.TB, w *httptest.ResponseRecorder, name string) string {
	t.Helper()
	lines := w.Header().Values(name)
	if len(lines) != 1 {
		t.Fatalf("%s has %d lines: %q", name, len(lines), lines)
	}
	return cmp.Or(lines[0], "(empty)")
}
