package httpapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Rules with something of every kind.
const rulesText = `version: 1
counters:
  requests: {key: client, spans: [1m, 1h]}
limits:
  - {name: per-client, key: client, limit: 60 per 1m, when: {path: /**}}
  - {name: login, key: [client, user], limit: 5 per 10m, when: {path: /login}}
  - {name: under-way, key: client, limit: 2 at once for 30s, algorithm: in-flight, when: {path: /upload}}
  - {name: queue, key: client, limit: 60 per 1m burst 3, algorithm: leaky-bucket, when: {path: /queue}}
bans:
  - {name: flood, key: client, after: 600 hits in 1m, for: 1h, when: {path: /**}}
hot:
  - {name: product, key: path, when: {path: "/product/*"}, threshold: 5 per 1m, hold: 60s} # a minute, for a slow machine
allow: [198.51.100.0/24]
`

// The tokens of the tests, by role.
const (
	readToken  = "read-read-read-read-read-read-read-read"
	checkToken = "check-check-check-check-check-check"
	adminToken = "admin-admin-admin-admin-admin-admin"
)

func tokens(t testing.TB) *access.Tokens {
	t.Helper()
	text := "read " + readToken + " reader\ncheck " + checkToken + " checker\nadmin " + adminToken + " boss\n"
	return must.Get(access.Parse(strings.NewReader(text), "tokens"))(t)
}

func parseRules(t testing.TB, text string) *rules.File {
	t.Helper()
	return must.Get(rules.Parse("rules.yaml", []byte(text)))(t)
}

// newServer returns a server over an engine with rulesText, as change wants it.
func newServer(t testing.TB, change func(*Config)) *Server {
	t.Helper()
	e := must.Get(engine.New(engine.Config{Rules: parseRules(t, rulesText)}))(t)
	t.Cleanup(e.Close)
	c := Config{Config: listen.Config{Engine: e}}
	if change != nil {
		change(&c)
	}
	return must.Get(New(c))(t)
}

// serve serves s on loopback until the end of the test, and returns the address.
func serve(t testing.TB, s *Server) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	serveOn(t, s, l)
	return l.Addr().String()
}

// serveOn serves s on l until the end of the test.
func serveOn(t testing.TB, s *Server, l net.Listener) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// A request is one for ask. Its zero fields are those of a well-meaning client.
type request struct {
	method, path, body, token string
	host, media, origin       string
	header                    http.Header
	peer                      string
}

// ask passes r to s as net/http would, and returns the answer.
func ask(s *Server, r request) *httptest.ResponseRecorder {
	var body io.Reader
	if r.method == "POST" {
		body = strings.NewReader(r.body)
	}
	req := httptest.NewRequest(r.method, r.path, body)
	req.Host = "localhost:7380"
	req.RemoteAddr = "192.0.2.9:1234"
	if r.host != "" {
		req.Host = r.host
	}
	if r.peer != "" {
		req.RemoteAddr = r.peer
	}
	if r.method == "POST" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.media != "" {
		req.Header.Set("Content-Type", r.media)
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if r.origin != "" {
		req.Header.Set("Origin", r.origin)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w
}

// post is ask for the usual case.
func post(s *Server, path, body string) *httptest.ResponseRecorder {
	return ask(s, request{method: "POST", path: path, body: body})
}

func get(s *Server, path string) *httptest.ResponseRecorder {
	return ask(s, request{method: "GET", path: path})
}

// until waits until ok returns true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}

// wantProblem checks that w is a problem document of that status and code.
func wantProblem(t testing.TB, w *httptest.ResponseRecorder, status int, code api.Code) api.Problem {
	t.Helper()
	var p api.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("%d %s: no problem document: %v", w.Code, w.Body, err)
	}
	if w.Code != status || p.Status != status || p.Code != code || p.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s; want %d %s", w.Code, w.Body, status, code)
	}
	return p
}

func TestServeEndsAndDrains(t *testing.T) {
	s := newServer(t, nil)
	entered, proceed := make(chan bool), make(chan bool)
	check := s.routes[0].serve
	s.routes[0].serve = func(c *call) error { // check, which takes as long as the test wants
		entered <- true
		<-proceed
		return check(c)
	}
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	client := &http.Client{Transport: new(http.Transport)}
	defer client.CloseIdleConnections()
	url := "http://" + l.Addr().String()
	stream := must.Get(client.Get(url + "/v1/events"))(t)
	defer stream.Body.Close()
	answer := make(chan string, 1)
	go func() {
		r, err := client.Post(url+"/v1/check", "application/json", strings.NewReader(`{"event":{"client":"192.0.2.1","path":"/"}}`))
		if err != nil {
			answer <- err.Error()
			return
		}
		defer r.Body.Close()
		b, err := io.ReadAll(r.Body)
		if err != nil {
			b = []byte(err.Error())
		}
		answer <- string(b)
	}()
	<-entered
	stop()
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the stream ended with %v; want its end", err)
	}
	wantProblem(t, get(s, "/readyz"), 503, api.Overload)
	if o, n := s.Overloaded.Load(), s.Errors.Load(); o != 0 || n != 0 {
		t.Errorf("a server that ends counts %d requests as overload, %d as errors", o, n)
	}
	close(proceed)
	if got := <-answer; !strings.Contains(got, `"allowed":true`) {
		t.Errorf("the request under way was answered %q", got)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); err == nil {
		t.Error("the listener is still open")
	}
	if n := s.Open(); n != 0 {
		t.Errorf("%d connections are open", n)
	}
}

// A panic ends one request: it is answered, logged, and counted.
func TestPanic(t *testing.T) {
	var log bytes.Buffer
	s := newServer(t, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	s.routes[0].serve = func(*call) error { panic("boom") }
	p := wantProblem(t, post(s, "/v1/check", "{}"), 500, api.Failed)
	if strings.Contains(p.Detail, "boom") || !strings.Contains(log.String(), "boom") {
		t.Errorf("the answer is %q and the log %q; the reason belongs in the log", p.Detail, log.String())
	}
	if s.Panics.Load() != 1 {
		t.Errorf("%d panics", s.Panics.Load())
	}
	if w := get(s, "/healthz"); w.Code != 200 {
		t.Errorf("the next request: %d", w.Code)
	}
}

func TestNotFound(t *testing.T) {
	s := newServer(t, nil)
	wantProblem(t, get(s, "/v1/nothing"), 404, api.BadArg)
	wantProblem(t, get(s, "/v1/counters//sum"), 404, api.BadArg)
	w := get(s, "/v1/check")
	wantProblem(t, w, 405, api.BadArg)
	if w.Header().Get("Allow") != "POST" {
		t.Errorf("Allow is %q", w.Header().Get("Allow"))
	}
	w = ask(s, request{method: "DELETE", path: "/v1/bans"})
	wantProblem(t, w, 405, api.BadArg)
	if w.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow is %q", w.Header().Get("Allow"))
	}
}

// Over TLS: with HTTP/2 and without, and the session's cookie is for TLS only.
func TestTLS(t *testing.T) {
	lender := httptest.NewTLSServer(nil) // of a certificate
	defer lender.Close()
	all := tokens(t)
	s := newServer(t, func(c *Config) {
		c.TLS, c.Tokens = &tls.Config{Certificates: lender.TLS.Certificates}, tokensOf(all)
	})
	url := "https://" + serve(t, s)
	roots := x509.NewCertPool()
	roots.AddCert(lender.Certificate())
	for _, two := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: two}
		client := &http.Client{Transport: transport}
		r := must.Get(client.Post(url+"/v1/login", "application/json", strings.NewReader(`{"token":"`+readToken+`"}`)))(t)
		r.Body.Close()
		if r.StatusCode != 200 || !strings.Contains(r.Header.Get("Set-Cookie"), "; Secure") || r.ProtoMajor == 2 != two {
			t.Errorf("%s %s %v", r.Proto, r.Status, r.Header)
		}
		stream := must.Get(http.NewRequest("GET", url+"/v1/events", nil))(t)
		stream.Header.Set("X-Lately-Token", readToken)
		r = must.Get(client.Do(stream))(t)
		first := make([]byte, 8)
		if _, err := io.ReadFull(r.Body, first); err != nil || string(first) != ": lately" {
			t.Errorf("%s: the stream begins with %q: %v", r.Proto, first, err)
		}
		r.Body.Close()
		transport.CloseIdleConnections()
	}
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11}}}
	if r, err := old.Get(url + "/healthz"); err == nil {
		r.Body.Close()
		t.Error("TLS 1.1 is answered")
	}
}
