package httpapi

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/freeport"
)

func startTraefik(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
	t.Helper()
	path, err := exec.LookPath("traefik")
	if err != nil {
		t.Skip("SKIP: there is no traefik here; its releases are at https://github.com/traefik/traefik/releases")
	}
	listen, dir := freeport.Addr(t), t.TempDir()
	hop := freeport.Addr(t)
	change = append(change, "127.0.0.1:3000", app, "127.0.0.1:7380", lately, "127.0.0.1:7381", hop)
	if token != "" {
		change = append(change, "TOKEN", token)
	} else {
		change = append(change, "[lately-token, lately, lately-token-off]", "[lately]")
	}
	change = append(change, wait.of("100ms", "1m", "250ms", "1m")...)
	rules := write(t, dir, "rules.yaml", snippet(t, "Traefik", change...))
	file := write(t, dir, "traefik.yaml", fmt.Sprintf(`global: {checkNewVersion: false, sendAnonymousUsage: false}
entryPoints: {web: {address: %q}, lately-hop: {address: %q, forwardedHeaders: {trustedIPs: [127.0.0.1]}}}
providers: {file: {filename: %q}}
`, listen, hop, rules))
	runProxy(t, dir, listen, path, "--configFile="+file)
	return listen
}

// Behind a real Traefik with the documented snippet.
func TestTraefik(t *testing.T) {
	testProxy(t, startTraefik, 502, 403)
	t.Run("allowed", func(t *testing.T) {
		p := behind(t, startTraefik, "")
		p.send(from(t, "127.0.0.25"), "GET", "/page", "", http.Header{"Ratelimit": {"mine"}})
		p.mu.Lock()
		defer p.mu.Unlock()
		if got := p.seen.Get("RateLimit"); !strings.HasPrefix(got, `"per-client";r=59;t=`) {
			t.Errorf("the application was sent RateLimit %q", got)
		}
	})
	t.Run("fields", func(t *testing.T) {
		line := snippetAt(t, "Traefik", 1)
		start := func(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
			return startTraefik(t, wait, app, lately, token, append(change, "        authRequestHeaders: [Accept, User-Agent, Referer, Authorization, X-Lately-Token]\n", line)...)
		}
		behind(t, start, "").fills()
	})
}
