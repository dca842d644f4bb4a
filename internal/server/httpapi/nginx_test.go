package httpapi

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
)

func startNginx(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
	t.Helper()
	path, err := exec.LookPath("nginx")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Skip("SKIP: there is no nginx here; apt-get install nginx-light")
		}
	}
	listen, dir := freeport.Addr(t), t.TempDir()
	change = append(change, "127.0.0.1:8080", listen, "127.0.0.1:3000", app, "127.0.0.1:7380", lately,
		`X-Lately-Token     ""`, fmt.Sprintf("X-Lately-Token %q", token))
	change = append(change, wait.of("100ms", "1m", "250ms", "1m")...)
	file := write(t, dir, "nginx.conf", fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log stderr;
events {}
http {
access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s}
`, dir, snippet(t, "nginx", change...)))
	runProxy(t, dir, listen, path, "-p", dir, "-e", "stderr", "-c", file)
	return listen
}

// startReportingNginx is startNginx with the documented report of outcomes.
func startReportingNginx(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
	t.Helper()
	const section = "Report outcomes"
	ask, keep := snippetOf(t, "nginx", section, 0), snippetOf(t, "nginx", section, 1)
	report := snippetOf(t, "nginx", section, 2, append([]string{"127.0.0.1:7380", lately, `X-Lately-Token ""`, fmt.Sprintf("X-Lately-Token %q", token)}, wait.of("100ms", "1m", "250ms", "1m")...)...)
	return startNginx(t, wait, app, lately, token, append(change,
		"        proxy_pass http://lately/v1/auth?refuse=403;\n", ask,
		"proxy_pass http://127.0.0.1:3000;", keep+"proxy_pass http://"+app+";",
		"    location @lately_refused {", report+"    location @lately_refused {")...)
}

// Behind a real nginx with the documented snippet.
func TestNginx(t *testing.T) {
	testProxy(t, startNginx, 500, 403)
	t.Run("allowed", func(t *testing.T) { behind(t, startNginx, "").tellsAllowed() })
	t.Run("paths", func(t *testing.T) {
		behind(t, startNginx, "").judgesSpellings()
	})
	t.Run("fields", func(t *testing.T) { behind(t, startNginx, "").fills() })
	t.Run("outcomes", func(t *testing.T) { behind(t, startReportingNginx, checkToken).reports() })
	t.Run("own", func(t *testing.T) {
		p := behind(t, startNginx, "")
		c := from(t, "127.0.0.21")
		// The largest request that nginx accepts: four lines of nearly 8 KiB, one of them the target's.
		large := http.Header{}
		for i := range 3 {
			large.Set(fmt.Sprint("X-Large-", i), strings.Repeat("x", 8000))
		}
		if w, body := p.send(c, "GET", "/page?"+strings.Repeat("q", 8000), "", large); w.StatusCode != 200 {
			t.Errorf("a request with 32 KB of header: %d %s", w.StatusCode, body)
		}
		if w, _ := p.send(c, "GET", "/_lately", "", nil); w.StatusCode != 404 {
			t.Errorf("the location of the question from outside: %d", w.StatusCode)
		}
	})
}

// While the server is unavailable nginx serves all clients if so configured, in the words of the documentation.
func TestNginxWithoutServer(t *testing.T) {
	doc := must.Get(os.ReadFile("../../../docs/guides/nginx.md"))(t)
	const intercept, away = "proxy_intercept_errors on; error_page 500 502 504 = @lately_away;", "location @lately_away { return 204; }"
	if !strings.Contains(string(doc), intercept) || !strings.Contains(string(doc), away) {
		t.Fatal("docs/guides/nginx.md lacks the lines that this test uses")
	}
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	nginx := startNginx(t, documented, app.Listener.Addr().String(), freeport.Addr(t), "",
		"internal;", "internal; "+intercept, "location @lately_refused", away+" location @lately_refused")
	w := must.Get(from(t, "127.0.0.1").Get("http://" + nginx + "/"))(t)
	w.Body.Close()
	if w.StatusCode != 200 {
		t.Errorf("%d; want 200", w.StatusCode)
	}
}

// TestNginxOnSocket connects nginx over a Unix socket, with the change in the documentation.
func TestNginxOnSocket(t *testing.T) {
	doc := must.Get(os.ReadFile("../../../docs/guides/nginx.md"))(t)
	const tcp, unix = "server 127.0.0.1:7380;", "server unix:/run/lately/http.sock;"
	if !strings.Contains(string(doc), "`"+unix+"`") {
		t.Fatalf("docs/guides/nginx.md does not have %s", unix)
	}
	for _, trusted := range []bool{true, false} {
		s := newServer(t, func(c *Config) { c.TrustUnix = trusted })
		must.Get(s.Engine.Replace(parseRules(t, proxiedRules), true))(t)
		path := filepath.Join(socketDir(t), "http.sock")
		l := must.Get(listen.Socket{Mode: 0o666}.Open("http", "unix:"+path))(t)
		serveOn(t, s, l)
		app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(app.Close)
		nginx := startNginx(t, patient, app.Listener.Addr().String(), "127.0.0.1:7380", "", tcp, "server unix:"+path+";")
		answers := map[int]int{}
		client := from(t, "127.0.0.21")
		for range 62 {
			w := must.Get(client.Get("http://" + nginx + "/page"))(t)
			w.Body.Close()
			answers[w.StatusCode]++
		}
		if want := map[bool]map[int]int{true: {200: 60, 429: 2}, false: {403: 62}}[trusted]; !maps.Equal(answers, want) {
			t.Errorf("trusted %t: %v; want %v", trusted, answers, want)
		}
	}
}

// socketDir returns a directory for a socket, with a path that is short enough.
func socketDir(t *testing.T) string {
	dir := must.Get(os.MkdirTemp("", "lately"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
