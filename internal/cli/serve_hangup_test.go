package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// A SIGHUP during the start does not end the server: the rules are read again when it has started. Its log is a pipe
// without space, so it waits in its start.
func TestServeHangupAtTheStart(t *testing.T) {
	dir := t.TempDir()
	rules := filepath.Join(dir, "rules.yaml")
	must.Do(t, os.WriteFile(rules, []byte("version: 1\n"), 0o600))
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	pipe := must.Get(to.SyscallConn())(t)
	var full error
	for full == nil {
		must.Do(t, pipe.Write(func(fd uintptr) bool {
			_, full = syscall.Write(int(fd), make([]byte, 4096))
			return true
		}))
	}
	if full != syscall.EAGAIN {
		t.Fatal(full)
	}
	cmd := exec.Command("lately", "serve", "--resp", "127.0.0.1:0", "--http", "off", "--rules-poll", "never", "--shutdown-delay", "0", "--rules", rules, "--data", filepath.Join(dir, "data"))
	cmd.Stderr = to
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	to.Close()
	untilItWritesTo(t, cmd.Process.Pid, 2)
	must.Do(t, cmd.Process.Signal(syscall.SIGHUP))
	time.Sleep(100 * time.Millisecond) // for a signal that would end it
	var log lines
	read := make(chan struct{})
	go func() {
		defer close(read)
		io.Copy(&log, from)
	}()
	if said := bufio.NewScanner(out); !said.Scan() {
		t.Fatalf("it did not start: %v\n%s", cmd.Wait(), log.String())
	}
	eventually(func() bool { return strings.Contains(log.String(), "reloaded") })
	cmd.Process.Signal(syscall.SIGTERM)
	err = cmd.Wait()
	<-read
	if err != nil || !strings.Contains(log.String(), "reloaded") {
		t.Errorf("it ended with %v\n%s", err, strings.Trim(log.String(), "\x00"))
	}
}

// untilItWritesTo waits until a thread of the process waits in write(2) to a descriptor, which Linux shows in /proc, or
// skips the test on other systems.
func untilItWritesTo(t *testing.T, pid, fd int) {
	t.Helper()
	want := fmt.Sprintf("%d %#x ", syscall.SYS_WRITE, fd)
	waits := func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
		if err != nil || len(threads) == 0 {
			t.Skip("SKIP: /proc does not tell what a process waits for")
		}
		for _, name := range threads {
			b, err := os.ReadFile(name)
			if errors.Is(err, os.ErrPermission) {
				t.Skip("SKIP:", err)
			}
			if strings.HasPrefix(string(b), want) {
				return true
			}
		}
		return false
	}
	if !eventually(waits) {
		t.Fatal("it never waited for its log to be read")
	}
}
