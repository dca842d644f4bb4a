package latelyredis_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/latelyredis"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// batched is the Config of a store that allows by itself.
func batched() latelyredis.Config {
	c := prefixed()
	c.Batched = true
	return c
}

// A load is nodes with Batched under random events of one key.
type load struct {
	*fleet
	limit ratelimit.Limit
	times []int64 // of the allowed events, in microseconds
	alone int     // how many of these without a round trip
}

func newLoad(t testing.TB, rnd *rand.Rand) *load {
	t.Helper()
	a := []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact}[rnd.IntN(2)]
	r := limited("r", match.MustKey("path"), a, []uint64{10, 50, 100, 128, 129, 300, 1000}[rnd.IntN(7)])
	return &load{fleet: newFleet(t, redis(t), set(t, r), batched()), limit: r.Limits[0]}
}

// bound is how much nodes allow in a window at most.
func (l *load) bound() int {
	nodes := uint64(len(l.stores))
	return int(l.limit.N + nodes*(l.limit.N/(8*nodes)))
}

// run does random things for some windows, with all nodes spoiled before each.
func (l *load) run(t testing.TB, rnd *rand.Rand, spoil func(*latelyredis.Store)) {
	t.Helper()
	span := l.limit.Span.Microseconds()
	for range 150 {
		s := l.stores[rnd.IntN(len(l.stores))]
		switch rnd.IntN(8) {
		case 0:
			s.LoseAnswers(true)
			s.Merge(context.Background())
			s.LoseAnswers(false)
		case 1, 2:
			if s.Merge(context.Background()); !s.Merge(context.Background()) { // what waited for a repeated call
				t.Fatal("allowed events are not sent")
			}
		case 3:
			l.pass(rnd.Int64N(span / 8))
			l.sync(t)
		}
		if spoil != nil {
			spoil(s)
		}
		for range rnd.Uint64N(l.limit.N/4 + 2) {
			r := one(l.rules, about(0, "k"))
			known := s.DecideKnown(r)
			if !known {
				s.Decide(context.Background(), []*latelyredis.Request{r})
			}
			switch {
			case r.Err != nil:
				t.Fatal(r.Err)
			case r.Subjects[0].Outcome.Refused:
				l.pass(rnd.Int64N(3))
			default:
				l.times = append(l.times, l.now.Load())
				if known {
					l.alone++
				}
			}
		}
	}
}

// most returns the most allowed events in a window.
func (l *load) most() (most int) {
	first := 0
	for i, at := range l.times {
		for l.times[first] <= at-l.limit.Span.Microseconds() {
			first++
		}
		most = max(most, i+1-first)
	}
	return most
}

// TestBatchedBound allows random events by three nodes with Batched, which merge at random times and lose answers: no
// window has more than the bound. Nodes that take all that is left for themselves, or whose allowed events are not counted,
// are found out.
func TestBatchedBound(t *testing.T) {
	t.Parallel()
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	alone, above := 0, 0
	for range rounds {
		l := newLoad(t, rnd)
		l.run(t, rnd, nil)
		most := l.most()
		if most > l.bound() {
			t.Fatalf("%d in a window of %+v, want %d at most", most, l.limit, l.bound())
		}
		alone += l.alone
		if most > int(l.limit.N) {
			above++
		}
	}
	if alone < rounds || above == 0 {
		t.Errorf("%d events were allowed without a round trip, and in %d of %d rounds more than the limit, want more", alone, above, rounds)
	}
	for name, spoil := range map[string]func(allows, pending, left *uint64){
		"take all that is left":      func(allows, _, left *uint64) { *allows = *left },
		"do not count what they did": func(_, pending, _ *uint64) { *pending = 0 },
	} {
		found := false
		for i := 0; i < 10*rounds && !found; i++ {
			l := newLoad(t, rnd)
			l.run(t, rnd, func(s *latelyredis.Store) { s.SpoilGrants(spoil) })
			found = l.most() > l.bound()
		}
		if !found {
			t.Errorf("nodes that %s are not found out", name)
		}
	}
}

// A contest is nodes with Batched whose goroutines take from one limit as fast as they can, until it is
// used up.
type contest struct {
	n              uint64 // the limit, of a day
	rules          *ratelimit.Set
	stores         []*latelyredis.Store
	upTo           atomic.Int64 // goroutines wait after this many were allowed
	allowed, alone atomic.Int64
}

// newContest makes a node of each client.
func newContest(t testing.TB, config latelyredis.Config, n uint64, clients ...rueidis.Client) *contest {
	t.Helper()
	c := &contest{n: n, rules: set(t, lasting(24*time.Hour, limited("r", match.MustKey("path"), ratelimit.Sliding, n)))}
	c.upTo.Store(math.MaxInt64)
	for _, client := range clients {
		c.stores = append(c.stores, newStore(t, client, c.rules, config))
	}
	allKnown(t, c.stores)
	return c
}

// run returns when the limit is used up, and complains if more or less than the bound was allowed.
func (c *contest) run(t testing.TB) {
	nodes := len(c.stores)
	var all sync.WaitGroup
	for i := range 4 * nodes {
		all.Go(func() {
			for store := c.stores[i%nodes]; ; {
				for c.allowed.Load() >= c.upTo.Load() {
					time.Sleep(time.Millisecond)
				}
				r := one(c.rules, about(0, "k"))
				if store.DecideKnown(r) {
					c.alone.Add(1)
				} else if store.Decide(context.Background(), []*latelyredis.Request{r}); r.Err != nil {
					continue // slow, or away for a moment
				}
				if r.Subjects[0].Outcome.Refused {
					return
				}
				c.allowed.Add(1)
			}
		})
	}
	all.Wait()
	bound := c.n + uint64(nodes)*(c.n/uint64(8*nodes))
	if a := uint64(c.allowed.Load()); a < c.n || a > bound || c.alone.Load() < int64(c.n)/4 {
		t.Errorf("%d were allowed, %d of them without a round trip, want %d to %d, many of them without", a, c.alone.Load(), c.n, bound)
	}
}

// TestBatchedLoad has goroutines of three nodes take from one limit as fast as they can, with all that
// runs in the background: they allow the limit, and no more than the bound. Then Redis has counted all.
func TestBatchedLoad(t *testing.T) {
	s, config := redis(t), batched()
	c := newContest(t, config, 20_000, s.client(t), s.client(t), s.client(t))
	c.run(t)
	stores, rules := c.stores, c.rules
	another := func(s *latelyredis.Store) bool {
		return s.DecideKnown(one(rules, about(0, "another")))
	}
	ask(t, stores[0], rules, about(0, "another"))
	if !another(stores[0]) {
		t.Error("another key is not granted")
	}
	for _, store := range stores {
		store.Close()
	}
	if another(stores[0]) {
		t.Error("a store allows by itself after Close")
	}
	late := quiet(t, s.client(t), rules, config)
	o := ask(t, late, rules, about(0, "k"))[0].Outcome
	if !o.Refused {
		t.Errorf("%+v after all was sent, want it refused", o)
	}
}

// TestBatchedOnce loses answers: the message is sent again, and counted once. Units given back before are not counted, and
// later ones are given back.
func TestBatchedOnce(t *testing.T) {
	r := limited("r", match.MustKey("path"), ratelimit.Exact, 1000)
	config := batched()
	f := newFleet(t, redis(t), set(t, r), config)
	s, ctx := f.stores[0], context.Background()
	config.Batched = false
	exact := storeAt(t, redis(t).client(t), f.rules, config, &f.now)
	left := func() uint64 { return ask(t, exact, f.rules, about(0, "k"))[0].Outcome.Remaining }
	take := func() *latelyredis.Request {
		t.Helper()
		r := &latelyredis.Request{Set: f.rules, Cost: 3, Subjects: []latelyredis.Subject{about(0, "k")}}
		if !s.DecideKnown(r) {
			t.Fatal("the node does not allow by itself")
		}
		return r
	}
	settle := func(r *latelyredis.Request, actual uint64) {
		t.Helper()
		must.Do(t, s.Settle(ctx, &latelyredis.Settlement{Set: f.rules, At: r.Now, Charged: 3, Actual: actual, Subjects: r.Subjects}))
	}
	ask(t, s, f.rules, about(0, "k"))
	want := left() - 1 // each look at it takes one
	take()
	settled := take()
	settle(take(), 0)
	s.LoseAnswers(true)
	if s.Merge(ctx) {
		t.Error("a lost answer was not noticed")
	}
	take() // while the others are sent again
	s.LoseAnswers(false)
	s.Merge(ctx)
	s.Merge(ctx)
	if got := left(); got != want-9 {
		t.Errorf("%d left, want %d: three were allowed, and one of these was sent twice", got, want-9)
	}
	settle(settled, 1)
	if got := left(); got != want-1-7 {
		t.Errorf("%d left after 2 were given back, want %d", got, want-8)
	}
	over := take()
	settle(over, 10)
	s.Merge(ctx)
	if got := left(); got != want-2-7-10 {
		t.Errorf("%d left after 7 more were charged, want %d", got, want-19)
	}
	if n := testing.AllocsPerRun(10, func() { s.DecideKnown(over) }); n > 1 {
		t.Errorf("%v allocations for an allowed event", n)
	}
	take()
	must.Do(t, s.Adjust(ctx, &latelyredis.Adjustment{Change: latelyredis.Reset, Set: f.rules, Key: []byte("k")}))
	s.Merge(ctx)
	if got := left(); got != 999 {
		t.Errorf("%d left after a reset, want 999", got)
	}
}

// TestBatchedLate has a message of a node arrive once more, after a later message: it is counted once.
func TestBatchedLate(t *testing.T) {
	f := newFleet(t, redis(t), set(t, limited("r", match.MustKey("path"), ratelimit.Exact, 1000)), batched())
	s, ctx := f.stores[0], context.Background()
	ask(t, s, f.rules, about(0, "k"))
	again := s.KeepSent()
	for range 2 {
		if !s.DecideKnown(&latelyredis.Request{Set: f.rules, Cost: 3, Subjects: []latelyredis.Subject{about(0, "k")}}) {
			t.Fatal("the node does not allow by itself")
		}
		if !s.Merge(ctx) {
			t.Fatal("the charges that it has allowed were not sent")
		}
	}
	if late := again(ctx)[0]; late.Err != nil {
		t.Fatal(late.Err)
	}
	if got := ask(t, f.stores[1], f.rules, about(0, "k"))[0].Outcome.Remaining; got != 1000-1-6-1 {
		t.Errorf("%d left, want 992: eight were taken", got)
	}
}

// TestBatchedUnanswered has a node that gets no answers while it allows and sends one event after the other: it allows no
// more than it was granted, an eighth of what was left.
func TestBatchedUnanswered(t *testing.T) {
	f := newFleet(t, redis(t), set(t, limited("r", match.MustKey("path"), ratelimit.Exact, 1000)), batched())
	s := f.stores[0]
	ask(t, s, f.rules, about(0, "k"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nothing is answered
	n := 0
	for n < 1000 && s.DecideKnown(one(f.rules, about(0, "k"))) {
		n++
		s.Merge(ctx)
	}
	if most := 999 / 8; n < 1 || n > most {
		t.Errorf("%d were allowed, want 1 to %d", n, most)
	}
}

// TestBatchedRules has rules for which Redis decides about each event, or for which it must not be called when another rule
// of the event already refuses.
func TestBatchedRules(t *testing.T) {
	path := match.MustKey("path")
	plain := limited("plain", path, ratelimit.Sliding, 1000)
	hits := limited("other", path, ratelimit.GCRA, 1000)
	hits.Ban = &ratelimit.Ban{After: 1000, Span: time.Minute, For: time.Minute}
	refusals := hits
	refusals.Ban = &ratelimit.Ban{After: 1000, Of: ratelimit.Refusals, Span: time.Minute, For: time.Minute}
	for name, c := range map[string]struct {
		rule  ratelimit.Rule
		alone bool
	}{
		"two limits":           {limited("other", path, ratelimit.GCRA, 1000), true},
		"few left":             {limited("other", path, ratelimit.GCRA, 20), false},
		"a ban after hits":     {hits, false},
		"a ban after refusals": {refusals, true},
		"in flight":            {limited("other", path, ratelimit.InFlight, 1000), false},
		"a leaky bucket":       {limited("other", path, ratelimit.LeakyBucket, 1000), false},
	} {
		f := newFleet(t, redis(t), set(t, plain, c.rule), batched())
		ask(t, f.stores[0], f.rules, about(0, "k"), about(1, "k"))
		r := one(f.rules, about(0, "k"), about(1, "k"))
		if got := f.stores[0].DecideKnown(r); got != c.alone {
			t.Errorf("%s: allowed without a round trip: %v", name, got)
		}
		if o := r.Subjects[0].Outcome; c.alone && (!o.Charged || o.Limit != 1000 || o.Remaining != 998 || o.ResetAfter <= 0) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestMergesTogether allows events of many keys and sends them to Redis: a script receives several keys, and counts each
// once, also if the answers are lost.
func TestMergesTogether(t *testing.T) {
	s := redis(t)
	p := s.Watch(t)
	rules, config := set(t, limited("r", match.MustKey("path"), ratelimit.Sliding, 8000)), batched()
	now := clockAt(time.Now())
	store := knowing(t, p.Client(t), rules, config, now, now)
	must.Do(t, store.Sync(t.Context()))
	const keys, allowed = 64, 5
	request := func(i int) *latelyredis.Request {
		return one(rules, about(0, fmt.Sprint("k", i)))
	}
	for round := range 2 {
		for i := range keys {
			if r := request(i); round == 0 {
				store.Decide(t.Context(), []*latelyredis.Request{r})
				if r.Err != nil {
					t.Fatal(r.Err)
				}
			}
			for range allowed + i%3 {
				if !store.DecideKnown(request(i)) {
					t.Fatalf("key %d is not allowed without a round trip", i)
				}
			}
		}
		if store.LoseAnswers(round == 1); round == 1 {
			if store.Merge(t.Context()) {
				t.Error("a merge whose answers were lost was answered")
			}
			store.LoseAnswers(false)
		}
		before := p.Scripts()
		if !store.Merge(t.Context()) {
			t.Fatal("the merge was not answered")
		}
		if n := p.Scripts() - before; n > 2*keys/8 { // twice if the script is new to Redis
			t.Errorf("a merge of %d keys takes %d scripts, want %d", keys, n, keys/8)
		}
	}
	for i := range keys {
		r := request(i)
		if r.Peek = true; !store.DecideKnown(r) {
			store.Decide(t.Context(), []*latelyredis.Request{r})
		}
		if got, want := r.Subjects[0].Outcome.Remaining, uint64(8000-1-2*(allowed+i%3)-1); got != want || r.Err != nil {
			t.Errorf("key %d: %d remain, %v, want %d", i, got, r.Err, want)
		}
	}
}

// TestNodesAtLeast has a store count the number of nodes in the Config before it has heard of any, and more when it has.
func TestNodesAtLeast(t *testing.T) {
	rules, client, config := anyRules(t), redis(t).client(t), prefixed()
	config.Nodes = 2
	now := clockAt(time.Now())
	for heard := range 4 {
		store := knowing(t, client, rules, config, now, now)
		if n := store.Nodes(); n != 2 {
			t.Errorf("%d nodes before any was heard of, want 2", n)
		}
		must.Do(t, store.Sync(t.Context()))
		if n := store.Nodes(); n != max(heard+1, 2) {
			t.Errorf("%d nodes when %d were heard of", n, heard+1)
		}
	}
	if _, err := latelyredis.NewQuiet(client, rules, latelyredis.Config{Nodes: -1}); err == nil {
		t.Error("-1 nodes were accepted")
	}
}
