package httpapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
)

const failureRules = "version: 1\nlimits: [{name: failed-logins, key: client, when: {method: POST, path: /login, status: 401}, limit: 2 per 10m}]"

// TestForwardOutcome has a proxy report the answers to requests that it has asked about.
func TestForwardOutcome(t *testing.T) {
	s := forwardingServer(t)
	must.Get(s.Engine.Replace(parseRules(t, failureRules), true))(t)
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

// TestOutcomeByID reports answers by the ids that /v1/check and forward-auth give, one at a time and in lists.
func TestOutcomeByID(t *testing.T) {
	s := forwardingServer(t)
	must.Get(s.Engine.Replace(parseRules(t, failureRules), true))(t)
	about := []string{"X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/login?x=1", "X-Original-Method", "POST"}
	allowed := func(query string) string {
		t.Helper()
		w := asProxy(s, "/v1/auth"+query, about...)
		if w.Code != 204 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w.Header().Get("Lately-Decision-Id")
	}
	if id := allowed(""); id != "" {
		t.Errorf("without a decision: %s", id)
	}
	if w := asProxy(s, "/v1/auth?outcome_ms=1000", "X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/"); w.Code != 204 || w.Header()["Lately-Decision-Id"] != nil {
		t.Errorf("a request whose answer counts nowhere: %d %q", w.Code, w.Header())
	}
	first, second := allowed("?outcome_ms=60000"), allowed("?refuse=403&outcome_ms=60000")
	for _, path := range []string{"?id=&status=401", "?id=" + first + "&status=401", "?id=" + first + "&status=401&size=7&duration=0.1"} {
		if w := ask(s, request{method: "GET", path: "/v1/auth-outcome" + path, peer: "192.0.2.1:5"}); w.Code != 204 || w.Body.Len() > 0 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	wantProblem(t, ask(s, request{method: "GET", path: "/v1/auth-outcome?id=x&status=401"}), 404, api.BadID)
	wantProblem(t, ask(s, request{method: "GET", path: "/v1/auth-outcome?id=" + second}), 400, api.BadArg)
	wantProblem(t, asProxy(s, "/v1/auth?outcome_ms=0", about...), 400, api.BadArg)
	allowed("") // one has failed

	var d api.Decision
	w := post(s, "/v1/check", `{"event":{"client":"203.0.113.6","method":"POST","path":"/login"},"outcome_ms":60000}`)
	if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || d.ID == "" {
		t.Fatalf("%s: %v", w.Body, err)
	}
	w = post(s, "/v1/outcome", `{"events":[{"id":"`+second+`","event":{"status":"401"}},{"id":"`+d.ID+`","event":{"status":"401"}},{"id":"`+d.ID+`","event":{"status":"401"}}]}`)
	if n := strings.Count(w.Body.String(), `"rule":"failed-logins"`); n != 3 {
		t.Errorf("%s", w.Body)
	}
	if w := asProxy(s, "/v1/auth", about...); w.Code != 429 {
		t.Errorf("after two failed logins: %d", w.Code)
	}
	if w := post(s, "/v1/peek", `{"rule":"failed-logins","key":"203.0.113.6"}`); !strings.Contains(w.Body.String(), `"allowed":true`) {
		t.Errorf("after one that was reported twice: %s", w.Body)
	}
	long := asProxy(s, "/v1/auth?outcome_ms=60000", "X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/"+strings.Repeat("x", 5000), "X-Original-Method", "POST")
	if long.Code != 204 || long.Header()["Lately-Decision-Id"] != nil {
		t.Errorf("a long path that no rule is about: %d", long.Code)
	}
	must.Get(s.Engine.Replace(parseRules(t, strings.Replace(failureRules, "path: /login", `path: "/**"`, 1)), true))(t)
	long = asProxy(s, "/v1/auth?refuse=403&outcome_ms=60000", "X-Forwarded-For", "203.0.113.7", "X-Original-URI", "/"+strings.Repeat("x", 5000), "X-Original-Method", "POST")
	if long.Code != 403 || long.Header().Get("Lately-Decision") != "refused" {
		t.Errorf("a path that is too long for an id: %d %q", long.Code, long.Header())
	}
}
