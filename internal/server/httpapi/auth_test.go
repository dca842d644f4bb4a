package httpapi

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
)

func tokensOf(all *access.Tokens) func() *access.Tokens { return func() *access.Tokens { return all } }

// An empty token field counts as missing: the other one is used.
func TestEmptyTokenField(t *testing.T) {
	all := tokens(t)
	s := newServer(t, func(c *Config) { c.Tokens = tokensOf(all) })
	for _, empty := range []string{"", "wrong-wrong-wrong-wrong-wrong-wrong-wrong"} {
		w := ask(s, request{method: "GET", path: "/v1/status", header: http.Header{"X-Lately-Token": {empty}, "Authorization": {"Bearer " + readToken}}})
		if want := map[bool]int{true: 200, false: 401}[empty == ""]; w.Code != want {
			t.Errorf("X-Lately-Token %q: %d %s; want %d", empty, w.Code, w.Body, want)
		}
	}
}

// sample returns a request for a route that is as good as any.
func sample(t *route) request {
	r := request{method: cmp.Or(t.method, "GET"), path: strings.NewReplacer("{name}", "requests", "{$}", "").Replace(t.path), body: "{}"}
	if t.path == rulesCheckPath {
		r.media = "application/yaml"
	}
	return r
}

// whoMayAsk lists the roles of each route. It repeats the table of routes, so that a mistake there is found.
const whoMayAsk = `
everyone: GET / GET /console/{name} GET /healthz GET /readyz POST /v1/login POST /v1/logout
read: GET /metrics GET /openapi.json GET /v1/bans GET /v1/decisions GET /v1/decisions/stream GET /v1/counters GET /v1/counters/{name}/rate GET /v1/counters/{name}/sum
read: GET /v1/counters/{name}/top GET /v1/events GET /v1/explain GET /v1/hot GET /v1/hot/stats GET /v1/hot/watch GET /v1/key GET /v1/rates GET /v1/refused GET /v1/rules GET /v1/status
check: POST /v1/charge POST /v1/reserve POST /v1/settle * /v1/auth * /v1/auth-outcome POST /v1/check POST /v1/outcome POST /v1/hot/report POST /v1/hot/cache POST /v1/hot/changed POST /v1/counters/{name}/add POST /v1/feeds/open POST /v1/feeds/events POST /v1/peek POST /v1/refund POST /v1/release POST /v1/take POST /v1/throttle
admin: POST /v1/hot POST /v1/hot/remove POST /v1/hot/ignore POST /v1/bans POST /v1/bans/unban POST /v1/reset POST /v1/rules/check POST /v1/rules/try POST /v1/rules/reload POST /v1/demo/stop
`

func TestAllowedPeers(t *testing.T) {
	want := map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(whoMayAsk)) {
		who, list, _ := strings.Cut(line, ":")
		words := strings.Fields(list)
		for i := 0; i < len(words); i += 2 {
			want[words[i]+" "+words[i+1]] = who
		}
	}
	names := map[access.Role]string{access.None: "everyone", access.Read: "read", access.Check: "check", access.Admin: "admin"}
	got := map[string]string{}
	for _, r := range routes() {
		got[cmp.Or(r.method, "*")+" "+strings.TrimSuffix(r.path, "{$}")] = names[r.role]
	}
	for _, path := range slices.Sorted(maps.Keys(got)) {
		if got[path] != want[path] {
			t.Errorf("%s is for %s; %q in the list of this test", path, got[path], want[path])
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d routes; the list in this test has %d", len(got), len(want))
	}
}

// Every route, with no token, with wrong ones, and with each role.
func TestEveryRouteAndRole(t *testing.T) {
	all := tokens(t)
	s := newServer(t, func(c *Config) { c.Tokens = tokensOf(all) })
	roles := []struct {
		token string
		role  access.Role
	}{{"", access.None}, {"wrong-wrong-wrong-wrong-wrong-wrong", access.None}, {"x", access.None}, {readToken, access.Read}, {checkToken, access.Check}, {adminToken, access.Admin}}
	for i := range s.routes {
		route := &s.routes[i]
		for _, who := range roles {
			r := sample(route)
			if route.id == "login" {
				r.body = `{"token":"` + readToken + `"}` // a login without a token fails, whatever the role
			}
			if who.token != "" {
				r.header = http.Header{"X-Lately-Token": {who.token}}
			}
			w := ask(s, r)
			switch refused := strings.Contains(w.Body.String(), `"NOPERM"`) && !route.foreign() || w.Code == 401; {
			case who.role >= route.role:
				if refused {
					t.Errorf("%s %s as %v: %d %s; want it answered", r.method, r.path, who.role, w.Code, w.Body)
				}
			case who.role == access.None:
				want := api.WrongPass
				if who.token == "" {
					want = api.NoAuth
				}
				wantProblem(t, w, 401, want)
			default:
				wantProblem(t, w, 403, api.NoPerm)
			}
		}
	}
}

// Forward-auth does not use Authorization as a token: it is from the proxy's client.
func TestForwardAuthReadsNoAuthorization(t *testing.T) {
	all := tokens(t)
	s := newServer(t, func(c *Config) { c.Tokens = tokensOf(all) })
	wantProblem(t, ask(s, request{method: "GET", path: "/v1/auth", token: checkToken}), 401, api.NoAuth)
}

// All unknown tokens are answered alike, byte for byte, however near they are. No
// token is answered with another code, as clients of Redis expect it.
func TestAuthFailuresAreAlike(t *testing.T) {
	all := tokens(t)
	s := newServer(t, func(c *Config) { c.Tokens = tokensOf(all) })
	wantProblem(t, ask(s, request{method: "GET", path: "/v1/status"}), 401, api.NoAuth)
	first := ask(s, request{method: "GET", path: "/v1/status", token: "other"})
	wantProblem(t, first, 401, api.WrongPass)
	for _, token := range []string{"wrong", readToken[:len(readToken)-1], readToken + "x", strings.Repeat("y", 2000)} {
		w := ask(s, request{method: "GET", path: "/v1/status", token: token})
		if w.Code != first.Code || w.Body.String() != first.Body.String() || fmt.Sprint(w.Header()) != fmt.Sprint(first.Header()) {
			t.Errorf("with token %q: %d %v %s; with another %d %v %s", token, w.Code, w.Header(), w.Body, first.Code, first.Header(), first.Body)
		}
	}
}

// TestWrongTokensDoNotLockOut has 1,000 logins with unknown tokens from one address: a
// valid token from there still works, and the log has few lines and no token.
func TestWrongTokensDoNotLockOut(t *testing.T) {
	var log bytes.Buffer
	all := tokens(t)
	s := newServer(t, func(c *Config) { c.Tokens, c.Log = tokensOf(all), slog.New(slog.NewTextHandler(&log, nil)) })
	for range 1000 {
		ask(s, request{method: "GET", path: "/v1/status", token: "guess-guess-guess-guess-guess-guess"})
		wantProblem(t, post(s, "/v1/login", `{"token":"guess-guess-guess-guess-guess-guess"}`), 401, api.WrongPass)
	}
	if w := ask(s, request{method: "GET", path: "/v1/status", token: readToken}); w.Code != 200 {
		t.Errorf("a valid token: %d %s", w.Code, w.Body)
	}
	if w := post(s, "/v1/login", `{"token":"`+readToken+`"}`); w.Code != 200 {
		t.Errorf("a login with a valid token: %d %s", w.Code, w.Body)
	}
	if n := s.Rejected.Load(); n != 2000 {
		t.Errorf("%d rejected logins were counted; want 2000", n)
	}
	if n := strings.Count(log.String(), "login rejected"); n == 0 || n > 100 {
		t.Errorf("the log has %d lines about 2000 rejected logins; want one for each second", n)
	}
	if strings.Contains(log.String(), "guess-guess") {
		t.Error("the log has a token")
	}
}

func TestSession(t *testing.T) {
	all := tokens(t)
	var now atomic.Pointer[access.Tokens]
	now.Store(all)
	s := newServer(t, func(c *Config) { c.Tokens = now.Load })
	wantProblem(t, post(s, "/v1/login", `{"token":"no"}`), 401, api.WrongPass)
	w := post(s, "/v1/login", `{"token":"`+adminToken+`"}`)
	if w.Code != 200 || w.Body.String() != `{"role":"admin"}`+"\n" {
		t.Fatalf("login: %d %s", w.Code, w.Body)
	}
	cookie := w.Header().Get("Set-Cookie")
	for _, want := range []string{"lately=", "HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie is %q; want %s in it", cookie, want)
		}
	}
	if strings.Contains(cookie, adminToken) {
		t.Error("the cookie has the token in it")
	}
	value, _, _ := strings.Cut(cookie, ";")
	with := func(r request) request {
		r.header = http.Header{"Cookie": {value}}
		return r
	}
	unban := with(request{method: "POST", path: "/v1/bans/unban", body: `{"rule":"flood","key":"192.0.2.1"}`})
	if w := ask(s, unban); w.Code != 200 {
		t.Errorf("with the session: %d %s", w.Code, w.Body)
	}
	foreign := unban
	foreign.origin = "https://evil.example"
	wantProblem(t, ask(s, foreign), 403, api.NoPerm)

	auth := with(request{method: "GET", path: "/v1/auth"}) // a browser behind the proxy has no role there
	wantProblem(t, ask(s, auth), 401, api.NoAuth)

	now.Store(tokens(t)) // the same, read again
	if w := ask(s, unban); w.Code != 200 {
		t.Errorf("with the session, under the same tokens: %d %s", w.Code, w.Body)
	}
	now.Store(otherTokens(t))
	wantProblem(t, ask(s, unban), 401, api.NoAuth)
	now.Store(all)
	if w := ask(s, with(request{method: "POST", path: "/v1/logout", body: "{}"})); w.Code != 200 || !strings.Contains(w.Header().Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logout: %d %v", w.Code, w.Header())
	}
	wantProblem(t, ask(s, unban), 401, api.NoAuth)
}
