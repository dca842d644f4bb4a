package httpapi

import (
	"fmt"
	"net"
	"os/exec"
	"testing"

	"github.com/lately-go/lately/internal/test/freeport"
)

func startCaddy(t *testing.T, wait timeouts, app, lately, token string, change ...string) string {
	t.Helper()
	path, err := exec.LookPath("caddy")
	if err != nil {
		t.Skip("SKIP: there is no caddy here; apt-get install caddy")
	}
	listen, dir := freeport.Addr(t), t.TempDir()
	_, port, err := net.SplitHostPort(listen)
	if err != nil {
		t.Fatal(err)
	}
	own := ""
	if token != "" {
		own = "header_up X-Lately-Token " + token
	}
	change = append(change, "example.org {", fmt.Sprintf("http://:%s {\n\tbind 127.0.0.1", port), "127.0.0.1:3000", app, "127.0.0.1:7380", lately, "header_up X-Lately-Token TOKEN", own)
	change = append(change, wait.of("100ms", "1m", "250ms", "1m")...)
	file := write(t, dir, "Caddyfile", "{\n\tadmin off\n\tauto_https off\n}\n"+snippet(t, "Caddy", change...))
	runProxy(t, dir, listen, path, "run", "--config", file, "--adapter", "caddyfile")
	return listen
}

// Behind a real Caddy with the documented snippet.
func TestCaddy(t *testing.T) {
	testProxy(t, startCaddy, 502, 403)
	t.Run("allowed", func(t *testing.T) { behind(t, startCaddy, "").tellsAllowed() })
	t.Run("fields", func(t *testing.T) { behind(t, startCaddy, "").fills() })
}
