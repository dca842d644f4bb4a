package httpapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/test/must"
)

// forwarding returns a server that trusts the proxies at 10.0.0.0/8 and one on this
// machine.
func forwardingServer(t testing.TB) *Server {
	return newServer(t, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32")}
	})
}

// asProxy sends a request about a client's request, as a proxy at 10.0.0.1 does.
func asProxy(s *Server, path string, fields ...string) *httptest.ResponseRecorder {
	h := http.Header{}
	for i := 0; i < len(fields); i += 2 {
		h.Add(fields[i], fields[i+1])
	}
	return ask(s, request{method: "GET", path: path, peer: "10.0.0.1:5", header: h})
}

func TestForwardAuth(t *testing.T) {
	s := forwardingServer(t)
	about := []string{"X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/a?b=c"}
	for i := range 61 {
		w := asProxy(s, "/v1/auth", about...)
		if i < 60 {
			if w.Code != 204 || w.Header().Get("Ratelimit") == "" || w.Header().Get("Lately-Decision") != "allowed" || w.Body.Len() > 0 {
				t.Fatalf("request %d: %d %v", i, w.Code, w.Header())
			}
			continue
		}
		retry, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if w.Code != 429 || err != nil || retry < 1 || retry > 60 || !strings.Contains(w.Header().Get("Ratelimit-Policy"), `"per-client";q=60;w=60`) {
			t.Errorf("request %d: %d %v", i, w.Code, w.Header())
		}
		if !strings.Contains(w.Body.String(), `"violated-policies":["per-client"]`) || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("the refusal is %s", w.Body)
		}
	}
	if w := asProxy(s, "/v1/auth?refuse=403", about...); w.Code != 403 || w.Header().Get("Lately-Decision") != "refused" || w.Header().Get("Retry-After") == "" {
		t.Errorf("for nginx: %d %v", w.Code, w.Header())
	}
	for _, method := range []string{"HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
		w := ask(s, request{method: method, path: "/v1/auth", peer: "10.0.0.1:5", origin: "https://elsewhere.example", header: http.Header{
			"X-Forwarded-For": {"203.0.113.5"}, "X-Forwarded-Uri": {"/"},
		}})
		if w.Code != 429 {
			t.Errorf("%s: %d", method, w.Code)
		}
	}
	if n := s.Engine.Totals(); n.Allowed != 60 || n.Refused != 7 {
		t.Errorf("%+v", n)
	}
}

// A limit of guesses for a user holds however the credentials are spelled, and for
// clients that send none.
func TestForwardAuthUsers(t *testing.T) {
	s := forwardingServer(t)
	must.Get(s.Engine.Replace(parseRules(t, "version: 1\nlimits: [{name: guess, key: user | client, limit: 5 per 10m}]"), true))(t)
	guess := func(i int, authorization string) int {
		fields := []string{"X-Forwarded-For", "203.0.113." + strconv.Itoa(i), "X-Original-URI", "/login"}
		if authorization != "" {
			fields = append(fields, "Authorization", authorization)
		}
		return asProxy(s, "/v1/auth", fields...).Code
	}
	allowed := 0
	for i := range 100 {
		text := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "ada:guess%d", i))
		text = strings.TrimRight(text, "=") + strings.Repeat("=", i%5)
		text = text[:i%8] + strings.Repeat(".", i%3) + text[i%8:]
		if guess(i, "Basic"+strings.Repeat(" ", 1+i%4)+text) == 204 {
			allowed++
		}
	}
	if allowed != 5 {
		t.Errorf("%d of 100 guesses for one user were allowed; want 5", allowed)
	}
	for _, who := range []string{"", "Basic !"} {
		for i := range 6 {
			if code := guess(200, who); (code == 204) != (i < 5) {
				t.Errorf("request %d with %q: %d", i, who, code)
			}
		}
	}
	if code := guess(201, "Basic Z2Vv"); code != 429 { // as malformed as "Basic !"
		t.Errorf("other malformed credentials: %d; want 429", code)
	}
	if code := guess(201, ""); code != 204 {
		t.Errorf("another client without credentials: %d; want 204", code)
	}
}

// A proxy that is not trusted is refused. The answer names the missing flag, and so does the log, once a minute.
func TestForwardAuthOfUntrustedProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newServer(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		for minute := range 3 {
			for i := range 5 {
				peer := "192.0.2." + strconv.Itoa(7+i)
				w := ask(s, request{method: "GET", path: "/v1/auth", peer: peer + ":5", header: http.Header{"X-Original-Uri": {"/"}}})
				if want := peer + " is not a trusted proxy: if it is your proxy, start the server with --trusted-proxy " + peer; w.Code != 403 || !strings.Contains(w.Body.String(), want) {
					t.Errorf("minute %d: %d %s, want %q", minute, w.Code, w.Body, want)
				}
				if got := w.Header().Get("Lately-Decision"); got != "untrusted proxy" {
					t.Errorf("Lately-Decision is %q", got)
				}
			}
			if n := strings.Count(log.String(), "\n"); n != minute+1 {
				t.Errorf("after minute %d the log has %d lines; want %d:\n%s", minute, n, minute+1, &log)
			}
			time.Sleep(time.Minute)
		}
		if want := `start the server with --trusted-proxy 192.0.2.7"`; !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, &log)
		}
	})
}

// Envoy's ext_authz with path_prefix /v1/auth sends the method, Host and target of the
// request, takes 200 for a permission, and passes on the configured headers.
func TestForwardAuthOfEnvoy(t *testing.T) {
	s := forwardingServer(t)
	must.Get(s.Engine.Replace(parseRules(t, "version: 1\nlimits: [{name: login, key: client, limit: 2 per 10m, when: {method: POST, path: /login, host: app.example, query: 'x=1*'}}]"), true))(t)
	send := func(method, target string, fields ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/v1/auth"+target, nil)
		r.Host, r.RemoteAddr, r.RequestURI = "app.example", "10.0.0.1:5", "/v1/auth"+target
		r.Header.Set("X-Forwarded-For", "203.0.113.5")
		for i := 0; i < len(fields); i += 2 {
			r.Header.Set(fields[i], fields[i+1])
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	for i, target := range []string{"/login?x=1", "/x/../login?x=1&refuse=204", "//h/login?x=1"} {
		want := 200
		if i == 2 {
			want = 429
		}
		if w := send("POST", target); w.Code != want || w.Header().Get("Lately-Decision") == "" {
			t.Errorf("request %d: %d %s; want %d", i, w.Code, w.Body, want)
		}
	}
	if w := send("GET", "/login?x=1"); w.Code != 200 {
		t.Errorf("another method: %d", w.Code)
	}
	if w := send("GET", "/"); w.Code != 200 {
		t.Errorf("the root: %d", w.Code)
	}
	for _, field := range []string{"X-Original-Uri", "X-Forwarded-Uri", "X-Original-Method", "X-Forwarded-Method"} {
		if w := send("POST", "/login?x=1", field, "/other"); w.Code != 400 {
			t.Errorf("with %s of the client's: %d; want 400", field, w.Code)
		}
		if w := send("POST", "/login?x=1", field, map[bool]string{true: "/login?x=1", false: "POST"}[strings.HasSuffix(field, "Uri")]); w.Code != 429 {
			t.Errorf("with %s as sent: %d; want 429", field, w.Code)
		}
	}
	if w := ask(s, request{method: "GET", path: "/v1/auth/login", peer: "192.0.2.1:5"}); w.Code != 403 {
		t.Errorf("of a stranger: %d; want 403", w.Code)
	}
	for _, path := range []string{"/v1/authx", "/v1/%61uth/x"} {
		if w := asProxy(s, path); w.Code != 404 {
			t.Errorf("%s: %d; want 404", path, w.Code)
		}
	}
}

// The client is the one named by the trusted proxies, whatever the client itself has written.
func TestForwardAuthIdentity(t *testing.T) {
	s := forwardingServer(t)
	for range 60 {
		asProxy(s, "/v1/auth", "X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/")
	}
	for _, c := range []struct {
		chain string
		want  int
	}{
		{"203.0.113.5", 429},
		{"198.51.100.1, 203.0.113.5", 429},          // the client claims to be on the allow list
		{"203.0.113.5, 203.0.113.6", 204},           // it was 203.0.113.6 that sent this
		{"203.0.113.7, 203.0.113.5, 10.9.9.9", 429}, // through another trusted proxy
		{"::ffff:203.0.113.5", 429},                 // the same address
		{"203.0.113.5:4711", 429},                   // with its port
	} {
		if w := asProxy(s, "/v1/auth", "X-Forwarded-For", c.chain, "X-Original-URI", "/"); w.Code != c.want {
			t.Errorf("%s: %d; want %d", c.chain, w.Code, c.want)
		}
	}
	h := http.Header{"X-Forwarded-For": {"203.0.113.9"}, "X-Original-Uri": {"/"}}
	wantProblem(t, ask(s, request{method: "GET", path: "/v1/auth", peer: "203.0.113.200:1", header: h}), 403, api.NoPerm)
	wantProblem(t, asProxy(s, "/v1/auth", "X-Forwarded-For", "203.0.113.9"), 400, api.BadArg)
	wantProblem(t, asProxy(s, "/v1/auth?refuse=200", "X-Original-URI", "/"), 400, api.BadArg)
}

// A proxy writes one field for the path and one for the method. A second with another value may come from the client, which
// could then choose how it is judged.
func TestForwardAuthContradiction(t *testing.T) {
	s := forwardingServer(t)
	told := []string{"X-Forwarded-For", "203.0.113.5", "X-Forwarded-Uri", "/login", "X-Forwarded-Method", "POST"}
	for _, c := range []struct {
		name, value string
		want        int
	}{
		{"X-Original-URI", "/other", 400},
		{"X-Original-URI", "/login", 204},
		{"X-Original-URI", "", 204},
		{"X-Original-Method", "GET", 400},
		{"X-Original-Method", "POST", 204},
		{"X-Forwarded-Uri", "/other", 400},
		{"X-Forwarded-Method", "GET", 400},
	} {
		if w := asProxy(s, "/v1/auth", append(told, c.name, c.value)...); w.Code != c.want {
			t.Errorf("with %s: %s besides: %d %s; want %d", c.name, c.value, w.Code, w.Body, c.want)
		}
	}
	if n := s.Engine.Totals(); n.Allowed != 3 || n.Refused != 0 {
		t.Errorf("%+v; want the three that do not contradict", n)
	}
}

// The event describes the client's request.
func TestForwardAuthEvent(t *testing.T) {
	const text = `version: 1
limits:
  - {name: one, key: client, limit: 0 per 1m, when: {method: POST, path: /login, host: a.example, agent: "bad*", query: "x=1", referer: "http://r/*", user: ada}}
`
	s := forwardingServer(t)
	must.Get(s.Engine.Replace(parseRules(t, text), true))(t)
	all := []string{
		"X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/x/..//login?x=1", "X-Original-Method", "POST", "X-Forwarded-Host", "A.example:443",
		"User-Agent", "badbot", "Referer", "http://r/1", "Authorization", "Basic YWRhOnB3",
	}
	if w := asProxy(s, "/v1/auth", all...); w.Code != 429 {
		t.Errorf("the whole event: %d", w.Code)
	}
	for i := 2; i < len(all); i += 2 {
		changed := append([]string{}, all...)
		changed[i+1] = "/other"
		if w := asProxy(s, "/v1/auth", changed...); w.Code != 204 {
			t.Errorf("with another %s: %d; want 204", all[i], w.Code)
		}
	}
	all[3] = "http://a.example/login?x=1"
	if w := asProxy(s, "/v1/auth", all...); w.Code != 429 {
		t.Errorf("with a whole URL: %d", w.Code)
	}
	all[3] = "/%6cogin?x=1"
	if w := asProxy(s, "/v1/auth", all...); w.Code != 429 {
		t.Errorf("with an escaped path: %d", w.Code)
	}
	for _, broken := range []string{"/%zz", "?", "*", "//", "%", "://", "\x7f"} {
		all[3] = broken
		if w := asProxy(s, "/v1/auth", all...); w.Code != 204 && w.Code != 429 {
			t.Errorf("%q: %d", broken, w.Code)
		}
	}
}

// Requests without a field are not judged by the rules that count by it, or count together if it is shared.
func TestForwardAuthMissingField(t *testing.T) {
	for missing, want := range map[string]int{"skip": 204, "share": 429} {
		s := forwardingServer(t)
		rules := "version: 1\nfields: {tenant: {header: X-Tenant, missing: " + missing + "}}\nlimits: [{name: a, key: tenant, limit: 2 per 10m}]"
		must.Get(s.Engine.Replace(parseRules(t, rules), true))(t)
		for i := range 3 {
			w := asProxy(s, "/v1/auth", "X-Forwarded-For", "203.0.113."+strconv.Itoa(i), "X-Original-URI", "/")
			if last := i == 2; !last && w.Code != 204 || last && w.Code != want {
				t.Errorf("%s: request %d: %d", missing, i, w.Code)
			}
		}
		if w := asProxy(s, "/v1/auth", "X-Forwarded-For", "203.0.113.5", "X-Original-URI", "/", "X-Tenant", "acme"); w.Code != 204 {
			t.Errorf("%s: a request with the field: %d", missing, w.Code)
		}
	}
}

// A request without a field that must not be missing is refused: with 401, also for proxies that use another status for
// limits, with the place of the field, and in the same way by all routes.
func TestForwardAuthRefusesMissingField(t *testing.T) {
	s := forwardingServer(t)
	rules := "version: 1\nfields: {api_key: {header: X-API-Key, missing: refuse, hash: true}, sid: {cookie: sid, missing: refuse}, token: {bearer: true, missing: refuse}}\n" +
		"limits: [{name: keys, key: api_key, limit: 2 per 10m, when: {path: /api/*}}, {name: pages, key: \"sid | token\", limit: 1 per 10m, when: {path: /page}}]"
	must.Get(s.Engine.Replace(parseRules(t, rules), true))(t)
	from := []string{"X-Forwarded-For", "203.0.113.5", "X-Original-URI"}
	for _, query := range []string{"", "?refuse=403"} {
		w := asProxy(s, "/v1/auth"+query, append(from, "/api/x")...)
		want := `{"type":"about:blank","title":"Unauthorized","status":401,"detail":"the request lacks the header X-API-Key","missing":"api_key"}` + "\n"
		if w.Code != 401 || w.Body.String() != want || w.Header().Get("Www-Authenticate") != `Key header="X-API-Key"` || w.Header().Get("Lately-Decision") != "refused" {
			t.Errorf("%s: %d %v %s", query, w.Code, w.Header(), w.Body)
		}
		for _, name := range []string{"Retry-After", "Ratelimit", "Ratelimit-Policy"} {
			if v := w.Header().Get(name); v != "" {
				t.Errorf("%s: %s", name, v)
			}
		}
	}
	w := asProxy(s, "/v1/auth", append(from, "/page")...)
	if got := strings.Join(w.Header()["Www-Authenticate"], ", "); w.Code != 401 || got != `Key cookie="sid", Bearer` ||
		!strings.Contains(w.Body.String(), `"detail":"the request lacks the cookie sid or the bearer token in the header Authorization","missing":"sid | token"`) {
		t.Errorf("alternatives: %d %s %s", w.Code, got, w.Body)
	}
	if w := asProxy(s, "/v1/auth", append(from, "/page", "Authorization", "Bearer x")...); w.Code != 204 {
		t.Errorf("one of the alternatives: %d", w.Code)
	}
	if w := asProxy(s, "/v1/auth", append(from, "/api/x", "X-API-Key", "k")...); w.Code != 204 {
		t.Errorf("with the field: %d", w.Code)
	}
	body := `{"allowed":false,"limit":0,"remaining":0,"retry_after_ms":-1,"reset_after_ms":0,"rule":"keys","banned_until_ms":0,"missing":"api_key"}`
	for _, path := range []string{"/v1/check", "/v1/peek", "/v1/reserve"} {
		w := ask(s, request{method: "POST", path: path, body: `{"event":{"client":"203.0.113.5","path":"/api/x"}}`})
		if w.Code != 200 || strings.TrimSpace(w.Body.String()) != body {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w = ask(s, request{method: "POST", path: "/v1/check", body: `{"events":[{"event":{"path":"/api/x"}},{"event":{"path":"/api/x","api_key":"k"}}]}`})
	if !strings.HasPrefix(w.Body.String(), `{"decisions":[`+body+`,{"allowed":true,`) {
		t.Errorf("a list: %s", w.Body)
	}
	w = ask(s, request{method: "POST", path: "/v1/outcome", body: `{"event":{"path":"/api/x","status":"401"}}`})
	if !strings.HasPrefix(w.Body.String(), `{"allowed":true`) {
		t.Errorf("an outcome: %s", w.Body)
	}
	x, err := s.Engine.Explain("(missing)")
	if err != nil || len(x.Refusals) != 2 || x.Refusals[0].Count+x.Refusals[1].Count != 6 || x.Refusals[0].Example.Decision.Missing == "" || x.Refusals[0].Now != nil {
		t.Errorf("the explanation is %+v, %v", x, err)
	}
	var list api.RuleSet
	must.Do(t, json.Unmarshal(ask(s, request{method: "GET", path: "/v1/rules"}).Body.Bytes(), &list))
	for i, want := range []string{"5 of 7 events had no api_key: the rule refused them", "1 of 2 events had no sid and no token: the rule refused them"} {
		if got := list.Rules[i].Stats; got.LackingSentence != want || got.Refused != got.LackingRefused {
			t.Errorf("%s: %+v; want %q", list.Rules[i].Name, got, want)
		}
	}
	if r := s.Engine.Totals(); r.Refused != 6 {
		t.Errorf("%d refused in the totals; want 6", r.Refused)
	}
}
