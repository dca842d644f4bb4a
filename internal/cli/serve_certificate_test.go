package cli

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/test/must"
)

// Real clients have roles by their certificates, with the commands of docs/server.md: redis-cli, curl, and
// the commands for an operator.
func TestServeClientCertificates(t *testing.T) {
	for _, program := range []string{"openssl", "redis-cli", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("SKIP: there is no %s here", program)
		}
	}
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "server.md")))(t)
	_, section, _ := strings.Cut(string(page), "\n## Client certificates\n")
	section, _, _ = strings.Cut(section, "\n## ")
	dir := t.TempDir()
	sh := func(command string) string {
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "LATELY_TOKEN=")
		out, _ := cmd.CombinedOutput()
		return string(out)
	}
	commands := shellLines(section)
	made := slices.IndexFunc(commands, func(c string) bool { return strings.HasPrefix(c, "lately serve ") })
	if made < 2 || len(commands) < made+4 {
		t.Fatalf("docs/server.md has the commands %q", commands)
	}
	for _, command := range commands[:made] {
		if out := sh(command); strings.Contains(out, "rror") {
			t.Fatalf("%s:\n%s", command, out)
		}
	}
	out := sh("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -days 1 -subj /CN=server -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout server.key -out server.pem")
	if err := os.WriteFile(filepath.Join(dir, "tokens"), []byte("check cert:billing.internal\nread cert:other\n"), 0o600); err != nil {
		t.Fatal(err, out)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	s := serve(t, "--tls-cert", file("server.pem"), "--tls-key", file("server.key"), "--tls-client-ca", file("ca.pem"), "--token-file", file("tokens"), "--rules", writeRules(t, serveRules))
	_, respPort, _ := net.SplitHostPort(s.resp)
	at, _ := url.Parse(s.http)
	real := strings.NewReplacer("7379", respPort, "localhost:7380", at.Host, "TAKE login", "TAKE per-client")
	for i, want := range []string{"100\n99", `"role":"check"`, "your role:    check"} {
		if out := sh(real.Replace(commands[made+1+i])); !strings.Contains(out, want) {
			t.Errorf("%s:\n%s\nwant %q", commands[made+1+i], out, want)
		}
	}
	for command, want := range map[string]string{
		"lately ban --rule per-client --for 1h 192.0.2.1 --addr https://localhost:7380 --ca-file server.pem --cert-file billing.pem --key-file billing.key": "NOPERM",
		"lately status --addr https://localhost:7380 --ca-file server.pem":                                                                                  "NOAUTH",
		"lately status --addr https://localhost:7380 --ca-file server.pem --cert-file billing.pem":                                                          "--cert-file and --key-file: one is missing",
		"lately status --addr https://localhost:7380 --ca-file server.pem --cert-file billing.pem --key-file ca.key":                                        "private key does not match",
		"lately status --addr https://localhost:7380 --ca-file server.pem --cert-file ca.pem --key-file ca.key":                                             "certificate has no role",
	} {
		if out := sh(real.Replace(command)); !strings.Contains(out, want) {
			t.Errorf("%s:\n%s\nwant %q", command, out, want)
		}
	}
}
