//go:build unix

package listen_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
)

// Another user can connect as soon as the mode allows it, and not before.
func TestSocketOfOthers(t *testing.T) {
	if os.Getuid() != 0 || runtime.GOOS != "linux" {
		t.Skip("SKIP: only root can be another user, and only Linux has /proc/self/exe")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // the second one is of this test, too
		must.Do(t, os.Chmod(d, 0o755))
	}
	path := filepath.Join(dir, "s")
	for _, c := range []struct {
		socket listen.Socket
		ok     bool
	}{{listen.Socket{}, false}, {listen.Socket{Mode: 0o660}, false}, {listen.Socket{Mode: 0o660, Owner: ":65534"}, true}, {listen.Socket{Owner: "65534"}, true}, {listen.Socket{Mode: 0o666}, true}} {
		l := open(t, c.socket, path)
		cmd := exec.Command("/proc/self/exe") // whose directory others cannot enter
		cmd.Dir, cmd.Env = "/", []string{dialed + "=" + path}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); (err == nil) != c.ok {
			t.Errorf("%+v: another user: %v: %s; want success: %t", c.socket, err, out, c.ok)
		}
		l.Close()
	}
}
