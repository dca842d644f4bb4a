package latelyhttp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/http/middleware"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// fieldOf returns what the middleware fills into a field.
func fieldOf(t testing.TB, name string, r *http.Request, c Config) string {
	t.Helper()
	m := mustNew(t, mustLimiter(t, limited(t, "a", 1, time.Minute, name)), c)
	s := new(state)
	s.begin(r, m.identity)
	m.judge(m.rules.Plan(), s)
	return string(s.Event.GetNamed(name))
}

func TestFields(t *testing.T) {
	r := httptest.NewRequest("PUT", "http://EXAMPLE.com:8080/a%2fb//c/../d?x=1&page=%20", nil)
	r.RemoteAddr = "[::ffff:192.0.2.1]:1"
	r.Pattern = "PUT /{x...}"
	r.SetBasicAuth("ada", "se:cret")
	r.Header.Add("X-Api-Key", "first")
	r.Header.Add("X-Api-Key", "first")
	r.Header.Add("X-Tenant", "one")
	r.Header.Add("X-Tenant", "other")
	r.Header.Set("Cookie", "a=1; session=abc; Session=def")
	r.Header.Set("User-Agent", "curl")
	r.Header.Set("Referer", "http://example.org/")
	for name, want := range map[string]string{
		"client":   "192.0.2.1",
		"method":   "PUT",
		"path":     "/a%2fb//c/../d",
		"object":   "/a%2fb//c/../d",
		"pattern":  "PUT /{x...}",
		"query":    "x=1&page=%20",
		"host":     "example.com",
		"protocol": "HTTP/1.1",
		"referer":  "http://example.org/",
		"agent":    "curl",
		"user":     "ada",
		"api_key":  "first",
		"tenant":   "(ambiguous)",
		"token":    "",
		"page":     " ",
		"session":  "abc",
	} {
		if got := fieldOf(t, name, r, Config{}); got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
}

func TestOwnFields(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	own := map[string]func(*http.Request) string{
		"tenant":  func(*http.Request) string { return "t1" },
		"client":  func(*http.Request) string { return "alice" },
		"pattern": func(*http.Request) string { return "" },
		"path":    func(*http.Request) string { t.Error("a function is called that no rule needs"); return "" },
	}
	for name, want := range map[string]string{"tenant": "t1", "client": "alice", "pattern": "unrouted"} {
		if got := fieldOf(t, name, r, Config{Fields: own}); got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
}

func TestHostForms(t *testing.T) {
	for host, want := range map[string]string{
		"example.com": "example.com", "EXAMPLE.Com": "example.com", "example.com:8080": "example.com",
		"example.com.": "example.com", "example.com.:80": "example.com", "[2001:DB8::1]:80": "2001:db8::1",
		"[2001:db8::1]": "2001:db8::1", "192.0.2.1:80": "192.0.2.1", "": "",
	} {
		if got := string(middleware.AppendHost([]byte("x"), host)); got != "x"+want {
			t.Errorf("%q is %q; want %q", host, got, want)
		}
	}
}

// variants are notations of /items/one, and some paths that lead elsewhere.
func variants() []string {
	all := []string{"/items/one", "/items/one?x=%d", "/items/one?%d", "//items/one", "/items//one", "/./items/one", "/items/./one", "/x/../items/one", "/items/%%6Fne", "/%%69tems/one"}
	return append(all, "/items%%2Fone", "/ITEMS/one", "/items/one/", "/items/one/.", "/items/one/..", "http://example.com/items/one", "http://EXAMPLE.COM:80//items/one?%d")
}

// S3: however the path is written, a route has one bucket.
func TestPathVariants(t *testing.T) {
	const limit = 5
	raw := func(r *http.Request) string { return r.URL.RequestURI() }
	for _, c := range []struct {
		name   string
		fields []string
		own    func(mux *http.ServeMux) map[string]func(*http.Request) string
		inside bool
		broken bool // the control
	}{
		{name: "around the mux, by PatternOf", fields: []string{"client", "pattern"}, own: func(mux *http.ServeMux) map[string]func(*http.Request) string {
			return map[string]func(*http.Request) string{"pattern": PatternOf(mux)}
		}},
		{name: "within the mux", fields: []string{"client", "pattern"}, inside: true},
		{name: "around the mux, by path", fields: []string{"client", "path"}},
		{name: "by raw target", fields: []string{"client", "raw"}, broken: true, own: func(*http.ServeMux) map[string]func(*http.Request) string {
			return map[string]func(*http.Request) string{"raw": raw}
		}},
	} {
		mux := http.NewServeMux()
		var config Config
		if c.own != nil {
			config.Fields = c.own(mux)
		}
		m := mustNew(t, mustLimiter(t, limited(t, "route", limit, time.Hour, c.fields...)), config)
		next := new(ok)
		mux.Handle("GET /other", next)
		h := http.Handler(mux)
		if c.inside {
			mux.Handle("GET /items/{id}", m.Wrap(next))
		} else {
			mux.Handle("GET /items/{id}", next)
			h = m.Wrap(mux)
		}
		sent := 0
		ways := variants()
		if c.fields[1] == "pattern" {
			ways = append(ways, "/items/%d", "/items/one#%d", "/items/..%%2f%d") // other items, but one route
		}
		for i := range 20 {
			for _, v := range ways {
				if strings.Contains(v, "%d") {
					v = fmt.Sprintf(v, i)
				} else {
					v = strings.ReplaceAll(v, "%%", "%")
				}
				do(h, httptest.NewRequest("GET", v, nil))
				sent++
			}
		}
		if over := next.served > limit; over != c.broken {
			t.Errorf("%s: %d of %d requests reached the route; the limit is %d", c.name, next.served, sent, limit)
		}
	}
}

// Paths that lead nowhere do not escape a rule on patterns.
func TestUnroutedIsLimited(t *testing.T) {
	mux := http.NewServeMux()
	m := mustNew(t, mustLimiter(t, limited(t, "route", 3, time.Hour, "client", "pattern")), Config{
		Fields: map[string]func(*http.Request) string{"pattern": PatternOf(mux)},
	})
	h, codes := m.Wrap(mux), map[int]int{}
	for i := range 10 {
		codes[do(h, httptest.NewRequest("GET", fmt.Sprintf("/%d", i), nil)).Code]++
	}
	if codes[404] != 3 || codes[429] != 7 {
		t.Errorf("the answers are %v", codes)
	}
}

// A condition holds for a live request as it does for a log line.
func TestConditionsHold(t *testing.T) {
	rule := ratelimit.Rule{
		Name: "login", Key: mustKey(t, "client"), Limits: []ratelimit.Limit{{N: 0, Span: time.Minute}},
		When: match.When{Method: []string{"POST"}, Path: []string{"/login/**"}, Client: prefixes("192.0.2.0/24"), Fields: map[string][]string{"host": {"*.example.com"}}},
	}
	h := mustNew(t, mustLimiter(t, rule), Config{}).Wrap(new(ok))
	for _, c := range []struct {
		method, target, peer string
		want                 int
	}{
		{"POST", "http://api.example.com/login/x", "192.0.2.1:1", 429},
		{"POST", "http://API.EXAMPLE.COM:80//x/..//login/%78", "[::ffff:192.0.2.1]:1", 429},
		{"GET", "http://api.example.com/login/x", "192.0.2.1:1", 200},
		{"POST", "http://api.example.com/logout/x", "192.0.2.1:1", 200},
		{"POST", "http://api.example.com/login/x", "192.0.3.1:1", 200},
		{"POST", "http://api.example.org/login/x", "192.0.2.1:1", 200},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.RemoteAddr = c.peer
		if w := do(h, r); w.Code != c.want {
			t.Errorf("%s %s from %s: %d; want %d", c.method, c.target, c.peer, w.Code, c.want)
		}
	}
}

// A hashed field is filled in as a digest, which depends on the key of the middleware.
func TestHashedField(t *testing.T) {
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{Fields: []match.Source{{Field: "api_key", Header: "X-Api-Key", Hash: true}}}, limited(t, "a", 1, time.Minute, "api_key")))(t)
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("X-Api-Key", "secret")
	var values []string
	for _, key := range [][32]byte{{1}, {1}, {2}, {}, {}} {
		l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
		m, s := mustNew(t, l, Config{HashKey: key}), new(state)
		s.begin(r, m.identity)
		m.judge(m.rules.Plan(), s)
		values = append(values, string(s.Event.GetNamed("api_key")))
		if key == [32]byte{} {
			key = intake.ProcessKey()
		}
		if v := values[len(values)-1]; !intake.IsDigest(v) || v != intake.New(set.Internal().Sources(), key).Digest("secret") {
			t.Errorf("the field is %q", v)
		}
	}
	if values[0] != values[1] || values[0] == values[2] || values[3] == values[0] || values[3] != values[4] {
		t.Errorf("digests under the keys 1, 1, 2 and twice a random one: %v", values)
	}
}
