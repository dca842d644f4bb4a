package cli

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/test/must"
)

// serveSockets starts a server on Unix sockets in a directory of its own, with a token file.
func serveSockets(t *testing.T, flags ...string) (s *serving, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "lately") // with a path that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return serve(t, append(flags, "--resp", "unix:"+dir+"/resp.sock", "--http", "unix:"+dir+"/http.sock", "--rules", writeRules(t, serveRules))...), dir
}

// Real clients use a server on Unix sockets: redis-cli, curl and the commands for an operator.
func TestServeSockets(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	s, dir := serveSockets(t, "--token-file", tokens, "--socket-mode", "0660")
	if s.resp != "unix:"+dir+"/resp.sock" || s.http != "unix:"+dir+"/http.sock" {
		t.Errorf("it prints that it listens on %s and %s", s.resp, s.http)
	}
	for _, name := range []string{"resp.sock", "http.sock"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != fs.ModeSocket|0o660 {
			t.Errorf("%s: %v, %v; want a socket of mode 0660", name, info.Mode(), err)
		}
	}
	token := must.Get(access.ReadToken(tokens, access.Check))(t)
	for _, c := range []struct{ command, want string }{
		{"redis-cli -s $DIR/resp.sock TAKE per-client 192.0.2.1", "NOAUTH"},
		{"redis-cli -s $DIR/resp.sock --no-auth-warning -a $TOKEN TAKE per-client 192.0.2.1", "100\n99"},
		{"redis-cli -s $DIR/resp.sock --no-auth-warning -a $TOKEN BAN per-client 192.0.2.1 1h", "NOPERM"},
		{"curl -s --unix-socket $DIR/http.sock http://localhost/readyz", "ok"},
		{"curl -s --unix-socket $DIR/http.sock http://any.example/v1/status", `"code":"NOAUTH"`},
		{`curl -s --unix-socket $DIR/http.sock -H "Authorization: Bearer $TOKEN" http://localhost/v1/status`, `"resp":"unix:$DIR/resp.sock"`},
		{"lately status --addr unix:$DIR/http.sock --token-file $TOKENS", "your role:    read"},
		{"lately check --addr unix:$DIR/http.sock --token-file $TOKENS client=192.0.2.1", "allowed"},
		{"lately ban --addr unix:$DIR/http.sock --token-file $TOKENS --rule per-client --for 1h 192.0.2.2", "192.0.2.2"},
		{"lately status --addr unix:$DIR/http.sock", "NOAUTH"},
		{"lately status --addr unix:$DIR/none.sock", "no such file or directory"},
		{"lately status --addr unix:none.sock", "must be unix:PATH with an absolute path"},
	} {
		if _, err := exec.LookPath(strings.Fields(c.command)[0]); err != nil {
			t.Logf("SKIP %s: there is no such program here", c.command)
			continue
		}
		cmd := exec.Command("sh", "-c", c.command)
		cmd.Env = append(os.Environ(), "DIR="+dir, "TOKEN="+token, "TOKENS="+tokens, "LATELY_TOKEN=")
		out, _ := cmd.CombinedOutput()
		if want := strings.ReplaceAll(c.want, "$DIR", dir); !strings.Contains(string(out), want) {
			t.Errorf("%s:\n%s\nwant %q", c.command, out, want)
		}
	}
	if log := s.log.String(); !strings.Contains(log, "peer=unix") {
		t.Errorf("the log does not name the source of the ban:\n%s", log)
	}
}

// A second server on the same socket is refused; one that was killed leaves a socket that the
// next one takes; one that ends in order leaves none.
func TestServeSocketsAgain(t *testing.T) {
	s, dir := serveSockets(t)
	again := func() (code int, says string) {
		var out, errs lines
		code = run(t.Context(), []string{"serve", "--resp", "off", "--http", s.http}, strings.NewReader(""), &out, &errs)
		return code, errs.String()
	}
	if code, says := again(); code != exitInput || !strings.Contains(says, "http: listen unix "+dir+"/http.sock: another process listens there: stop it, or choose another path") {
		t.Errorf("a second server: code %d: %s", code, says)
	}
	s.kill()
	if _, err := os.Lstat(dir + "/http.sock"); err != nil {
		t.Fatalf("a killed server leaves no socket: %v", err)
	}
	third := serve(t, "--resp", s.resp, "--http", s.http)
	if err := third.end(); err != nil {
		t.Errorf("it ends with %v", err)
	}
	left, _ := filepath.Glob(dir + "/*")
	if len(left) > 0 {
		t.Errorf("after an end in order there are %v", left)
	}
	must.Do(t, os.WriteFile(dir+"/http.sock", []byte("precious"), 0o600))
	if code, says := again(); code != exitUsage || !strings.Contains(says, "is not a socket") {
		t.Errorf("on a file: code %d: %s", code, says)
	}
}
