package latelygoredis

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/redistest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// rules are two rules with one subject, one with another, and one that bans.
func rules(t testing.TB, limit uint64) *ratelimit.Set {
	t.Helper()
	per := func(a ratelimit.Algorithm, key string) ratelimit.Rule {
		return ratelimit.Rule{
			Name: a.String() + " " + key, Key: match.MustKey(key), Algorithm: a,
			Limits: []ratelimit.Limit{{N: limit, Span: time.Hour}}, OnStoreFailure: ratelimit.FailClosed,
		}
	}
	set, err := ratelimit.NewSet(ratelimit.SetConfig{}, per(ratelimit.Sliding, "path"), per(ratelimit.Exact, "path"), per(ratelimit.Fixed, "host"),
		ratelimit.Rule{Name: "flood", Key: match.MustKey("user"), Ban: &ratelimit.Ban{After: 0, Span: time.Minute, For: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// checked dials connections whose replies are checked.
func checked(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return latelyredis.CheckedConn(conn, func(err error) { panic(err) }), nil
}

// options are the settings for a client of s.
func options(s *redistest.Server) *redis.Options {
	return &redis.Options{Network: "unix", Addr: s.Socket(), ContextTimeoutEnabled: true, Dialer: checked}
}

// limiter returns a limiter with a store of client, which both end with the test.
func limiter(t testing.TB, client redis.UniversalClient, set *ratelimit.Set) (*ratelimit.Limiter, *latelyredis.Store) {
	t.Helper()
	t.Cleanup(func() { client.Close() })
	conn := must.Get(NewConn(client))(t)
	store := must.Get(latelyredis.New(conn, set, latelyredis.Config{}))(t)
	t.Cleanup(store.Close)
	return over(t, store, set), store
}

func over(t testing.TB, store *latelyredis.Store, set *ratelimit.Set) *ratelimit.Limiter {
	t.Helper()
	l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{Store: store, StoreTimeout: time.Minute}))(t)
	return l
}

func event(path, host string) *match.Event {
	e := new(match.Event)
	e.SetString(match.Path, path)
	e.SetString(match.Host, host)
	return e
}

// TestBesideRueidis has goroutines decide by go-redis and by rueidis, one by one and in batches, about the same keys:
// together they allow exactly the limit.
func TestBesideRueidis(t *testing.T) {
	const limit = 200
	s, set := redistest.Own(t), rules(t, limit)
	ours, _ := limiter(t, redis.NewClient(options(s)), set)
	other := must.Get(latelyredis.New(latelyredis.NewConn(s.Client(t)), set, latelyredis.Config{}))(t)
	t.Cleanup(other.Close)
	var allowed atomic.Int64
	note := func(d ratelimit.Decision) {
		if d.Err != nil {
			t.Error(d.Err)
		}
		if d.Allowed {
			allowed.Add(1)
		}
	}
	var all sync.WaitGroup
	for _, l := range []*ratelimit.Limiter{ours, over(t, other, set)} {
		all.Go(func() {
			for range limit {
				note(l.Take(event("/", "h")))
			}
		})
		all.Go(func() {
			for range limit / 10 {
				queries := make([]batch.Query, 10)
				for i := range queries {
					queries[i] = batch.Query{Event: event("/", "h"), Cost: 1}
				}
				for _, d := range l.Internal().TakeAll(queries, nil) {
					note(d)
				}
			}
		})
	}
	all.Wait()
	if allowed.Load() != limit {
		t.Errorf("%d allowed, want %d", allowed.Load(), limit)
	}
}

// TestAnswers has the server lose the scripts, ban and answer with an error.
func TestAnswers(t *testing.T) {
	s, set := redistest.Own(t), rules(t, 100)
	client := redis.NewClient(options(s))
	l, store := limiter(t, client, set)
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for range 3 {
		s.Do(t, "SCRIPT", "FLUSH")
		if d := l.Take(event("/", "h")); d.Err != nil || !d.Allowed {
			t.Errorf("%+v after the scripts were lost", d)
		}
	}
	banned := event("/", "h")
	banned.SetString(match.User, "ada")
	if d := l.Take(banned); d.Allowed || d.Err != nil {
		t.Errorf("%+v, want banned", d)
	}
	n := 0
	for b, err := range l.Bans().All() {
		if n++; err != nil || b.Rule != "flood" {
			t.Errorf("%+v, %v is listed", b, err)
		}
	}
	if n != 1 {
		t.Errorf("%d bans are listed, want 1", n)
	}
	s.Do(t, "REPLICAOF", "127.0.0.1", "1")
	d := l.Take(event("/", "other"))
	if answer, ok := errors.AsType[*latelyredis.ServerError](d.Err); !ok || answer.Code != "READONLY" {
		t.Errorf("%v, want a ServerError with the code READONLY", d.Err)
	}
	s.Do(t, "CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", "allkeys-lru")
	if err := store.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "allkeys-lru") {
		t.Errorf("Check returns %v", err)
	}
}

// TestRejected has clients that do not end calls in time, or are of another kind.
func TestRejected(t *testing.T) {
	for _, c := range []struct {
		client redis.UniversalClient
		want   string
	}{
		{redis.NewClient(&redis.Options{}), "ContextTimeoutEnabled"},
		{redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}}), "ContextTimeoutEnabled"},
		{redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}}), "*redis.Ring"},
	} {
		if _, err := NewConn(c.client); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want an error about %s", err, c.want)
		}
		c.client.Close()
	}
}

// TestCounters has counters of a client of go-redis and of one of rueidis count the same, while the server loses the
// scripts.
func TestCounters(t *testing.T) {
	s := redistest.Own(t)
	all, pages := make([]*latelyredis.Counters, 2), make([]*latelyredis.Counter, 2)
	for i := range all {
		var err error
		if all[i], err = latelyredis.NewCounters(latelyredis.CountersConfig{}); err != nil {
			t.Fatal(err)
		}
		if pages[i], err = all[i].Counter("pages", window.TableConfig{}, window.Last(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	client := redis.NewClient(options(s))
	t.Cleanup(func() { client.Close() })
	conn := must.Get(NewConn(client))(t)
	all[0].Connect(conn)
	all[1].Connect(latelyredis.NewConn(s.Client(t)))
	t.Cleanup(func() {
		for _, c := range all {
			c.Close()
		}
	})
	want := uint64(0)
	for round := range 3 {
		for i, p := range pages {
			p.Add("/", uint64(i+1))
			want += uint64(i + 1)
		}
		for i, p := range pages {
			counted := func() uint64 {
				table, now := p.Counts()
				return table.SumAt(now, "/")
			}
			for deadline := time.Now().Add(time.Minute); !all[i].Complete() || counted() != want; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("round %d: counters %d have %d adds, want %d", round, i, counted(), want)
				}
			}
		}
		s.Do(t, "SCRIPT", "FLUSH")
	}
}

// A lossy is a connection that ends after the server has answered a script, before the client has read the answer, as often
// as lose is.
type lossy struct {
	net.Conn
	lose         *atomic.Int32
	loses, ended bool
}

func (c *lossy) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("EVAL")) && !bytes.Contains(b, []byte("{bans}")) {
		c.loses = c.lose.Add(-1) >= 0
	}
	return c.Conn.Write(b)
}

func (c *lossy) Read(b []byte) (int, error) {
	if c.ended {
		return 0, io.EOF
	}
	n, err := c.Conn.Read(b)
	if c.ended = c.loses; c.ended {
		return 0, io.EOF
	}
	return n, err
}

// TestSentOnce loses the answers to decisions: each was counted once, although the client
// repeats other commands.
func TestSentOnce(t *testing.T) {
	const limit = 100
	s, set := redistest.Own(t), rules(t, limit)
	var lose atomic.Int32
	o := options(s)
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		conn, err := s.Dial()
		return &lossy{Conn: conn, lose: &lose}, err
	}
	l, _ := limiter(t, redis.NewClient(o), set)
	if d := l.Take(event("/", "h")); d.Err != nil || !d.Allowed {
		t.Fatalf("%+v", d)
	}
	lose.Store(1)
	if d := l.Take(event("/", "")); d.Err == nil {
		t.Fatalf("%+v, want an error: the answer is lost", d)
	}
	lose.Store(1)
	if d := l.Internal().TakeAll([]batch.Query{{Event: event("/", ""), Cost: 1}, {Event: event("/", ""), Cost: 1}}, nil); d[0].Err == nil || d[1].Err == nil {
		t.Fatalf("%+v, want errors: the answers are lost", d)
	}
	lose.Store(0)
	if d := l.Take(event("/", "")); d.Err != nil || d.Remaining != limit-5 {
		t.Errorf("%+v, want %d left: five were taken once each", d, limit-5)
	}
}

// TestCluster moves a slot of a cluster while goroutines decide about keys in it, one by one and
// in batches with others.
func TestCluster(t *testing.T) {
	const limit = 300
	c, set := redistest.NewCluster(t, 3), rules(t, limit)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.Nodes[0].Addr}, ContextTimeoutEnabled: true, MaxRedirects: 16, Dialer: checked})
	l, store := limiter(t, client, set)
	if err := store.Check(t.Context()); err != nil {
		t.Error(err)
	}
	by := func(host string) batch.Query {
		e := new(match.Event)
		e.SetString(match.Host, host)
		return batch.Query{Event: e, Cost: 1}
	}
	from, slot := c.Owner(t, "{host=moves}")
	var allowed, answered atomic.Int64
	note := func(d ratelimit.Decision) {
		if answered.Add(1); d.Err != nil {
			t.Error(d.Err)
		}
		if d.Allowed {
			allowed.Add(1)
		}
	}
	var all sync.WaitGroup
	ends := make(chan struct{})
	goesOn := func(i, n int) bool {
		select {
		case <-ends:
			return i < n
		default:
			return true
		}
	}
	for range 2 {
		all.Go(func() {
			for i := 0; goesOn(i, limit/2); i++ {
				note(l.Internal().TakeAll([]batch.Query{by("moves")}, nil)[0])
			}
		})
	}
	all.Go(func() {
		for i := 0; goesOn(i, limit/2); i++ {
			note(l.Internal().TakeAll([]batch.Query{by("a"), by("moves"), by("b"), by("c")}, nil)[1])
		}
	})
	more := func() {
		t.Helper()
		before, deadline := answered.Load(), time.Now().Add(time.Minute)
		for answered.Load() < before+30 {
			if time.Now().After(deadline) {
				t.Error("nothing is decided for a minute")
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	more()
	move := c.Begin(t, slot, from, (from+1)%3)
	more()
	for move.Keys(t, 10) > 0 {
	}
	more()
	move.End(t)
	more()
	close(ends)
	all.Wait()
	if allowed.Load() != limit {
		t.Errorf("%d allowed, want %d", allowed.Load(), limit)
	}
}
