//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/follow"
	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
)

// failedLogins is the limit on the pages of proxies that cannot report outcomes, beside a rule that does
// not count the lines of logs, as docs/guides/forward-auth.md has it.
const failedLogins = `version: 1
limits:
  - {name: failed-logins, key: client, when: {method: POST, path: /login, status: 401}, limit: 5 per 10m}
  - {name: per-client, key: client, when: {not: {log: "**"}}, limit: 20 per 10m}
`

// behindProxy returns the settings of a server behind a proxy whose log it follows.
func behindProxy(t *testing.T, rules string) (c Config, log string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.yaml")
	must.Do(t, os.WriteFile(file, []byte(rules), 0o600))
	log = filepath.Join(dir, "access.log")
	return Config{
		RulesFiles: []string{file}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Follow: []follow.Log{{Path: log}},
	}, log
}

// linesOf returns how many lines of its log the server at url has judged.
func linesOf(t *testing.T, url string) uint64 {
	t.Helper()
	_, body := got(t, url+"/v1/status")
	var status api.Status
	must.Do(t, json.Unmarshal([]byte(body), &status))
	return status.Logs[0].Lines
}

// guide returns the page of a proxy, which must have the limit of these tests, and the n-th block of a section.
func guide(t *testing.T, page, section string, n int) (text, block string) {
	t.Helper()
	doc := must.Get(os.ReadFile("../../docs/guides/" + page))(t)
	_, block, found := strings.Cut(string(doc), "\n## "+section+"\n")
	block, _, _ = strings.Cut(block, "\n## ")
	blocks := strings.Split(block, "\n```")
	if !found || len(blocks) < 2*n+2 || !strings.Contains(failedLogins, "- "+between(string(doc), "The limit `", "`")) {
		t.Fatalf("%s has no block %d under %q, or another limit", page, n, section)
	}
	_, block, _ = strings.Cut(blocks[2*n+1], "\n")
	return string(doc), block + "\n"
}

func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

// startCaddy starts Caddy as its page has it, and returns the URL of its site.
func startCaddy(t *testing.T, app, lately, log string) string {
	t.Helper()
	path, err := exec.LookPath("caddy")
	if err != nil {
		t.Skip("SKIP: there is no caddy here; apt-get install caddy")
	}
	_, site := guide(t, "caddy.md", "2. Configure Caddy", 0)
	_, logging := guide(t, "caddy.md", "Rules about the answer", 0)
	listen, dir := freeport.Addr(t), t.TempDir()
	_, port, _ := net.SplitHostPort(listen)
	config := "{\n\tadmin off\n\tauto_https off\n}\n" + strings.NewReplacer(
		"example.org {\n", "http://:"+port+" {\n\tbind 127.0.0.1\n"+strings.ReplaceAll(logging, "/var/log/caddy/access.log", log),
		"127.0.0.1:3000", app, "127.0.0.1:7380", lately, "header_up X-Lately-Token TOKEN", "",
		"100ms", "1m", "250ms", "1m").Replace(site)
	file := filepath.Join(dir, "Caddyfile")
	must.Do(t, os.WriteFile(file, []byte(config), 0o600))
	var said strings.Builder
	cmd := exec.Command(path, "run", "--config", file, "--adapter", "caddyfile")
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	cmd.Stdout, cmd.Stderr = &said, &said
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	eventually(t, "Caddy listens", func() bool {
		c, err := net.Dial("tcp", listen)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return "http://" + listen
}

// TestCaddyLog runs a real Caddy whose log the server follows: the sixth failed login is refused, whatever address the
// client claims, and a rule that leaves out logs counts each request once.
func TestCaddyLog(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/login" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(app.Close)
	c, log := behindProxy(t, failedLogins)
	_, url := started(t, c)
	site := startCaddy(t, app.Listener.Addr().String(), strings.TrimPrefix(url, "http://"), log)
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.21")}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	send := func(method, path string, i int) (int, string) {
		r := must.Get(http.NewRequest(method, site+path, http.NoBody))(t)
		r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i)) // a lie
		w := must.Get((&http.Client{Transport: transport}).Do(r))(t)
		defer w.Body.Close()
		_, _ = io.Copy(io.Discard, w.Body)
		return w.StatusCode, w.Header.Get("RateLimit")
	}
	for i := range 5 {
		if status, _ := send("POST", "/login", i); status != 401 {
			t.Fatalf("try %d: %d", i, status)
		}
	}
	eventually(t, "the log is read", func() bool { return linesOf(t, url) >= 5 })
	for i := range 2 {
		if status, _ := send("POST", "/login", 5+i); status != 429 {
			t.Errorf("try %d: %d, want 429", 5+i, status)
		}
	}
	if status, left := send("GET", "/", 0); status != 200 || !strings.HasPrefix(left, `"per-client";r=14;`) {
		t.Errorf("another page: %d, RateLimit %s", status, left)
	}
}

// proxyLines are lines of the access logs that the pages of proxies have the server follow, for a failed login of 192.0.2.1
// that claims to be 203.0.113.9, which Traefik does not write. UNIX and RFC3339 are the time.
var proxyLines = []struct{ page, file, line string }{
	{
		"caddy.md", "/var/log/caddy/access.log",
		`{"level":"error","ts":UNIX.0412,"logger":"http.log.access.log0","msg":"handled request","request":{"remote_ip":"192.0.2.1","remote_port":"41100","client_ip":"192.0.2.1","proto":"HTTP/1.1","method":"POST","host":"example.org","uri":"/login","headers":{"X-Forwarded-For":["203.0.113.9"],"User-Agent":["Wren/2.1"]}},"bytes_read":0,"user_id":"","duration":0.0009,"size":0,"status":401,"resp_headers":{"Server":["Caddy"]}}`,
	},
	{
		"traefik.md", "/var/log/traefik/access.log",
		`{"ClientAddr":"192.0.2.1:41100","ClientHost":"192.0.2.1","ClientPort":"41100","ClientUsername":"-","DownstreamContentSize":0,"DownstreamStatus":401,"Duration":904000,"OriginContentSize":0,"OriginDuration":100000,"OriginStatus":401,"Overhead":804000,"RequestAddr":"example.org","RequestContentSize":0,"RequestCount":7,"RequestHost":"example.org","RequestMethod":"POST","RequestPath":"/login","RequestPort":"-","RequestProtocol":"HTTP/1.1","RequestScheme":"http","RetryAttempts":0,"RouterName":"app@file","ServiceName":"app@file","StartLocal":"RFC3339","StartUTC":"RFC3339","entryPointName":"web","level":"info","msg":"","time":"RFC3339"}`,
	},
	{
		"envoy.md", "/var/log/envoy/access.log",
		`[RFC3339] "POST /login HTTP/1.1" 401 - 0 0 1 0 "203.0.113.9,192.0.2.1" "Wren/2.1" "a1b2c3" "example.org" "127.0.0.1:3000"`,
	},
}

// TestProxyLogs has the server follow the logs of the proxies that cannot report outcomes, as their pages have it. The fifth
// line makes the difference, and the client that is named in the request is allowed.
func TestProxyLogs(t *testing.T) {
	for _, p := range proxyLines {
		t.Run(p.page, func(t *testing.T) {
			doc, _ := guide(t, p.page, "Rules about the answer", 0)
			if !strings.Contains(doc, "\nlately serve --rules rules.yaml --trusted-proxy 127.0.0.1 --follow "+p.file+"\n") {
				t.Errorf("the page has no line that follows %s", p.file)
			}
			c, log := behindProxy(t, failedLogins)
			_, url := started(t, c)
			now := time.Now().UTC()
			line := strings.NewReplacer("UNIX", fmt.Sprint(now.Unix()), "RFC3339", now.Format("2006-01-02T15:04:05.000Z")).Replace(p.line) + "\n"
			for i, step := range []struct {
				lines  uint64
				client string
				want   int
			}{{4, "192.0.2.1", 204}, {5, "192.0.2.1", 429}, {5, "203.0.113.9", 204}} {
				must.Do(t, os.WriteFile(log, []byte(strings.Repeat(line, int(step.lines))), 0o600))
				eventually(t, "the log is read", func() bool { return linesOf(t, url) == step.lines })
				if status := asked(t, url, step.client); status != step.want {
					t.Errorf("step %d: %s gets %d, want %d", i, step.client, status, step.want)
				}
			}
		})
	}
}

// asked returns the answer to a proxy for a login of client.
func asked(t *testing.T, url, client string) int {
	t.Helper()
	r := must.Get(http.NewRequest("GET", url+"/v1/auth", http.NoBody))(t)
	r.Header = http.Header{"X-Forwarded-For": {client}, "X-Original-Uri": {"/login"}, "X-Original-Method": {"POST"}}
	w := must.Get(http.DefaultClient.Do(r))(t)
	w.Body.Close()
	return w.StatusCode
}
