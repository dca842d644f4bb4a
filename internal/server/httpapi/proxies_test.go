package httpapi

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
)

// A startProxy starts a real reverse proxy with the snippet of the documentation, in
// front of an application, asking the server at lately with that token, if any. It
// returns where it listens. change is for [strings.NewReplacer].
type startProxy func(t *testing.T, wait timeouts, app, lately, token string, change ...string) (listen string)

// timeouts is how long a proxy waits for the server: the documented time, or enough for a server on a busy machine.
type timeouts bool

const (
	documented timeouts = false
	patient    timeouts = true
)

// of returns change, by which the timeouts of a snippet are longer, if w is patient.
func (w timeouts) of(change ...string) []string {
	if w == documented {
		return nil
	}
	return change
}

// snippet returns the configuration on the page of a proxy in docs/guides, with the changes of a [strings.NewReplacer].
// Each replaced text must be there.
func snippet(t *testing.T, proxy string, change ...string) string {
	t.Helper()
	return snippetAt(t, proxy, 0, change...)
}

// snippetAt is snippet for the n-th block of a proxy, from 0.
func snippetAt(t *testing.T, proxy string, n int, change ...string) string {
	t.Helper()
	return snippetOf(t, proxy, "2. Configure "+proxy, n, change...)
}

// snippetOf is snippetAt for another section.
func snippetOf(t *testing.T, proxy, section string, n int, change ...string) string {
	t.Helper()
	page := "docs/guides/" + strings.ToLower(proxy) + ".md"
	doc := must.Get(os.ReadFile("../../../" + page))(t)
	_, text, ok := strings.Cut(string(doc), "\n## "+section+"\n")
	for range n {
		_, text, _ = strings.Cut(text, "\n```")
		_, text, _ = strings.Cut(text, "\n```")
	}
	_, text, ok2 := strings.Cut(text, "\n```")
	_, text, ok3 := strings.Cut(text, "\n")
	text, _, ok4 := strings.Cut(text, "\n```")
	if !ok || !ok2 || !ok3 || !ok4 {
		t.Fatalf("%s has no snippet %d", page, n)
	}
	for i := 0; i < len(change); i += 2 {
		if !strings.Contains(text, change[i]) {
			t.Fatalf("the snippet for %s has no %q:\n%s", proxy, change[i], text)
		}
	}
	return strings.NewReplacer(change...).Replace(text) + "\n"
}

// write writes a file in dir and returns its path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// runProxy runs a proxy until the end of the test, and waits until it passes requests on. Its home is dir.
func runProxy(t *testing.T, dir, listen, program string, args ...string) {
	t.Helper()
	var log strings.Builder
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stdout, cmd.Stderr = &log, &log
	must.Do(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		stop()
		<-done
		if t.Failed() {
			t.Log(log.String())
		}
	})
	waiting := from(t, "127.0.0.9")
	until(t, program+" hands requests on", func() bool {
		w, err := waiting.Get("http://" + listen + "/ready")
		if err != nil {
			return false
		}
		io.Copy(io.Discard, w.Body)
		w.Body.Close()
		return w.StatusCode != http.StatusNotFound // without its routes yet
	})
}

// from returns a client with that address.
func from(t *testing.T, ip string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

const proxiedRules = `version: 1
limits:
  - {name: per-client, key: client, limit: 60 per 10m}
  - {name: login, key: [client, user], limit: 5 per 10m, when: {method: POST, path: /login, host: app.example, agent: "browser*"}}
`

// A proxied is an application behind a real proxy that uses a server.
type proxied struct {
	t      *testing.T
	s      *Server
	listen string
	ready  uint64 // number allowed before

	mu    sync.Mutex
	asked int         // of the application
	seen  http.Header // what the application was sent last
}

// behind starts a server, with tokens or without, an application and the proxy
// between them.
func behind(t *testing.T, start startProxy, token string) *proxied {
	p := &proxied{t: t}
	p.s = newServer(t, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
		if token != "" {
			all := tokens(t)
			c.Tokens = tokensOf(all)
		}
	})
	must.Get(p.s.Engine.Replace(parseRules(t, proxiedRules), true))(t)
	app := httptest.NewServer(p)
	t.Cleanup(app.Close)
	p.listen = start(t, patient, app.Listener.Addr().String(), serve(t, p.s), token)
	p.ready = p.s.Engine.Totals().Allowed
	return p
}

// ServeHTTP is the application: it returns the request.
func (p *proxied) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked++
	p.seen = r.Header
	p.mu.Unlock()
	if r.URL.Path == "/forbidden" {
		w.WriteHeader(http.StatusForbidden)
	}
	io.Copy(w, r.Body)
}

// send sends a request with these header fields to the proxy, and returns the answer
// and its body.
func (p *proxied) send(c *http.Client, method, path, body string, header http.Header) (*http.Response, string) {
	p.t.Helper()
	r := must.Get(http.NewRequest(method, "http://"+p.listen+path, strings.NewReader(body)))(p.t)
	r.Host = "app.example"
	r.Header.Set("User-Agent", "browser")
	maps.Copy(r.Header, header)
	w := must.Get(c.Do(r))(p.t)
	defer w.Body.Close()
	text := must.Get(io.ReadAll(w.Body))(p.t)
	return w, string(text)
}

// lies are what clients claim about themselves to get around a limit, or to make others reach it.
var lies = []http.Header{
	{},
	{"X-Forwarded-For": {"198.51.100.1"}},
	{"X-Forwarded-For": {"203.0.113.1, 127.0.0.1"}, "Forwarded": {"for=203.0.113.1"}, "X-Real-Ip": {"203.0.113.1"}},
	{"X-Original-Uri": {"/other"}},
	{"X-Original-Method": {"GET"}},
	{"X-Forwarded-Uri": {"/other"}, "X-Forwarded-Method": {"GET"}, "X-Forwarded-Host": {"other.example"}},
	{"X-Lately-Token": {"wrong-wrong-wrong-wrong-wrong-wrong-wrong"}},
	{"Connection": {"X-Forwarded-For, X-Forwarded-Uri, X-Forwarded-Method, X-Forwarded-Host"}},
	{"X-Forwarded-For": {""}, "X-Forwarded-Uri": {""}, "X-Original-Uri": {""}},
	{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}, "Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}},
}

// wantRefusal checks that w refuses by the rule, with the time to come back.
func (p *proxied) wantRefusal(w *http.Response, rule string, who any) {
	p.t.Helper()
	retry, err := strconv.Atoi(w.Header.Get("Retry-After"))
	if w.StatusCode != 429 || err != nil || retry < 1 || retry > 600 || w.Header.Get("RateLimit") == "" || !strings.Contains(w.Header.Get("RateLimit-Policy"), rule) {
		p.t.Errorf("as %v: %d %v; want 429 by %s with Retry-After, RateLimit and RateLimit-Policy", who, w.StatusCode, w.Header, rule)
	}
}

// judges checks that clients behind the proxy are judged by their address and their request, whatever they claim, and are
// served if nothing refuses them.
func (p *proxied) judges() {
	one, other, third := from(p.t, "127.0.0.21"), from(p.t, "127.0.0.22"), from(p.t, "127.0.0.23")
	ada := func(h http.Header) http.Header {
		h = h.Clone()
		h.Set("Authorization", "Basic YWRhOnB3")
		return h
	}
	for i := range 60 {
		if w, body := p.send(one, "POST", "/page?q=1", "sent", nil); w.StatusCode != 200 || body != "sent" {
			p.t.Fatalf("request %d: %d %q", i, w.StatusCode, body)
		}
	}
	for range 5 {
		if w, _ := p.send(third, "POST", "/login", "", ada(http.Header{})); w.StatusCode != 200 {
			p.t.Errorf("a login: %d", w.StatusCode)
		}
	}
	for _, lie := range lies {
		w, _ := p.send(one, "GET", "/page", "", lie)
		p.wantRefusal(w, "per-client", lie)
		w, _ = p.send(third, "POST", "/login?x=y", "", ada(lie))
		p.wantRefusal(w, "login", lie)
	}
	refused := len(lies) * 2
	for _, c := range []struct {
		method, path string
		want         int
	}{{"GET", "/page", 200}, {"HEAD", "/page", 200}, {"GET", "/forbidden", 403}, {"OPTIONS", "/", 200}} {
		if w, _ := p.send(other, c.method, c.path, "", nil); w.StatusCode != c.want {
			p.t.Errorf("another client: %s %s: %d; want %d", c.method, c.path, w.StatusCode, c.want)
		}
	}
	p.counted(60+5+4, refused)
}

// tellsAllowed checks that each response shows clients what they have left, and that they cannot write that themselves.
func (p *proxied) tellsAllowed() {
	c := from(p.t, "127.0.0.25")
	for left := 59; left >= 57; left-- {
		w, _ := p.send(c, "GET", "/page", "", http.Header{"Ratelimit": {"\"mine\";r=9"}, "Ratelimit-Policy": {"\"mine\";q=9"}})
		want := fmt.Sprintf(`"per-client";r=%d;t=`, left)
		if got := w.Header.Values("RateLimit"); w.StatusCode != 200 || len(got) != 1 || !strings.HasPrefix(got[0], want) {
			p.t.Errorf("an allowed request: %d, RateLimit %q; want %s", w.StatusCode, got, want)
		}
		if got := w.Header.Values("RateLimit-Policy"); !slices.Equal(got, []string{`"per-client";q=60;w=600`}) {
			p.t.Errorf("an allowed request has RateLimit-Policy %q", got)
		}
	}
	must.Get(p.s.Engine.Replace(parseRules(p.t, "version: 1\n"), true))(p.t)
	if w, _ := p.send(c, "GET", "/page", "", nil); w.StatusCode != 200 || w.Header["Ratelimit"] != nil || w.Header["Ratelimit-Policy"] != nil {
		p.t.Errorf("a request that no rule matches: %d %v", w.StatusCode, w.Header)
	}
}

// loginSpellings are targets that some server reads as /login.
var loginSpellings = []string{
	"/login", "/login?x", "/login#x", "/login#?x", `/x\..\login`, "//h/login", "/%6cogin", "/x%2Fy/../login", "/x/%2e%2e/login", `/h\../login`,
}

// judgesSpellings checks that a limit on a path holds however a client spells it.
func (p *proxied) judgesSpellings() {
	c := from(p.t, "127.0.0.21")
	login := func(target string) int {
		r := &http.Request{
			Method: "POST", Host: "app.example", URL: &url.URL{Scheme: "http", Host: p.listen, Opaque: target},
			Header: http.Header{"User-Agent": {"browser"}, "Authorization": {"Basic YWRhOnB3"}},
		}
		if strings.HasPrefix(target, "//") { // which a URL would take for a host
			r.URL.Opaque = "http://app.example" + target
		}
		w := must.Get(c.Do(r))(p.t)
		w.Body.Close()
		return w.StatusCode
	}
	allowed := 0
	for _, target := range slices.Concat(loginSpellings, loginSpellings) {
		switch status := login(target); {
		case status == 200:
			allowed++
		case status == 400: // the proxy itself refuses such a target
		case status != 429 || allowed < 5:
			p.t.Errorf("after %d logins, as %s: %d; want 200 five times, then 429", allowed, target, status)
		}
	}
	if allowed != 5 {
		p.t.Errorf("%d logins were allowed; want 5", allowed)
	}
}

// counted checks how many requests were allowed and refused, and that the application received exactly the allowed ones.
func (p *proxied) counted(allowed, refused int) {
	p.t.Helper()
	n := p.s.Engine.Totals()
	if n.Allowed-p.ready != uint64(allowed) || n.Refused != uint64(refused) {
		p.t.Errorf("%+v, %d of them before the test; want %d allowed and %d refused", n, p.ready, allowed, refused)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked != allowed+int(p.ready) {
		p.t.Errorf("the application received %d requests; want %d", p.asked, allowed+int(p.ready))
	}
}

// hidesToken checks that the application is not sent the proxy's token.
func (p *proxied) hidesToken(token string) {
	p.send(from(p.t, "127.0.0.24"), "GET", "/", "", nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	if values := slices.Concat(slices.Collect(maps.Values(p.seen))...); slices.Contains(values, token) || len(values) == 0 {
		p.t.Errorf("the application was sent %v", p.seen)
	}
}

// testProxy checks the claims of docs/guides about a proxy, which returns the
// status away without a server, and untrusted if it is not trusted.
func testProxy(t *testing.T, start startProxy, away, untrusted int) {
	for _, token := range []string{"", checkToken} {
		t.Run(fmt.Sprintf("tokens=%t", token != ""), func(t *testing.T) {
			p := behind(t, start, token)
			p.judges()
			if token != "" {
				p.hidesToken(token)
			}
		})
	}
	for _, c := range []struct {
		name   string
		lately func(*testing.T) string
		want   int
	}{
		{"away", func(t *testing.T) string { return freeport.Addr(t) }, away},
		{"not trusted", func(t *testing.T) string { return serve(t, newServer(t, nil)) }, untrusted},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the application received the request") }))
			t.Cleanup(app.Close)
			listen := start(t, patient, app.Listener.Addr().String(), c.lately(t), "")
			w := must.Get(from(t, "127.0.0.21").Get("http://" + listen + "/"))(t)
			w.Body.Close()
			if w.StatusCode != c.want {
				t.Errorf("%d; want %d", w.StatusCode, c.want)
			}
		})
	}
}

// A proxy that is not trusted cannot set the client of a request.
func TestForwardAuthOfStranger(t *testing.T) {
	lately := serve(t, forwardingServer(t))
	r := must.Get(http.NewRequest("GET", "http://"+lately+"/v1/auth", nil))(t)
	r.Header = http.Header{"X-Forwarded-For": {"203.0.113.99"}, "X-Original-Uri": {"/"}}
	w := must.Get(from(t, "127.0.0.22").Do(r))(t)
	w.Body.Close()
	if w.StatusCode != 403 {
		t.Errorf("a peer other than a proxy: %d", w.StatusCode)
	}
}

const answerRules = `version: 1
limits:
  - {name: failures, key: client, when: {method: POST, path: /forbidden, status: 403}, limit: 3 per 10m}
`

// reports checks that the proxy reports what became of requests, and none that was refused.
func (p *proxied) reports() {
	must.Get(p.s.Engine.Replace(parseRules(p.t, answerRules), true))(p.t)
	before := p.s.Engine.Status().Outcomes
	c, want := from(p.t, "127.0.0.21"), before
	for i, step := range []struct {
		method, path string
		status       int
	}{
		{"POST", "/forbidden?x=1", 403},
		{"GET", "/forbidden", 403},
		{"POST", "/page", 200},
		{"POST", "/forbidden", 403},
		{"POST", "/forbidden", 403},
		{"POST", "/forbidden", 429},
		{"POST", "/page", 200},
		{"POST", "/forbidden", 429},
	} {
		lie := http.Header{"X-Original-Status": {"200"}, "X-Original-Size": {"12345"}, "X-Original-Duration": {"99"}}
		if w, _ := p.send(c, step.method, step.path, "sent", lie); w.StatusCode != step.status {
			p.t.Fatalf("step %d: %s %s: %d; want %d", i, step.method, step.path, w.StatusCode, step.status)
		}
		if step.status != 429 && step.method == "POST" && step.path != "/page" { // no rule looks at the answers to others
			want++
		}
		until(p.t, "the answer is reported", func() bool { return p.s.Engine.Status().Outcomes >= want })
	}
	if n := p.s.Engine.Status().Outcomes; n != want {
		p.t.Errorf("%d outcomes were reported; want %d", n-before, want-before)
	}
}

const fieldRules = `version: 1
fields:
  api_key: {header: X-API-Key}
  session: {cookie: sid}
  token: {bearer: true}
  page: {query: page}
limits:
  - {name: by-key, key: api_key, limit: 2 per 10m}
  - {name: by-session, key: session, limit: 2 per 10m}
  - {name: by-token, key: token, limit: 2 per 10m}
  - {name: by-page, key: page, limit: 2 per 10m}
`

// fills checks that fields that the rules declare are read from the requests of a proxy, also
// if a client sends several values.
func (p *proxied) fills() {
	must.Get(p.s.Engine.Replace(parseRules(p.t, fieldRules), true))(p.t)
	c := from(p.t, "127.0.0.21")
	for _, x := range []struct {
		rule   string
		path   string
		header func(i int) http.Header
	}{
		{"by-key", "/", func(int) http.Header { return http.Header{"X-Api-Key": {"k1"}} }},
		{"by-key", "/", func(i int) http.Header { return http.Header{"X-Api-Key": {"k2", fmt.Sprint(i)}} }},
		{"by-session", "/", func(i int) http.Header { return http.Header{"Cookie": {fmt.Sprintf("a=%d; sid=s1", i)}} }},
		{"by-session", "/", func(i int) http.Header { return http.Header{"Cookie": {fmt.Sprintf("sid=%d; sid=s1", i)}} }},
		{"by-token", "/", func(int) http.Header { return http.Header{"Authorization": {"bearer t1"}} }},
		{"by-page", "/x?page=%33&y=1", func(int) http.Header { return nil }},
	} {
		for i := range 3 {
			w, _ := p.send(c, "GET", x.path, "", x.header(i))
			if i < 2 && w.StatusCode != 200 {
				p.t.Errorf("%s: request %d with %v: %d", x.rule, i, x.header(i), w.StatusCode)
			} else if i == 2 {
				p.wantRefusal(w, x.rule, x.header(i))
			}
		}
	}
	if w, _ := p.send(c, "GET", "/", "", nil); w.StatusCode != 200 {
		p.t.Errorf("a request without any of the fields: %d", w.StatusCode)
	}
}
