package httpapi

import (
	"net/http"
	"testing"

	"github.com/lately-go/lately/api"
)

const failureRules = "version: 1\nlimits: [{name: failed-logins, key: client, when: {method: POST, path: /login, status: 401}, limit: 2 per 10m}]"

// TestForwardOutcome has a proxy report what became of requests that it has asked about.
func TestForwardOutcome(t *testing.T) {
	s := forwardingServer(t)
	if _, err := s.Engine.Replace(parseRules(t, failureRules), true); err != nil {
		t.Fatal(err)
	}
	about := func(more ...string) []string {
		return append([]string{"X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/login?x=1", "X-Original-Method", "POST"}, more...)
	}
	for i, c := range []struct {
		path   string
		header []string
		auth   int // what the next request gets
	}{
		{"/v1/auth-outcome", about("X-Original-Status", "200"), 204},
		{"/v1/auth-outcome", about("X-Original-Status", "401"), 204},
		{"/v1/auth-outcome?status=200", about(), 204},
		{"/v1/auth-outcome?status=200", about("X-Original-Status", "401"), 204},
		{"/v1/auth-outcome?status=401", about("X-Original-Size", "17", "X-Original-Duration", "0.25", "X-Original-Status", "200"), 429}, // a client's lie
	} {
		if w := asProxy(s, "/v1/auth", about()...); w.Code != 204 {
			t.Fatalf("request %d: %d %s", i, w.Code, w.Body)
		}
		if w := asProxy(s, c.path, c.header...); w.Code != 204 || w.Body.Len() > 0 {
			t.Fatalf("outcome %d: %d %s", i, w.Code, w.Body)
		}
		if w := asProxy(s, "/v1/auth", about()...); w.Code != c.auth {
			t.Errorf("the request after outcome %d: %d, want %d", i, w.Code, c.auth)
		}
	}
	for _, path := range []string{"/v1/auth-outcome", "/v1/auth-outcome?status=99", "/v1/auth-outcome?status=abc", "/v1/auth-outcome?size=-1", "/v1/auth-outcome?duration=soon"} {
		wantProblem(t, asProxy(s, path, about()...), 400, api.BadArg)
	}
	wantProblem(t, asProxy(s, "/v1/auth-outcome", about("X-Original-Status", "200", "X-Original-Status", "401")...), 400, api.BadArg)
	wantProblem(t, asProxy(s, "/v1/auth-outcome?status=401", "X-Forwarded-For", "203.0.113.5"), 400, api.BadArg)
	w := ask(s, request{method: "POST", path: "/v1/auth-outcome?status=401", peer: "192.0.2.1:5", header: http.Header{"X-Original-Uri": {"/login"}}})
	wantProblem(t, w, 403, api.NoPerm)
}

// TestOutcomeAccess checks that an outcome needs the role that check needs, by both routes. A page of another
// origin may not report one, and a proxy may pass on the fields of such a page.
func TestOutcomeAccess(t *testing.T) {
	all := tokens(t)
	s := newServer(t, func(c *Config) { c.Tokens = tokensOf(all) })
	const body = `{"event":{"client":"203.0.113.9","status":"401"}}`
	for _, path := range []string{"/v1/outcome", "/v1/check"} {
		for token, want := range map[string]int{"": 401, "wrong-wrong-wrong-wrong-wrong-wrong": 401, readToken: 403, checkToken: 200} {
			if w := ask(s, request{method: "POST", path: path, body: body, token: token}); w.Code != want {
				t.Errorf("%s with token %q: %d, want %d", path, token, w.Code, want)
			}
		}
	}
	for _, path := range []string{"/v1/auth-outcome?status=401", "/v1/auth"} {
		for token, want := range map[string]int{"": 401, readToken: 403} {
			if w := ask(s, request{method: "GET", path: path, header: http.Header{"X-Lately-Token": {token}}}); w.Code != want {
				t.Errorf("%s with token %q: %d, want %d", path, token, w.Code, want)
			}
		}
	}
	open := forwardingServer(t)
	if w := ask(open, request{method: "POST", path: "/v1/outcome", body: body, origin: "https://elsewhere.example"}); w.Code != 403 {
		t.Errorf("from a page of another origin: %d", w.Code)
	}
	w := ask(open, request{method: "POST", path: "/v1/auth-outcome?status=401", peer: "10.0.0.1:5", origin: "https://elsewhere.example", header: http.Header{
		"X-Forwarded-For": {"203.0.113.5"}, "X-Original-Uri": {"/"},
	}})
	if w.Code != 204 {
		t.Errorf("from a proxy, about a page of another origin: %d %s", w.Code, w.Body)
	}
}
