package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
)

// builtServer builds the command, runs it as a server that trusts proxies on this
// machine, and returns its process and address.
func builtServer(t *testing.T) (server *os.Process, listen string) {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "lately")
	if out, err := exec.Command("go", "build", "-o", binary, "../../../cmd/lately").CombinedOutput(); err != nil {
		t.Skipf("SKIP: the server cannot be built here: %v\n%s", err, out)
	}
	listen = freeport.Addr(t)
	cmd := exec.Command(binary, "serve", "--http", listen, "--resp", freeport.Addr(t), "--trusted-proxy", "127.0.0.1",
		"--rules", write(t, dir, "rules.yaml", proxiedRules))
	var log strings.Builder
	cmd.Stderr = &log
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGCONT)
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	until(t, "the server is ready", func() bool {
		w, err := http.Get("http://" + listen + "/readyz")
		if err != nil {
			return false
		}
		w.Body.Close()
		return w.StatusCode == http.StatusOK
	})
	return cmd.Process, listen
}

// A stopped server, which takes connections and answers nothing, does not stop the
// site: each request is answered after the timeouts of the documented snippets, as an
// error or by the application, and as before when the server goes on.
func TestHungServer(t *testing.T) {
	server, lately := builtServer(t)
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	for _, c := range []struct {
		name   string
		start  startProxy
		change []string
		want   int
	}{
		{"nginx closed", startNginx, nil, 500},
		{"nginx open", startNginx, []string{
			"internal;", "internal; proxy_intercept_errors on; error_page 500 502 504 = @lately_away;",
			"location @lately_refused", "location @lately_away { return 204; } location @lately_refused",
		}, 200},
		{"Caddy closed", startCaddy, nil, 504},
		{"Caddy open", startCaddy, []string{
			"\t\treverse_proxy 127.0.0.1:3000\n\t}\n", "vars lately asked\nreverse_proxy " + app.Listener.Addr().String() + "\n}\n" +
				"handle_errors {\n@away not vars lately asked\nreverse_proxy @away " + app.Listener.Addr().String() + "\n}\n",
		}, 200},
		{"Traefik", startTraefik, nil, 504},
		{"HAProxy closed", startHAProxy, nil, 503},
		{"HAProxy open", startHAProxy, []string{haproxyClosed, ""}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			proxy := c.start(t, documented, app.Listener.Addr().String(), lately, "", c.change...)
			client := from(t, "127.0.0.31")
			client.Timeout = 20 * time.Second // shorter than the timeouts of proxies themselves, which are 30 s and more
			get := func() int {
				t.Helper()
				w, err := client.Get("http://" + proxy + "/page")
				if err != nil {
					t.Fatalf("the site stands still: %v", err)
				}
				w.Body.Close()
				return w.StatusCode
			}
			until(t, "requests are judged in time", func() bool { return get() == 200 })
			must.Do(t, server.Signal(syscall.SIGSTOP))
			defer server.Signal(syscall.SIGCONT)
			until(t, "the server is stopped", func() bool {
				stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", server.Pid))
				return err == nil && strings.Contains(string(stat), ") T ")
			})
			begun := time.Now()
			for i := range 3 {
				if status := get(); status != c.want {
					t.Errorf("request %d to a stopped server: %d; want %d", i, status, c.want)
				}
			}
			t.Logf("3 requests took %v", time.Since(begun).Round(time.Millisecond))
			must.Do(t, server.Signal(syscall.SIGCONT))
			until(t, "requests are judged again", func() bool { return get() == 200 })
		})
	}
}

// The page describes how to let requests pass, in the words that the tests above use.
func TestOpenAsDocumented(t *testing.T) {
	doc := must.Get(os.ReadFile("../../../docs/guides/caddy.md"))(t)
	for _, words := range []string{"vars lately asked", "@away not vars lately asked", "reverse_proxy @away 127.0.0.1:3000"} {
		if !strings.Contains(string(doc), words) {
			t.Errorf("docs/guides/caddy.md does not have %q", words)
		}
	}
}
