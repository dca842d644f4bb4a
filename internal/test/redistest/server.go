// Package redistest starts redis-server for tests, alone, as a cluster or with Sentinel, and
// counts round trips to it.
package redistest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/freeport"
)

// ProgramVariable is the environment variable with the program that is started instead of
// redis-server, such as valkey-server.
const ProgramVariable = "REDIS_SERVER"

// starting is how long a server may take until it answers.
const starting = time.Minute

// A Server is a redis-server that listens on a socket in a directory of its own, and on
// loopback if it was started with a port.
type Server struct {
	// Addr is the address on loopback, or "".
	Addr string

	dir            string
	file, settings []string
	process        *exec.Cmd
	ended          chan struct{} // closed when the process has ended
}

// Program returns the program that is started as a server.
func Program() string {
	if p := os.Getenv(ProgramVariable); p != "" {
		return p
	}
	return "redis-server"
}

// Needs skips t if there is no redis-server.
func Needs(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath(Program()); err != nil {
		t.Skipf("SKIP: there is no %s here; tools/have-servers installs redis-server", Program())
	}
}

// Own starts a server for one test, which ends with it.
func Own(t testing.TB, settings ...string) *Server {
	t.Helper()
	Needs(t)
	s, err := Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Start starts a server with these settings. Stop ends it.
func Start(settings ...string) (*Server, error) { return start(nil, settings) }

func start(file, settings []string) (*Server, error) {
	dir, err := os.MkdirTemp("", "lately-redis-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, file: file, settings: settings}
	if err := s.Run(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// listening starts a server for one test that also listens on a free port of loopback. settings
// returns its settings, for a second port that is free as well. file is its configuration file,
// if it needs one.
func listening(t testing.TB, settings func(second string) []string, file ...string) *Server {
	t.Helper()
	Needs(t)
	for attempt := 0; ; attempt++ {
		addr := freeport.Addr(t)
		_, port, _ := net.SplitHostPort(addr)
		_, second, _ := net.SplitHostPort(freeport.Addr(t))
		s, err := start(file, append([]string{"--bind", "127.0.0.1", "--port", port}, settings(second)...))
		if err == nil {
			s.Addr = addr
			t.Cleanup(s.Stop)
			return s
		}
		if attempt == 10 || !errors.Is(err, errEnded) { // else another process has taken the port
			t.Fatal(err)
		}
	}
}

// errEnded is the error of a server that ends at its start.
var errEnded = errors.New("the server has ended")

// Run starts s again, empty, after Kill.
func (s *Server) Run() error {
	s.process = exec.Command(Program(), slices.Concat(s.file, []string{
		"--port", "0", "--unixsocket", s.Socket(), "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--logfile", filepath.Join(s.dir, "log"),
	}, s.settings)...)
	if err := s.process.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		s.process.Wait()
	}()
	for deadline := time.Now().Add(starting); time.Now().Before(deadline); {
		if conn, err := s.Dial(); err == nil {
			conn.Close()
			return nil
		}
		select {
		case <-s.ended:
			log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("%s: %w: %s", Program(), errEnded, log)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not answer within %v", Program(), starting)
}

// Kill ends the process of s, if it runs.
func (s *Server) Kill() {
	if s.process.Process != nil {
		s.process.Process.Kill()
		<-s.ended
	}
	os.Remove(s.Socket())
}

// Stop ends s and removes its directory.
func (s *Server) Stop() {
	s.Kill()
	os.RemoveAll(s.dir)
}

// Process returns the process of s, for signals.
func (s *Server) Process() *os.Process { return s.process.Process }

// Dir returns the directory of s.
func (s *Server) Dir() string { return s.dir }

// Socket returns the path of the socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "socket") }

// Dial connects to s.
func (s *Server) Dial() (net.Conn, error) { return net.Dial("unix", s.Socket()) }

// Client returns a client of s alone, which is closed when the test ends.
func (s *Server) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	return newClient(t, rueidis.ClientOption{
		InitAddress:       []string{"redis.invalid:6379"},
		DialCtxFn:         func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return s.Dial() },
		ForceSingleClient: true,
	}, change...)
}

// newClient returns a client with the options of tests, which is closed when the test ends.
func newClient(t testing.TB, o rueidis.ClientOption, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	// A client that does not pipeline closes the connection of all calls when the time of one has passed.
	o.DisableRetry, o.DisableCache, o.AlwaysPipelining, o.ConnWriteTimeout = true, true, true, time.Minute
	for _, c := range change {
		c(&o)
	}
	c, err := rueidis.NewClient(o)
	for try := 0; try < 20 && errors.Is(err, os.ErrDeadlineExceeded); try++ { // a short ConnWriteTimeout on a busy machine
		c, err = rueidis.NewClient(o)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// Do runs a command of redis-cli's form on s, and returns the answer as text.
func (s *Server) Do(t testing.TB, command ...string) string {
	t.Helper()
	return Do(t, s.Client(t), command...)
}

// Do runs a command of redis-cli's form, and returns the answer as text.
func Do(t testing.TB, c rueidis.Client, command ...string) string {
	t.Helper()
	answer, err := c.Do(context.Background(), c.B().Arbitrary(command...).Build()).ToAny()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%q: %v", command, err)
	}
	return fmt.Sprint(answer)
}

// eventually waits until ok, which must be soon.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
