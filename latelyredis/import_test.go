package latelyredis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/window"
)

// microMemory returns a Limiter in memory with the times of Redis.
func microMemory(t testing.TB, rules *ratelimit.Set) *ratelimit.Limiter {
	t.Helper()
	l, err := ratelimit.NewLimiter(rules, ratelimit.Config{Resolution: time.Microsecond, Budget: ratelimit.NoBudget})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// timedRedis returns a Limiter in Redis at the times of now.
func timedRedis(t testing.TB, rules *ratelimit.Set, c latelyredis.Config, now *atomic.Int64) *ratelimit.Limiter {
	t.Helper()
	store, err := latelyredis.NewAt(redis(t).client(t), rules, c, now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := ratelimit.NewLimiter(rules, ratelimit.Config{Store: store, StoreTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// copyAll copies what memory has counted to redis, and returns the numbers.
func copyAll(t testing.TB, memory, redis *ratelimit.Limiter, id string) (all window.Imported) {
	t.Helper()
	for done, err := range memory.CopyTo(context.Background(), redis, id) {
		if err != nil {
			t.Fatal(err)
		}
		all = done
	}
	return all
}

// randomEvent goes on to the next event of a lockstep.
func randomEvent(rnd *rand.Rand, rules *ratelimit.Set, now *atomic.Int64) (at time.Time, e match.Event, n uint64, peek bool) {
	now.Add(gap(rnd, rules))
	e.SetString(match.Path, fmt.Sprint("/", rnd.IntN(3)))
	return time.UnixMicro(now.Load()), e, cost(rnd, rules), rnd.IntN(5) == 0
}

// importLockstep counts random events in memory, imports, and compares the decisions about the
// next ones. It returns what differs first.
func importLockstep(t *testing.T, rnd *rand.Rand, steps int, move func(memory, redis *ratelimit.Limiter)) (differs string) {
	var now atomic.Int64
	now.Store(time.Now().Add(time.Hour).UnixMicro()) // or what is short would be over when it is copied
	rules := set(t, randomRules(rnd)...)
	memory := microMemory(t, rules)
	for range rnd.IntN(steps) {
		at, e, n, peek := randomEvent(rnd, rules, &now)
		outcomes(memory, at, &e, n, peek)
	}
	redis := timedRedis(t, rules, prefixed(), &now)
	move(memory, redis)
	for i := range steps {
		at, e, n, peek := randomEvent(rnd, rules, &now)
		want, _ := outcomes(memory, at, &e, n, peek)
		if got, _ := outcomes(redis, at, &e, n, peek); !slices.Equal(got, want) {
			for i := range rules.Len() {
				differs += fmt.Sprintf("rule %d: %+v\n", i, *rules.Rule(i))
			}
			return differs + fmt.Sprintf("event %d, %d for %s: Redis returns\n%+v\nand memory\n%+v", i, n, e.Get(match.Path), got, want)
		}
	}
	return ""
}

// TestImportLockstep moves random counts and bans of random rules from memory to Redis, twice: Redis
// goes on as memory does. Without the import, it does not.
func TestImportLockstep(t *testing.T) {
	t.Parallel()
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	found := 0
	for round := range rounds {
		twice := func(memory, redis *ratelimit.Limiter) {
			first := copyAll(t, memory, redis, "move")
			second := copyAll(t, memory, redis, "move")
			if second.Keys > 0 || second.Kept != first.Keys || second.Expired != first.Expired {
				t.Errorf("seed %d, round %d: the first import has %+v, and the second %+v", seed, round, first, second)
			}
		}
		if differs := importLockstep(t, rnd, 60, twice); differs != "" {
			t.Fatalf("seed %d, round %d: %s", seed, round, differs)
		}
		if round < 20 && importLockstep(t, rnd, 60, func(_, _ *ratelimit.Limiter) {}) != "" {
			found++
		}
	}
	if found < 3 { // 14 are usual, and 9 are seen
		t.Errorf("without the import, only %d of 20 rounds differ", found)
	}
}

// TestCopyLeavesNetworks copies a client's ban and that of a network: a store looks up no networks,
// so its list must have none.
func TestCopyLeavesNetworks(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(time.Now().UnixMicro())
	rules := set(t, ratelimit.Rule{Name: "limit", Key: match.MustKey("client"), Limits: []ratelimit.Limit{{N: 5, Span: time.Minute}}})
	memory, redis := microMemory(t, rules), timedRedis(t, rules, prefixed(), &now)
	for _, client := range []string{"192.0.2.0/24", "198.51.100.1"} {
		if err := memory.Bans().Add(ratelimit.BanRecord{Rule: "limit", Key: []string{client}, Until: time.UnixMicro(now.Load()).Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if done := copyAll(t, memory, redis, "networks"); done.Bans != 1 || done.Unknown != 1 {
		t.Errorf("copied are %+v, want one ban and one that is left out", done)
	}
	for b, err := range redis.Bans().All() {
		if err != nil || b.Key[0] != "198.51.100.1" {
			t.Errorf("the store has %+v, %v", b, err)
		}
	}
}
