package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"

	"github.com/lately-go/lately/internal/test/freeport"
	"github.com/lately-go/lately/internal/test/must"
)

// startHAProxy starts HAProxy with the two files of the documentation.
func startHAProxy(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
	t.Helper()
	return startHAProxyWith(t, nil, false, wait, app, lately, token, change...)
}

// startReportingHAProxy is startHAProxy with the documented report of outcomes.
func startReportingHAProxy(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
	t.Helper()
	const line = `  tell("lately_limit", "ratelimit")` + "\n"
	lua := []string{line, line + `  tell("lately_id", "lately-decision-id")` + "\n", `/v1/auth"`, `/v1/auth?outcome_ms=600000"`}
	change = append(change, "    default_backend app", "    http-response lua.lately_outcome\n    default_backend app")
	return startHAProxyWith(t, lua, true, wait, app, lately, token, change...)
}

// startHAProxyWithFields is startHAProxy with the documented lines for fields.
func startHAProxyWithFields(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
	t.Helper()
	const line = `    ["authorization"] = sent["authorization"],` + "\n"
	return startHAProxyWith(t, []string{line, line + snippetAt(t, "HAProxy", 2)}, false, wait, app, lately, token, change...)
}

// startHAProxyWith changes the script by lua, and the configuration by change. If reports is true, the script reports outcomes.
func startHAProxyWith(t *testing.T, lua []string, reports bool, wait timeouts, app, lately, token string, change ...string) string {
	t.Helper()
	path, err := exec.LookPath("haproxy")
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/haproxy"); err != nil {
			t.Skip("SKIP: there is no haproxy here; apt-get install haproxy")
		}
	}
	listen, dir := freeport.Addr(t), t.TempDir()
	hop := freeport.Addr(t)
	lua = append(append(lua, wait.of("timeout = 500", "timeout = 60000")...), "127.0.0.1:7381", hop, "127.0.0.1:7380", lately, `local token = ""`, fmt.Sprintf("local token = %q", token))
	text := snippetAt(t, "HAProxy", 0, lua...)
	if reports {
		text += snippetOf(t, "HAProxy", "Report outcomes", 0, append(wait.of("timeout = 500", "timeout = 60000"), "127.0.0.1:7381", hop, "127.0.0.1:7380", lately)...)
	}
	script := write(t, dir, "lately.lua", text)
	change = append(append(change, wait.of("100ms", "1m", "250ms", "1m")...), "127.0.0.1:8080", listen, "127.0.0.1:3000", app, "127.0.0.1:7380", lately, "127.0.0.1:7381", hop, "/etc/haproxy/lately.lua", script)
	file := write(t, dir, "haproxy.cfg", snippetAt(t, "HAProxy", 1, change...))
	runProxy(t, dir, listen, path, "-db", "-f", file)
	return listen
}

// Behind a real HAProxy with the documented files.
func TestHAProxy(t *testing.T) {
	testProxy(t, startHAProxy, 503, 503)
	t.Run("allowed", func(t *testing.T) { behind(t, startHAProxy, "").tellsAllowed() })
	t.Run("paths", func(t *testing.T) { behind(t, startHAProxy, "").judgesSpellings() })
	t.Run("fields", func(t *testing.T) { behind(t, startHAProxyWithFields, "").fills() })
	t.Run("outcomes", func(t *testing.T) { behind(t, startReportingHAProxy, checkToken).reports() })
}

// Without the server HAProxy serves everybody if the line is left out that refuses.
func TestHAProxyWithoutServer(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	haproxy := startHAProxy(t, documented, app.Listener.Addr().String(), freeport.Addr(t), "", haproxyClosed, "")
	w := must.Get(from(t, "127.0.0.1").Get("http://" + haproxy + "/"))(t)
	w.Body.Close()
	if w.StatusCode != 200 {
		t.Errorf("%d; want 200", w.StatusCode)
	}
}

// haproxyClosed is the documented line that refuses requests without a decision.
const haproxyClosed = "http-request return status 503 unless { var(txn.lately) -m str allowed }"
