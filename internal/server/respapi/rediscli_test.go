package respapi

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/access"
)

// redisCLI runs Debian's redis-cli against s.
func redisCLI(t *testing.T, s *running, stdin string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Skip("SKIP: there is no redis-cli; it is in Debian's package redis-tools")
	}
	host, port, _ := strings.Cut(s.addr, ":")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-h", host, "-p", port}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("redis-cli %q: %v\n%s", args, err, out)
	}
	return string(bytes.ReplaceAll(out, []byte("\r\n"), []byte("\n")))
}

func TestRedisCLI(t *testing.T) {
	s := start(t, Config{}, false)
	for _, c := range []struct{ args, want string }{
		{"PING", "PONG\n"},
		{"TAKE login ada", "1\n3\n2\n0\n600000\nlogin\n0\n"},
		{"-3 TAKE login ada COST 2", "1\n3\n0\n"},
		{"--no-raw CL.THROTTLE user123 15 30 60 1", "1) (integer) 0\n2) (integer) 16\n3) (integer) 15\n4) (integer) -1\n5) (integer) 2\n"},
		{"TAKE nosuch ada", "NORULE "},
		{"-3 --json CONFIG GET *", "{}\n"},
		{"-3 --json HELLO 3", `{"server":"lately"`},
		{"COMMAND COUNT", "44\n"},
		{"HOT.REPORT product /product/7 3 40 /product/8 1 0", "2\n"},
		{"HOT.REPORT product /product/7 1 0 /product/8", "BADARG record 2: "},
		{"HOT.LIST product", "product\n/product/7\n"},
		{"HOT.CHANGED product /product/7", "1\n"},
		{"HOT.CACHE product 9 1 1 0", "OK\n"},
		{"-3 --json HOT.STATS product", `{"watchers":0,`},
		{"INFO server", "# Server\nserver_name:lately\n"},
	} {
		if got := redisCLI(t, s, "", strings.Fields(c.args)...); !strings.HasPrefix(got, c.want) {
			t.Errorf("redis-cli %s answers %q; want %q", c.args, got, c.want)
		}
	}
	got := redisCLI(t, s, "ADD pages /a 3\nADD pages '/with blank' 2\nTOP pages 2\n")
	if want := "OK\nOK\n/a\n3\n/with blank\n2\n"; got != want {
		t.Errorf("a script answers %q; want %q", got, want)
	}
	// Mass insertion, the way redis-cli --pipe has it: it ends with an ECHO.
	var b bytes.Buffer
	for range 10_000 {
		b.Write(encode("ADD pages /bulk"))
	}
	if got := redisCLI(t, s, b.String(), "--pipe"); !strings.Contains(got, "errors: 0, replies: 10000") {
		t.Errorf("redis-cli --pipe prints %q", got)
	}
	s.dial().want("SUM pages /bulk", "10000")
}

func TestRedisCLIWithToken(t *testing.T) {
	tokens := testTokens(t, "")
	s := start(t, Config{Tokens: func() *access.Tokens { return tokens }}, false)
	if got := redisCLI(t, s, "", "--no-auth-warning", "-a", checkToken, "TAKE", "login", "ada"); !strings.HasPrefix(got, "1\n3\n2\n") {
		t.Errorf("with a token: %q", got)
	}
	if got := redisCLI(t, s, "", "-3", "--no-auth-warning", "--user", "default", "--pass", checkToken, "TAKE", "login", "ada"); !strings.HasPrefix(got, "1\n3\n1\n") {
		t.Errorf("with a token and version 3: %q", got)
	}
	if got := redisCLI(t, s, "", "TAKE", "login", "ada"); !strings.HasPrefix(got, "NOAUTH ") {
		t.Errorf("without a token: %q", got)
	}
}
