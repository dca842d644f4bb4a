// Package redistest starts redis-server for tests, and counts round trips to it.
package redistest

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/rueidis"
)

// A Server is a redis-server without a port: it listens on a socket in a directory of its own.
type Server struct {
	dir      string
	settings []string
	process  *exec.Cmd
}

// Needs skips t where there is no redis-server.
func Needs(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("SKIP: there is no redis-server here; tools/have-servers installs it")
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
func Start(settings ...string) (*Server, error) {
	dir, err := os.MkdirTemp("", "lately-redis-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, settings: settings}
	if err := s.Run(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// Run starts s again, empty, after Kill.
func (s *Server) Run() error {
	s.process = exec.Command("redis-server", append([]string{
		"--port", "0", "--unixsocket", s.Socket(), "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--logfile", filepath.Join(s.dir, "log"),
	}, s.settings...)...)
	if err := s.process.Start(); err != nil {
		return err
	}
	for range 1000 {
		if conn, err := s.Dial(); err == nil {
			conn.Close()
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("redis-server does not answer within 10 s")
}

// Kill ends the process of s, if it runs.
func (s *Server) Kill() {
	if s.process.Process != nil {
		s.process.Process.Kill()
		s.process.Wait()
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

// Socket returns the path of the socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, "socket") }

// Dial connects to s.
func (s *Server) Dial() (net.Conn, error) { return net.Dial("unix", s.Socket()) }

// Client returns a client of s, which is closed when the test ends.
func (s *Server) Client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	o := rueidis.ClientOption{
		InitAddress:  []string{"redis.invalid:6379"},
		DialCtxFn:    func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return s.Dial() },
		DisableRetry: true, DisableCache: true, ForceSingleClient: true,
		ConnWriteTimeout: time.Minute,
	}
	for _, c := range change {
		c(&o)
	}
	c, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
