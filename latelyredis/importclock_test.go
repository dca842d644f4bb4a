package latelyredis_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// apart is a node and Redis with different clocks, in microseconds.
type apart struct{ node, server atomic.Int64 }

func (c *apart) goOn(micros int64) {
	c.node.Add(micros)
	c.server.Add(micros)
}

// TestImportOtherClock imports what a node has counted whose clock is behind that of Redis, or ahead of it, by up to
// some windows. Redis goes on by its own clock: nothing leaves its window before it would have by the node's, and slots
// stay for one more at most.
func TestImportOtherClock(t *testing.T) {
	rnd := randtest.New(t)
	for _, a := range []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.GCRA, ratelimit.LeakyBucket, ratelimit.Fixed, ratelimit.Exact, ratelimit.InFlight} {
		for _, n := range []uint64{100, 1000} {
			for range 6 {
				testOtherClock(t, rnd, a, ratelimit.Limit{N: n, Span: []time.Duration{10 * time.Second, 10_001 * time.Millisecond}[rnd.IntN(2)]})
			}
		}
	}
}

func testOtherClock(t *testing.T, rnd *rand.Rand, a ratelimit.Algorithm, l ratelimit.Limit) {
	t.Helper()
	rules := set(t, ratelimit.Rule{Name: "r", Key: match.MustKey("path"), Algorithm: a, Limits: []ratelimit.Limit{l}})
	var c apart
	c.node.Store(time.Date(2100, 11, 23, 12, 0, 0, 0, time.UTC).UnixMicro())
	ahead := 200_000 + rnd.Int64N(30e6)
	if rnd.IntN(2) == 0 {
		ahead = -ahead
	}
	c.server.Store(c.node.Load() + ahead)
	store, err := latelyredis.NewKnowing(redis(t).client(t), rules, prefixed(), &c.server, &c.node)
	if err != nil {
		t.Fatal(err)
	}
	redis, err := ratelimit.NewLimiter(rules, ratelimit.Config{Store: store, StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	memory, late := microMemory(t, rules), microMemory(t, rules) // late is asked about a slot ago
	slot := int64(0)
	if a == ratelimit.Sliding && l.N > 128 {
		slot = l.Span.Microseconds()/60 + 1
	}
	for range 20 {
		cost := 1 + rnd.Uint64N(3)
		for _, counting := range []*ratelimit.Limiter{memory, late} {
			rule(t, counting).TakeN(time.UnixMicro(c.node.Load()), cost, "k")
		}
		c.goOn(rnd.Int64N(600e3))
	}
	copyAll(t, memory, redis, "id")
	used := func(asked *ratelimit.Limiter, at int64) uint64 {
		d := rule(t, asked).PeekN(time.UnixMicro(at), 0, "k")
		if d.Err != nil {
			t.Fatal(d.Err)
		}
		return d.Limit - d.Remaining
	}
	for range 40 {
		got, least, most := used(redis, c.server.Load()), used(memory, c.node.Load()), used(late, c.node.Load()-slot)
		if got < least || got > most {
			t.Fatalf("%v, limit %d in %v, a clock that is ahead by %d µs: %d are used, want %d to %d", a, l.N, l.Span, ahead, got, least, most)
		}
		c.goOn(rnd.Int64N(400e3))
	}
}
