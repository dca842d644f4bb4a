package listen_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/must"
)

// killedAt is the variable by which this program, started again, leaves a socket as a killed server does.
const killedAt = "LATELY_TEST_KILLED_AT"

// dialed is the variable by which it connects to a socket, as another user.
const dialed = "LATELY_TEST_DIALED"

func TestMain(m *testing.M) {
	if path := os.Getenv(dialed); path != "" {
		if !answers(path) {
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(killedAt); path != "" {
		if _, err := (listen.Socket{}).Open("http", "unix:"+path); err != nil {
			fmt.Println(err)
		}
		os.Exit(0) // without closing it
	}
	os.Exit(m.Run())
}

// leave leaves a socket at path without a listener.
func leave(t *testing.T, path string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killedAt+"="+path)
	out, err := cmd.Output()
	if _, missing := os.Lstat(path); err != nil || missing != nil {
		t.Fatalf("no socket was left: %v, %v: %s", err, missing, out)
	}
}

// open opens a socket at path until the end of the test.
func open(t *testing.T, s listen.Socket, path string) net.Listener {
	t.Helper()
	l := must.Get(s.Open("http", "unix:"+path))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

// answers reports whether a listener accepts a connection at path.
func answers(path string) bool {
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

func TestSocketPermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for mode, want := range map[fs.FileMode]fs.FileMode{0: 0o600, 0o660: 0o660, 0o666: 0o666, 0o200: 0o200} {
		l := open(t, listen.Socket{Mode: mode, Owner: fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())}, path)
		info, err := os.Lstat(path)
		if err != nil || info.Mode() != fs.ModeSocket|want {
			t.Errorf("mode %v: the socket is %v, %v; want %v", mode, info.Mode(), err, want)
		}
		l.Close()
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Close: %v", err)
		}
		l.Close() // as servers do
	}
}

// An existing file at the path is replaced only if it is a socket without a listener.
func TestSocketPathInUse(t *testing.T) {
	dir := t.TempDir()
	file, link, live, stale := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "live"), filepath.Join(dir, "stale")
	must.Do(t, errors.Join(os.WriteFile(file, []byte("precious"), 0o600), os.Symlink(stale, link)))
	open(t, listen.Socket{}, live)
	datagram := must.Get(net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(dir, "datagram"), Net: "unixgram"}))(t)
	defer datagram.Close()
	leave(t, stale)
	open(t, listen.Socket{}, stale)
	if !answers(stale) {
		t.Error("the stale socket was not replaced")
	}
	for path, want := range map[string]string{
		file: "is not a socket: must be a path without a file", link: "is not a socket", dir: "is not a socket",
		live: "another process listens there: stop it, or choose another path", filepath.Join(dir, "datagram"): "a socket of another process",
		filepath.Join(dir, "none", "s"): "no such file or directory: create the directory first",
	} {
		before, _ := os.Lstat(path)
		l, err := listen.Socket{}.Open("http", "unix:"+path)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "http: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", path, err, want)
		}
		if after, _ := os.Lstat(path); before != nil && !os.SameFile(before, after) {
			t.Errorf("%s was replaced", path)
		}
	}
	if !answers(live) {
		t.Error("the socket in use does not answer any more")
	}
}

// A directory in which others can replace the socket is an error.
func TestSocketDirectory(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.Chmod(dir, 0o777))
	_, err := listen.Socket{}.Open("resp", "unix:"+filepath.Join(dir, "s"))
	if err == nil || !strings.Contains(err.Error(), "resp: "+dir+": other users can replace files in this directory (mode 0777)") {
		t.Errorf("in a directory of everybody: %v", err)
	}
	if err := os.Chmod(dir, 0o777|fs.ModeSticky); err != nil { // as /tmp
		t.Fatal(err)
	}
	open(t, listen.Socket{}, filepath.Join(dir, "s"))
}

// If servers start at the same time on a stale socket, one gets it, and it stays
// reachable.
func TestConcurrentSocketStarts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for round := range 20 {
		leave(t, path)
		var all sync.WaitGroup
		opened := make(chan net.Listener, 8)
		for range cap(opened) {
			all.Go(func() {
				if l, err := (listen.Socket{}).Open("http", "unix:"+path); err == nil {
					opened <- l
				} else if !strings.Contains(err.Error(), "another process listens there") {
					t.Error(err)
				}
			})
		}
		all.Wait()
		close(opened)
		if len(opened) != 1 || !answers(path) {
			t.Fatalf("round %d: %d have the socket, it answers: %t; want one that does", round, len(opened), answers(path))
		}
		(<-opened).Close()
	}
}

// Close leaves a socket that has taken the path meanwhile.
func TestSocketReplacedByHand(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first := open(t, listen.Socket{}, path)
	must.Do(t, os.Rename(path, path+".old"))
	open(t, listen.Socket{}, path)
	first.Close()
	if !answers(path) {
		t.Error("the socket of another server was removed")
	}
}

func TestValidSocketPath(t *testing.T) {
	for path, want := range map[string]string{
		"/run/lately/http.sock": "", "/" + strings.Repeat("x", 106): "", "/" + strings.Repeat("x", 107): "too long for a Unix socket: 108 bytes (max 107)",
		"http.sock": "must be an absolute path", "@lately": "must be an absolute path", ".": "must be an absolute path", "/a b": "without blanks", "/a\n": "without blanks",
	} {
		if err := listen.ValidSocketPath(path); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %q", path, err, want)
		}
	}
	for address, want := range map[string]string{"unix:/a/../b": "/b", "unix:///b": "/b", "unix:": ".", "127.0.0.1:80": ""} {
		if path, ok := listen.SocketPath(address); path != want || ok != (want != "") {
			t.Errorf("%q is %q, %t; want %q", address, path, ok, want)
		}
	}
}

// Owners that do not exist, and owners that only root may name.
func TestSocketOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for owner, want := range map[string]string{"nobody-of-this-name": "there is no user nobody-of-this-name", ":no-such-group": "there is no group no-such-group"} {
		if _, err := (listen.Socket{Owner: owner}).Open("http", "unix:"+path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", owner, err, want)
		}
		if answers(path) {
			t.Errorf("%s: a socket stays", owner)
		}
	}
}
