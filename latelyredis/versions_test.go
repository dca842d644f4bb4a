package latelyredis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// otherScripts are scripts that do the same, but have other names in Redis.
func otherScripts(text string) string { return "-- the next version\n" + text }

// microMemory returns a Limiter in memory with the times of Redis.
func microMemory(t testing.TB, rules *ratelimit.Set) *ratelimit.Limiter {
	t.Helper()
	return must.Get(ratelimit.NewLimiter(rules, ratelimit.Config{Resolution: time.Microsecond, Budget: -1}))(t)
}

// randomEvent goes on to the next event of a lockstep.
func randomEvent(rnd *rand.Rand, rules *ratelimit.Set, now *atomic.Int64) (at time.Time, e match.Event, n uint64, peek bool) {
	now.Add(gap(rnd, rules))
	e.SetString(match.Path, fmt.Sprint("/", rnd.IntN(3)))
	return time.UnixMicro(now.Load()), e, cost(rnd, rules), rnd.IntN(5) == 0
}

// versionsLockstep has three versions of the scripts decide random events in turn, each with a Config of its own, and
// compares them with one memory. It returns the first difference.
func versionsLockstep(t *testing.T, rnd *rand.Rand, config func() latelyredis.Config) (differs string) {
	now := clockAt(time.Now())
	rules := set(t, randomRules(rnd)...)
	memory := microMemory(t, rules)
	var nodes [3]*ratelimit.Limiter
	for i := range nodes {
		store := storeAt(t, redis(t).client(t), rules, config(), now)
		if i > 0 {
			store.EditScripts(i == 1, otherScripts)
		}
		nodes[i] = limiterOf(t, rules, store)
	}
	for step := range 100 {
		at, e, n, peek := randomEvent(rnd, rules, now)
		node := rnd.IntN(len(nodes))
		want, _ := outcomes(memory, at, &e, n, peek)
		if got, _ := outcomes(nodes[node], at, &e, n, peek); !slices.Equal(got, want) {
			for i := range rules.Rules() {
				differs += fmt.Sprintf("rule %d: %+v\n", i, *rules.Rules()[i])
			}
			return differs + fmt.Sprintf("step %d: version %d returns\n%+v\nand memory\n%+v", step, node, got, want)
		}
	}
	return ""
}

// TestVersionsLockstep has nodes of three versions decide, as during an upgrade: each decision is that of one memory. If
// they do not share their records, it is not.
func TestVersionsLockstep(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 20
	}
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	apart := 0
	for round := range rounds {
		config := prefixed()
		if differs := versionsLockstep(t, rnd, func() latelyredis.Config { return config }); differs != "" {
			t.Fatalf("seed %d, round %d: %s", seed, round, differs)
		}
		if round < 20 && versionsLockstep(t, rnd, prefixed) != "" {
			apart++
		}
	}
	if apart < 10 {
		t.Errorf("of versions that do not share their records, only %d of 20 rounds differ from one memory", apart)
	}
}

// TestVersionsShareCounts has two versions, with the clock and the copies of bans and refusals of production, take at the
// same time: together they allow the limit. A ban of one is in force on the other.
func TestVersionsShareCounts(t *testing.T) {
	const limit, callers = 300, 4
	path := match.MustKey("path")
	for _, batched := range []bool{false, true} {
		rules := set(t, lasting(24*time.Hour, limited("one", path, ratelimit.Sliding, limit)), lasting(24*time.Hour, limited("two", path, ratelimit.GCRA, limit)))
		config := prefixed()
		config.Batched = batched
		var stores [2]*latelyredis.Store
		var allowed atomic.Int64
		var all sync.WaitGroup
		for i := range stores {
			stores[i] = newStore(t, redis(t).client(t), rules, config)
			if i == 1 {
				stores[i].EditScripts(true, otherScripts)
			}
		}
		for i := range stores {
			for range callers {
				all.Go(func() {
					for range limit / callers {
						if r := take(context.Background(), stores[i], rules, "k"); r.Err != nil {
							t.Error(r.Err)
						} else if !r.Subjects[0].Outcome.Refused && !r.Subjects[1].Outcome.Refused {
							allowed.Add(1)
						}
					}
				})
			}
		}
		all.Wait()
		most := int64(limit)
		if batched {
			most += limit / 4 // both may not have seen the other yet
		}
		if n := allowed.Load(); n < limit || n > most {
			t.Errorf("batched %v: %d are allowed, want %d to %d", batched, n, limit, most)
		}
		for i, s := range stores {
			key := strconv.Itoa(i)
			ban(t, s, "one", key)
			eventually(t, "the ban of the other version is known", func() bool { return stores[1-i].Copied("one", key) })
		}
	}
}

// TestNewerForm has a node of the next version write records in another form. It goes on from the counts of the older one.
// The older one answers with an error for these keys, whatever the call, and changes none.
func TestNewerForm(t *testing.T) {
	path := match.MustKey("path")
	banning := limited("r", path, ratelimit.Sliding, 10)
	banning.Ban = &ratelimit.Ban{After: 5, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
	for name, r := range map[string]ratelimit.Rule{
		"a log": limited("r", path, ratelimit.Sliding, 10), "slots": limited("r", path, ratelimit.Sliding, 1000), "a bucket": limited("r", path, ratelimit.GCRA, 10),
		"a window": limited("r", path, ratelimit.Fixed, 10), "a ban": banning,
	} {
		r.Limits[0].Span = time.Hour
		left := r.Limits[0].N - 1
		rules, config, client := set(t, r), prefixed(), redis(t).client(t)
		var stores [2]*latelyredis.Store
		for i := range stores {
			stores[i] = quiet(t, client, rules, config)
		}
		old, next := stores[0], stores[1]
		next.EditScripts(true, otherScripts)
		next.WriteForm(2 * latelyredis.RecordForm)
		for i, s := range []*latelyredis.Store{old, old, next, next} {
			if r := take(context.Background(), s, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Remaining != left-uint64(i) {
				t.Fatalf("%s: decision %d: %v, %+v", name, i, r.Err, r.Subjects[0].Outcome)
			}
		}
		key := config.Prefix + "{path=k}:r"
		before := do(t, client, "GET", key)
		if before[0] != 2*latelyredis.RecordForm {
			t.Fatalf("%s: the next version has written form %d", name, before[0])
		}
		testOld(t, name, old, rules)
		if after := do(t, client, "GET", key); after != before {
			t.Errorf("%s: the older version has changed the record from %q to %q", name, before, after)
		}
		if r := take(context.Background(), old, rules, "other"); r.Err != nil || r.Subjects[0].Outcome.Remaining != left {
			t.Errorf("%s: a key that only the older version has used: %v, %+v", name, r.Err, r.Subjects[0].Outcome)
		}
		if r := take(context.Background(), next, rules, "k"); r.Err != nil || r.Subjects[0].Outcome.Remaining != left-4 {
			t.Errorf("%s: the next version goes on: %v, %+v", name, r.Err, r.Subjects[0].Outcome)
		}
	}
}

// testOld has the older version in TestNewerForm make all its calls with the key: OnStoreFailure of the rule decides, and
// all other calls return an error with what to do.
func testOld(t *testing.T, name string, old *latelyredis.Store, rules *ratelimit.Set) {
	t.Helper()
	ctx := context.Background()
	ban := ratelimit.BanRecord{Rule: "r", Key: []string{"k"}, Until: time.Now().Add(time.Hour)}
	for what, err := range map[string]error{
		"a decision": take(ctx, old, rules, "k").Err,
		"a charge":   old.Adjust(ctx, &latelyredis.Adjustment{Set: rules, Key: []byte("k"), N: 1}),
		"a refund":   old.Adjust(ctx, &latelyredis.Adjustment{Change: latelyredis.Refund, Set: rules, Key: []byte("k"), N: 1}),
		"a reset":    old.Adjust(ctx, &latelyredis.Adjustment{Change: latelyredis.Reset, Set: rules, Key: []byte("k")}),
		"a ban":      old.Ban(ctx, ban),
	} {
		answer, ok := errors.AsType[*latelyredis.ServerError](err)
		if !ok || answer.Code != "NEWERFORM" || !strings.Contains(err.Error(), "upgrade this one") {
			t.Errorf("%s: %s of the older version: %v, want a ServerError with the code NEWERFORM", name, what, err)
		}
	}
	if _, err := old.Unban(ctx, "r", []byte("k")); err == nil {
		t.Errorf("%s: the older version ends a ban in a record that it cannot read", name)
	}
	l := limiterOf(t, rules, old)
	r := must.Get(l.Rule("r"))(t)
	if d := r.Take("k"); d.Err == nil || !d.Allowed {
		t.Errorf("%s: the rule decides in local memory for a record that it cannot read: %+v", name, d)
	}
}

// TestNewerBans has the list of bans have an entry in a form that this version cannot read: it copies all others.
func TestNewerBans(t *testing.T) {
	rules, config, client := anyRules(t), prefixed(), redis(t).client(t)
	reader := newStore(t, client, rules, config)
	eventually(t, "the list is read", reader.Read)
	tag := config.Prefix + "{bans}:"
	newer := fmt.Sprintf("\x01a\x04path%s", "newer")
	for part := range 16 {
		do(t, client, "ZADD", tag+"ends:"+strconv.Itoa(part), strconv.FormatInt(time.Now().Add(time.Hour).UnixMicro(), 10), newer)
		do(t, client, "HSET", tag+"details:"+strconv.Itoa(part), newer, "\xff\xff another form")
	}
	do(t, client, "XADD", tag+"changes", "*", newer, "\xff\xff another form")
	writer := newStore(t, client, rules, config)
	ban(t, writer, "a", "k")
	late := newStore(t, client, rules, config)
	for what, s := range map[string]*latelyredis.Store{"that reads changes": reader, "that reads the list": late} {
		eventually(t, "a node "+what+" knows the ban", func() bool { return s.Copied("a", "k") })
	}
}

// TestShortBan has the list of bans have an entry that is too short for a checksum, and ends like one: it is skipped.
func TestShortBan(t *testing.T) {
	rules, config, client := anyRules(t), prefixed(), redis(t).client(t)
	store := quiet(t, client, rules, config)
	must.Do(t, store.Sync(t.Context()))
	entry := string(snapshot.Seal([]byte("\x01a\x04path")))
	do(t, client, "XADD", config.Prefix+"{bans}:changes", "*", entry[:len(entry)-1], entry[len(entry)-1:])
	ban(t, quiet(t, client, rules, config), "a", "k")
	must.Do(t, store.Sync(t.Context()))
	if !store.Copied("a", "k") {
		t.Error("the ban behind it is not copied")
	}
}
