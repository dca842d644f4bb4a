package httpapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lately-go/lately/server/engine"
)

// forwarding returns a server that trusts the proxies at 10.0.0.0/8 and one on this
// machine.
func forwardingServer(t testing.TB) *Server {
	return newServer(t, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.1/32")}
	})
}

// asProxy asks as a proxy at 10.0.0.1 does about a client's request.
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
	if n := s.engine.Totals(); n.Allowed != 60 || n.Refused != 7 {
		t.Errorf("%+v", n)
	}
}

// The client is who the trusted proxies say, whatever the client itself has written.
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
	wantProblem(t, ask(s, request{method: "GET", path: "/v1/auth", peer: "203.0.113.200:1", header: h}), 403, engine.Denied)
	wantProblem(t, asProxy(s, "/v1/auth", "X-Forwarded-For", "203.0.113.9"), 400, engine.BadArg)
	wantProblem(t, asProxy(s, "/v1/auth?refuse=200", "X-Original-URI", "/"), 400, engine.BadArg)
}

// The event is that of the client's request.
func TestForwardAuthEvent(t *testing.T) {
	const text = `version: 1
limits:
  - {name: one, key: client, limit: 0 per 1m, when: {method: POST, path: /login, host: a.example, agent: "bad*", query: "x=1", referer: "http://r/*", user: ada}}
`
	s := forwardingServer(t)
	if err := s.engine.Reload(parseRules(t, text)); err != nil {
		t.Fatal(err)
	}
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

// nginxSnippet is the one of the documentation, with these addresses in it.
func nginxSnippet(t *testing.T, listen, app, lately string) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/FORWARD_AUTH.md")
	if err != nil {
		t.Fatal(err)
	}
	_, snippet, ok := strings.Cut(string(doc), "```nginx\n")
	snippet, _, ok2 := strings.Cut(snippet, "```")
	if !ok || !ok2 {
		t.Fatal("docs/FORWARD_AUTH.md has no nginx snippet")
	}
	return strings.NewReplacer("127.0.0.1:8080", listen, "127.0.0.1:3000", app, "127.0.0.1:7380", lately).Replace(snippet)
}

// startNginx runs nginx with the snippet, changed as strings.NewReplacer has it, until
// the test is over, and returns its address.
func startNginx(t *testing.T, app, lately string, change ...string) string {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		if path = "/usr/sbin/nginx"; !isFile(path) {
			t.Skip("SKIP: there is no nginx here; apt-get install nginx-light")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	l.Close()
	dir := t.TempDir()
	config := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s
}
`, dir, strings.NewReplacer(change...).Replace(nginxSnippet(t, listen, app, lately)))
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, path, "-p", dir, "-e", "stderr", "-c", file)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() {
		stop()
		<-done
		if t.Failed() {
			t.Log(log.String())
		}
	})
	until(t, "nginx listens", func() bool {
		conn, err := net.Dial("tcp", listen)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return listen
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// from returns a client with that address.
func from(t *testing.T, ip string) *http.Client {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Behind a real nginx with the documented snippet: who is refused gets 429 and is told
// when to come back, whoever he says he is; others are served.
func TestNginx(t *testing.T) {
	s := forwardingServer(t)
	lately := serve(t, s)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/forbidden" {
			w.WriteHeader(403)
		}
		io.WriteString(w, "app")
	}))
	defer app.Close()
	nginx := startNginx(t, app.Listener.Addr().String(), lately)
	send := func(c *http.Client, path string, header http.Header) *http.Response {
		r, err := http.NewRequest("GET", "http://"+nginx+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != nil {
			r.Header = header
		}
		w, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, w.Body)
		w.Body.Close()
		return w
	}
	one, other := from(t, "127.0.0.21"), from(t, "127.0.0.22")
	for i := range 60 {
		if w := send(one, "/page?q=1", nil); w.StatusCode != 200 || w.Header.Get("RateLimit") == "" {
			t.Fatalf("request %d: %d %v", i, w.StatusCode, w.Header)
		}
	}
	for _, claim := range []string{"", "198.51.100.1", "203.0.113.1, 203.0.113.2"} {
		w := send(one, "/page", http.Header{"X-Forwarded-For": {claim}, "X-Original-Uri": {"/other"}, "X-Lately-Token": {"x"}, "Forwarded": {"for=" + claim}})
		retry, err := strconv.Atoi(w.Header.Get("Retry-After"))
		if w.StatusCode != 429 || err != nil || retry < 1 || retry > 60 || !strings.Contains(w.Header.Get("RateLimit-Policy"), "per-client") || w.Header.Get("RateLimit") == "" {
			t.Errorf("as %q: %d %v; want 429 with Retry-After, RateLimit and RateLimit-Policy", claim, w.StatusCode, w.Header)
		}
	}
	if w := send(other, "/page", nil); w.StatusCode != 200 {
		t.Errorf("another client: %d", w.StatusCode)
	}
	if w := send(other, "/forbidden", nil); w.StatusCode != 403 {
		t.Errorf("what the application forbids: %d", w.StatusCode)
	}
	if w := send(other, "/_lately", nil); w.StatusCode != 404 {
		t.Errorf("the location of the question from outside: %d", w.StatusCode)
	}
	if n := s.engine.Totals(); n.Allowed != 62 || n.Refused != 3 {
		t.Errorf("%+v; want 62 allowed and 3 refused", n)
	}
	// Who is no trusted proxy is not asked whose request it is.
	r, err := http.NewRequest("GET", "http://"+lately+"/v1/auth", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"X-Forwarded-For": {"203.0.113.99"}, "X-Original-Uri": {"/"}}
	if w, err := other.Do(r); err != nil || w.StatusCode != 403 {
		t.Errorf("a peer that is no proxy: %v %v", w, err)
	} else {
		w.Body.Close()
	}
}

// Without the server nginx serves nobody, or everybody if it is told so, in the words
// of the documentation.
func TestNginxWithoutServer(t *testing.T) {
	doc, err := os.ReadFile("../../docs/FORWARD_AUTH.md")
	if err != nil {
		t.Fatal(err)
	}
	const intercept, away = "proxy_intercept_errors on; error_page 500 502 504 = @lately_away;", "location @lately_away { return 204; }"
	if !strings.Contains(string(doc), intercept) || !strings.Contains(string(doc), away) {
		t.Fatal("docs/FORWARD_AUTH.md does not say what this test does")
	}
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer app.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	l.Close()
	for want, change := range map[int][]string{
		500: nil,
		200: {"internal;", "internal; " + intercept, "location @lately_refused", away + " location @lately_refused"},
	} {
		nginx := startNginx(t, app.Listener.Addr().String(), nobody, change...)
		w, err := from(t, "127.0.0.1").Get("http://" + nginx + "/")
		if err != nil {
			t.Fatal(err)
		}
		w.Body.Close()
		if w.StatusCode != want {
			t.Errorf("%q: %d; want %d", change, w.StatusCode, want)
		}
	}
}
