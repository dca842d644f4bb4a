package latelyredis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A fleet is nodes that remember refusals, and one without, which gets the same requests for keys of its own.
type fleet struct {
	rules     *ratelimit.Set
	now, node atomic.Int64 // the clocks of the server and of all nodes, in microseconds
	stores    []*latelyredis.Store
	limiters  []*ratelimit.Limiter
	exact     *ratelimit.Limiter
	known     int // refusals without a round trip
	reserved  []*ratelimit.Reservation
}

func newFleet(t testing.TB, s *server, rules *ratelimit.Set, config latelyredis.Config) *fleet {
	t.Helper()
	f := &fleet{rules: rules}
	start := time.Now().UnixMicro()
	f.now.Store(start)
	f.node.Store(start - 5_000_000)
	client := s.client(t)
	for range 3 {
		store := knowing(t, client, rules, config, &f.now, &f.node)
		f.stores, f.limiters = append(f.stores, store), append(f.limiters, limiterOf(t, rules, store))
	}
	f.exact = limiterOf(t, rules, storeAt(t, client, rules, prefixed(), &f.now))
	f.sync(t)
	return f
}

// sync has all nodes send each other what they have given back.
func (f *fleet) sync(t testing.TB) {
	t.Helper()
	for range 2 {
		for _, s := range f.stores {
			must.Do(t, s.Sync(context.Background()))
		}
	}
}

// bans reports whether a rule bans.
func (f *fleet) bans() bool {
	for i := range f.rules.Rules() {
		if f.rules.Rules()[i].Ban != nil {
			return true
		}
	}
	return false
}

func (f *fleet) pass(micros int64) {
	f.now.Add(micros)
	f.node.Add(micros)
}

// take takes n from a node and from the one without memory, and returns what is wrong with the answer of the node.
func (f *fleet) take(rnd *rand.Rand, e *match.Event, n uint64, peek bool) (wait time.Duration, wrong string) {
	at, i := time.UnixMicro(f.now.Load()), rnd.IntN(len(f.limiters))
	q := &batch.Query{Event: e, Cost: n, Peek: true}
	want, _ := f.exact.Internal().JudgeAt(at, q, nil)
	var got ratelimit.Decision
	probe := &latelyredis.Request{Set: f.rules, Cost: n, Peek: true}
	for rule := range f.rules.Rules() {
		probe.Subjects = append(probe.Subjects, about(rule, string(e.Get(match.Path))))
	}
	if f.stores[i].DecideKnown(probe) {
		f.known++
	}
	if peek {
		got, _ = f.limiters[i].Internal().JudgeAt(at, q, nil)
	} else {
		got = f.limiters[i].TakeAt(at, e, n)
		want = f.exact.TakeAt(at, e, n)
	}
	if got.Allowed != want.Allowed || got.RetryAfter > want.RetryAfter && want.RetryAfter != ratelimit.Never || got.Err != nil && n <= 1 || want.Err != nil && n <= 1 {
		wrong = fmt.Sprintf("node %d returns %+v, want %+v", i, got, want)
	}
	return want.RetryAfter, wrong
}

// giveBack gives back to key by a node, and sends it to the others.
func (f *fleet) giveBack(t testing.TB, rnd *rand.Rand, key string) {
	t.Helper()
	name, what, n := f.rules.Rules()[rnd.IntN(len(f.rules.Rules()))].Name, rnd.IntN(3), 1+rnd.Uint64N(8)
	for _, l := range []*ratelimit.Limiter{f.limiters[rnd.IntN(len(f.limiters))], f.exact} {
		r, err := l.Rule(name)
		if err != nil {
			t.Fatal(err)
		}
		switch what {
		case 0:
			_, err = r.Refund(n, key)
		case 1:
			err = r.Reset(key)
		case 2:
			f.reserved = append(f.reserved, r.Reserve(n, key)) // one of each, settled later
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := len(f.reserved); n > 4 || n > 0 && what < 2 {
		for _, r := range f.reserved {
			must.Do(t, r.Cancel())
		}
		f.reserved = nil
	}
	f.sync(t)
}

// run does random things, and returns the first error.
func (f *fleet) run(t testing.TB, rnd *rand.Rand, steps int, spoil func(*latelyredis.Store)) string {
	t.Helper()
	var done []string
	var wait time.Duration
	keys := make([]match.Event, 2)
	for i := range keys {
		keys[i].SetString(match.Path, fmt.Sprint("/", i))
	}
	for range steps {
		switch {
		case wait > 0 && rnd.IntN(8) == 0:
			f.pass(wait.Microseconds() - int64(rnd.IntN(2))) // when it is allowed, or just before
		case rnd.IntN(3) == 0:
			f.pass(gap(rnd, f.rules))
		}
		e := &keys[rnd.IntN(2)]
		key := string(e.Get(match.Path))
		switch rnd.IntN(30) {
		case 0:
			f.giveBack(t, rnd, key)
			done = append(done, "gave back to "+key)
		case 1:
			if f.bans() {
				break // the copy of a ban does not move with the clock
			}
			step := rnd.Int64N(120_000_000) - 60_000_000
			f.now.Add(step)
			f.sync(t)
			done = append(done, fmt.Sprint("the clock was set by ", time.Duration(step)*time.Microsecond))
			for i := range keys { // a refused event moves the record as well, if it reaches Redis
				if _, wrong := f.take(rnd, &keys[i], 1, false); wrong != "" {
					return fmt.Sprintf("after %q, %s", done[max(0, len(done)-20):], wrong)
				}
			}
		case 2, 3:
			f.sync(t) // or refusals are not used after a second
		}
		n, peek := max(cost(rnd, f.rules), 1), rnd.IntN(5) == 0
		if spoil != nil {
			for _, s := range f.stores {
				spoil(s)
			}
		}
		done = append(done, fmt.Sprintf("at %d: %d for %s, peek %v", f.now.Load(), n, key, peek))
		var wrong string
		if wait, wrong = f.take(rnd, e, n, peek); wrong != "" {
			return fmt.Sprintf("after %q, %s", done[max(0, len(done)-20):], wrong)
		}
		if wait > limit.MaxSpan/2 {
			wait = 0
		}
	}
	return ""
}

// TestRefusalsLockstep compares the decisions of three nodes that remember refusals with those of a store that asks Redis
// each time: they allow the same, and return no longer waiting times. Nodes that remember for too long, or take one cost
// for another, are found out.
func TestRefusalsLockstep(t *testing.T) {
	t.Parallel()
	s := redis(t)
	rounds, steps := 60, 150
	if testing.Short() {
		rounds = 12
	}
	seed := randtest.Seed(t)
	plain := limited("r", match.MustKey("path"), ratelimit.Exact, 5) // with which mistakes are found soon
	round := func(i int, spoil func(*latelyredis.Store)) (f *fleet, wrong string) {
		rnd := rand.New(rand.NewPCG(seed, uint64(i)))
		rules := randomRules(rnd)
		if spoil != nil {
			rules = []ratelimit.Rule{plain}
		}
		f = newFleet(t, s, set(t, rules...), prefixed())
		return f, f.run(t, rnd, steps, spoil)
	}
	known := 0
	for i := range rounds {
		f, wrong := round(i, nil)
		if known += f.known; wrong != "" {
			for i := range f.rules.Rules() {
				t.Logf("rule %d: %+v", i, *f.rules.Rules()[i])
			}
			t.Fatalf("seed %d, round %d: %s", seed, i, wrong)
		}
	}
	if known == 0 {
		t.Error("each refusal took a round trip")
	}
	for _, control := range []struct {
		name  string
		spoil func(*latelyredis.Store)
	}{
		{"remember for too long", func(s *latelyredis.Store) {
			s.SpoilRefusals(func(ends, _ *uint64) { *ends += 1000 })
		}},
		{"take one cost for another", func(s *latelyredis.Store) {
			s.SpoilRefusals(func(_, cost *uint64) { *cost = 1 })
		}},
	} {
		found := false
		for i := 0; i < 10*rounds && !found; i++ {
			_, wrong := round(i, control.spoil)
			found = wrong != ""
		}
		if !found {
			t.Errorf("seed %d: nodes that %s are not found out", seed, control.name)
		}
	}
}

// refused reports whether the first node refuses k.
func (f *fleet) refused(t testing.TB) bool {
	t.Helper()
	return ask(t, f.stores[0], f.rules, about(0, "k"))[0].Outcome.Refused
}

// TestRefusalsAreAnnounced has one node reset a key that another refuses: the refusals go on until both have exchanged
// messages, and end then, or after a second without one.
func TestRefusalsAreAnnounced(t *testing.T) {
	for _, silent := range []bool{false, true} {
		f := newFleet(t, redis(t), set(t, limited("r", match.MustKey("path"), ratelimit.Exact, 1)), prefixed())
		if f.refused(t) || !f.refused(t) {
			t.Fatal("want the second event refused")
		}
		reset := latelyredis.Adjustment{Change: latelyredis.Reset, Set: f.rules, Key: []byte("k")}
		must.Do(t, f.stores[1].Adjust(context.Background(), &reset))
		if f.pass(900_000); !f.refused(t) {
			t.Error("the other node has the reset before its message: it has called Redis")
		}
		if silent {
			f.pass(100_000)
		} else {
			f.sync(t)
		}
		if f.refused(t) {
			t.Errorf("it is still refused; silent %v", silent)
		}
	}
}

// TestRefusalsOfTheKilled has one node give back to a key that another refuses, and end, as if killed: the other one
// notices when the killed node is no longer counted.
func TestRefusalsOfTheKilled(t *testing.T) {
	ctx := context.Background()
	for name, giveBack := range map[string]func(*latelyredis.Store, *latelyredis.Request) error{
		"reset": func(s *latelyredis.Store, r *latelyredis.Request) error {
			return s.Adjust(ctx, &latelyredis.Adjustment{Change: latelyredis.Reset, Set: r.Set, Key: []byte("k")})
		},
		"refund": func(s *latelyredis.Store, r *latelyredis.Request) error {
			return s.Adjust(ctx, &latelyredis.Adjustment{Change: latelyredis.Refund, Set: r.Set, Key: []byte("k"), N: 1})
		},
		"settle": func(s *latelyredis.Store, r *latelyredis.Request) error {
			return s.Settle(ctx, &latelyredis.Settlement{Set: r.Set, At: r.Now, Charged: 1, Subjects: r.Subjects})
		},
	} {
		f := newFleet(t, redis(t), set(t, limited("r", match.MustKey("path"), ratelimit.Exact, 1)), prefixed())
		killed, other := f.stores[1], f.stores[0]
		r := one(f.rules, about(0, "k"))
		if killed.Decide(ctx, []*latelyredis.Request{r}); r.Err != nil || r.Subjects[0].Outcome.Refused || !f.refused(t) {
			t.Fatalf("%v, %+v, want the first event allowed and the second refused", r.Err, r.Subjects[0].Outcome)
		}
		must.Do(t, giveBack(killed, r))
		f.pass(5_100_000)
		must.Do(t, other.Sync(ctx))
		if f.refused(t) {
			t.Errorf("%s: it is still refused", name)
		}
	}
}

// TestRefusalMemory refuses more keys than are kept: the keys that are refused for longest stay.
func TestRefusalMemory(t *testing.T) {
	rules := set(t, limited("r", match.MustKey("path"), ratelimit.Sliding, 5))
	store := quiet(t, redis(t).client(t), rules, prefixed())
	store.RememberRefusal("longest", 3600e6)
	most := 0
	for i := range 250_000 {
		_, n := store.RememberRefusal(fmt.Sprintf("203.0.113.%d", i), 60e6+int64(i))
		most = max(most, n)
	}
	if most < 120_000 || most > 200_000 {
		t.Errorf("%d refusals are remembered at most, want about 160,000", most)
	}
	if known, _ := store.RememberRefusal("longest", 3600e6); !known {
		t.Error("what is refused for longest was evicted")
	}
}
