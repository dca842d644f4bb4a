package latelyredis_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
)

// A server is a redis-server that the tests have started, without a port: it listens on a
// socket in a folder of its own.
type server struct {
	dir     string
	process *exec.Cmd
}

// shared is the server of all tests that leave it running.
var shared struct {
	sync.Once
	*server
	err error
}

// newPrefix is for a prefix that no test used before.
var newPrefix atomic.Int64

func TestMain(m *testing.M) {
	latelyredis.ServerForTest = func(t testing.TB) rueidis.Client { return redis(t).client(t) }
	code := m.Run()
	if shared.server != nil {
		shared.stop()
	}
	os.Exit(code)
}

// start starts a server with these settings.
func start(settings ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "lately-redis-")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir}
	args := append([]string{
		"--port", "0", "--unixsocket", s.socket(), "--dir", dir, "--save", "", "--appendonly", "no",
		"--daemonize", "no", "--logfile", filepath.Join(dir, "log"),
	}, settings...)
	s.process = exec.Command("redis-server", args...)
	if err := s.process.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	for range 1000 {
		if conn, err := s.dial(); err == nil {
			conn.Close()
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("redis-server does not answer within 10 s")
}

func (s *server) socket() string { return filepath.Join(s.dir, "socket") }

func (s *server) dial() (net.Conn, error) { return net.Dial("unix", s.socket()) }

func (s *server) stop() {
	s.process.Process.Kill()
	s.process.Wait()
	os.RemoveAll(s.dir)
}

// redis returns the server that tests share. The test is skipped where there is none.
func redis(t testing.TB) *server {
	t.Helper()
	needsServer(t)
	shared.Do(func() { shared.server, shared.err = start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

func needsServer(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Skip("SKIP: there is no redis-server here; tools/have-servers installs it")
	}
}

// own starts a server for one test.
func own(t testing.TB, settings ...string) *server {
	t.Helper()
	needsServer(t)
	s, err := start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// client returns a client of s.
func (s *server) client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	o := rueidis.ClientOption{
		InitAddress:  []string{"redis.invalid:6379"},
		DialCtxFn:    func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) { return s.dial() },
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

// prefixed returns the Config of a store that shares nothing with others.
func prefixed() latelyredis.Config {
	return latelyredis.Config{Prefix: fmt.Sprintf("t%d:", newPrefix.Add(1))}
}

// do runs a command of redis-cli's form, and returns the answer as text.
func do(t testing.TB, c rueidis.Client, command ...string) string {
	t.Helper()
	answer, err := c.Do(context.Background(), c.B().Arbitrary(command...).Build()).ToAny()
	if err != nil && !rueidis.IsRedisNil(err) {
		t.Fatalf("%q: %v", command, err)
	}
	return fmt.Sprint(answer)
}

// set compiles rules.
func set(t testing.TB, rules ...ratelimit.Rule) *ratelimit.Set {
	t.Helper()
	s, err := ratelimit.NewSet(ratelimit.SetConfig{}, rules...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
