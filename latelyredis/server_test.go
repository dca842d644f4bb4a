package latelyredis_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
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

// redis returns the server that tests share, or skips the test if there is none.
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
	s := must.Get(latelyredis.New(latelyredis.NewConn(client), rules, c))(t)
	t.Cleanup(s.Close)
	return s
}

// quiet returns a store that runs nothing in the background, and decides without a copy of the bans.
func quiet(t testing.TB, client rueidis.Client, rules *ratelimit.Set, c latelyredis.Config) *latelyredis.Store {
	t.Helper()
	return must.Get(latelyredis.NewQuiet(client, rules, c))(t)
}

// storeAt is quiet for a clock of the server that the test moves.
func storeAt(t testing.TB, client rueidis.Client, rules *ratelimit.Set, c latelyredis.Config, now *atomic.Int64) *latelyredis.Store {
	t.Helper()
	return must.Get(latelyredis.NewAt(client, rules, c, now))(t)
}

// knowing is storeAt with the copy of the bans and the refusals of a node whose clock is node.
func knowing(t testing.TB, client rueidis.Client, rules *ratelimit.Set, c latelyredis.Config, now, node *atomic.Int64) *latelyredis.Store {
	t.Helper()
	return must.Get(latelyredis.NewKnowing(client, rules, c, now, node))(t)
}

// nodeAt returns a limiter whose store has a clock of the server that the test moves.
func nodeAt(t testing.TB, rules *ratelimit.Set, c latelyredis.Config, now *atomic.Int64) *ratelimit.Limiter {
	t.Helper()
	return limiterOf(t, rules, storeAt(t, redis(t).client(t), rules, c, now))
}

// ruleOf returns the first rule of l.
func ruleOf(t testing.TB, l *ratelimit.Limiter) *ratelimit.RuleLimiter {
	t.Helper()
	return must.Get(l.Rule(l.Stats().Rules[0].Rule))(t)
}

// limiterOf returns a limiter whose calls of the store have all the time that they need.
func limiterOf(t testing.TB, rules *ratelimit.Set, s *latelyredis.Store) *ratelimit.Limiter {
	t.Helper()
	return must.Get(ratelimit.NewLimiter(rules, ratelimit.Config{Store: s, StoreTimeout: time.Minute}))(t)
}

// defaultLimiter returns a limiter with the default time for calls of the store.
func defaultLimiter(t testing.TB, rules *ratelimit.Set, s *latelyredis.Store) *ratelimit.Limiter {
	t.Helper()
	return must.Get(ratelimit.NewLimiter(rules, ratelimit.Config{Store: s}))(t)
}

// clockAt returns a clock in microseconds.
func clockAt(now time.Time) *atomic.Int64 {
	c := new(atomic.Int64)
	c.Store(now.UnixMicro())
	return c
}

// one is a request for an event of cost 1.
func one(rules *ratelimit.Set, subjects ...latelyredis.Subject) *latelyredis.Request {
	return &latelyredis.Request{Set: rules, Cost: 1, Subjects: subjects}
}

// peek returns what a store would decide about an event.
func peek(t testing.TB, s *latelyredis.Store, rules *ratelimit.Set, subject latelyredis.Subject) latelyredis.Outcome {
	t.Helper()
	r := one(rules, subject)
	r.Peek = true
	if s.Decide(t.Context(), []*latelyredis.Request{r}); r.Err != nil {
		t.Fatal(r.Err)
	}
	return r.Subjects[0].Outcome
}

// do runs a command of redis-cli's form, and returns the answer as text.
func do(t testing.TB, c rueidis.Client, command ...string) string {
	t.Helper()
	return redistest.Do(t, c, command...)
}

// set compiles rules.
func set(t testing.TB, rules ...ratelimit.Rule) *ratelimit.Set {
	t.Helper()
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, rules...))(t)
	return s
}
