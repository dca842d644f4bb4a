package cli

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/resp"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/resptest"
)

// A serving is a process of `lately serve` on ports of its own.
type serving struct {
	t    testing.TB
	cmd  *exec.Cmd
	resp string // address
	http string // URL
	log  logFile
	done chan struct{} // closed when it has ended
	err  error
}

// A logFile is the path of the standard error of a process. The process writes to the file
// itself, so a test that sees a later effect finds all earlier lines.
type logFile string

func (l logFile) String() string {
	text, err := os.ReadFile(string(l))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// lines collects what a command writes.
type lines struct {
	sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.Lock()
	defer l.Unlock()
	return l.text.String()
}

// serve starts a process with these flags and waits until it prints where it listens.
// The test ends it.
func serve(t testing.TB, args ...string) *serving {
	t.Helper()
	return serveIn(t, "", args...)
}

// serveIn is serve in a directory.
func serveIn(t testing.TB, dir string, args ...string) *serving {
	t.Helper()
	s := &serving{t: t, log: logFile(filepath.Join(t.TempDir(), "log")), done: make(chan struct{})}
	log := must.Get(os.Create(string(s.log)))(t)
	defer log.Close()
	s.cmd = exec.Command("lately", append([]string{"serve", "--resp", "127.0.0.1:0", "--http", "127.0.0.1:0"}, args...)...)
	s.cmd.Stderr = log
	s.cmd.Dir = dir
	s.cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LATELY_") }) // of the tests
	s.cmd.Env = append(s.cmd.Env, "LATELY_SHUTDOWN_DELAY=0")
	out := must.Get(s.cmd.StdoutPipe())(t)
	must.Do(t, s.cmd.Start())
	t.Cleanup(s.kill)
	said := bufio.NewScanner(out)
	for s.http == "" && said.Scan() {
		switch f := strings.Fields(said.Text()); f[0] {
		case "RESP":
			s.resp = f[1]
		case "HTTP":
			s.http = f[1]
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		s.err = s.cmd.Wait()
		close(s.done)
	}()
	if s.http == "" {
		<-s.done
		t.Fatalf("lately serve does not start: %v\n%s", s.err, s.log.String())
	}
	return s
}

// eventually waits until ok, and reports whether that came within a minute.
func eventually(ok func() bool) bool {
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// kill ends the process as a crash would.
func (s *serving) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// end sends SIGTERM to the process and waits for its end.
func (s *serving) end() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		s.kill()
		s.t.Errorf("the server does not end\n%s", s.log.String())
	}
	return s.err
}

// A talker is a connection to a server.
type talker struct {
	net.Conn
	replies *resptest.Reader
	buf     []byte
}

func (s *serving) dial() *talker {
	s.t.Helper()
	conn := must.Get(net.Dial("tcp", s.resp))(s.t)
	s.t.Cleanup(func() { conn.Close() })
	return &talker{Conn: conn, replies: resptest.NewReader(conn)}
}

// do sends a command and returns the reply.
func (c *talker) do(args ...string) (resptest.Value, error) {
	c.buf = resp.AppendCommand(c.buf[:0], args...)
	if _, err := c.Write(c.buf); err != nil {
		return resptest.Value{}, err
	}
	v, err := c.replies.Next()
	if err == nil {
		err = v.Err()
	}
	return v, err
}

// say is do for replies that are compared as text: one line, elements in brackets.
func (c *talker) say(args ...string) string {
	v, err := c.do(args...)
	if err != nil {
		return err.Error()
	}
	return inLine(v)
}

func inLine(v resptest.Value) string {
	switch {
	case v.Kind == '_':
		return "null"
	case len(v.Elems) > 0 || v.Kind == '*':
		parts := make([]string, len(v.Elems))
		for i := range v.Elems {
			parts[i] = inLine(v.Elems[i])
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return v.Text
}
