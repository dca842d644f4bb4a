package latelyredis_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/ratelimit"
)

// A server is a redis-server that the tests have started.
type server struct{ *redistest.Server }

// shared is the server of all tests that leave it running.
var shared struct {
	sync.Once
	server *redistest.Server
	err    error
}

// newPrefix is for a prefix that no test used before.
var newPrefix atomic.Int64

func TestMain(m *testing.M) {
	latelyredis.ServerForTest = func(t testing.TB) rueidis.Client { return redis(t).client(t) }
	code := m.Run()
	if shared.server != nil {
		shared.server.Stop()
	}
	os.Exit(code)
}

// redis returns the server that tests share. The test is skipped where there is none.
func redis(t testing.TB) *server {
	t.Helper()
	redistest.Needs(t)
	shared.Do(func() { shared.server, shared.err = redistest.Start() })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &server{shared.server}
}

// own starts a server for one test.
func own(t testing.TB, settings ...string) *server {
	t.Helper()
	return &server{redistest.Own(t, settings...)}
}

// client returns a client of s, whose connections are checked.
func (s *server) client(t testing.TB, change ...func(*rueidis.ClientOption)) rueidis.Client {
	t.Helper()
	return s.Client(t, append(change, checked)...)
}

// prefixed returns the Config of a store that shares nothing with others.
func prefixed() latelyredis.Config {
	return latelyredis.Config{Prefix: fmt.Sprintf("t%d:", newPrefix.Add(1))}
}

// newStore returns a store, which is closed at the end of the test.
func newStore(t testing.TB, client rueidis.Client, rules *ratelimit.Set, c latelyredis.Config) *latelyredis.Store {
	t.Helper()
	s, err := latelyredis.New(latelyredis.NewConn(client), rules, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// do runs a command of redis-cli's form, and returns the answer as text.
func do(t testing.TB, c rueidis.Client, command ...string) string {
	t.Helper()
	return redistest.Do(t, c, command...)
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
