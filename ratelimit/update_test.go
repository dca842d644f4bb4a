package ratelimit_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/ratelimit"
)

// A change of rules under load is checked in steps: within a step the clock stands still, several goroutines take, and now
// and then the rules change. So the time of each allowed event is known.

// liveRules is such a run over one rule.
type liveRules struct {
	t       testing.TB
	rnd     *rand.Rand
	limiter *ratelimit.Limiter
	current liveRule
	some    func(rnd *rand.Rand) liveRule

	step     int
	now      int64
	keys     [liveKeys]liveKey
	taken    uint64 // events in all
	broken   []string
	changes  int
	refusals atomic.Uint64
}

const (
	liveKeys       = 4
	liveGoroutines = 4
)

// A liveRule is a limit, and perhaps a ban after refusals.
type liveRule struct {
	algorithm ratelimit.Algorithm
	limit     ratelimit.Limit
	ban       *ratelimit.Ban
}

// liveKey has the allowed events of a key.
type liveKey struct {
	events windowtest.Charges
	known  int64 // the current rule has no events at or before this time
	banned bool
}

func (r liveRule) rule(t testing.TB) ratelimit.Rule {
	rule := limitRule(t, "r", r.limit)
	rule.Algorithm, rule.Ban = r.algorithm, r.ban
	return rule
}

// run makes changes, and stores in broken what differs from the documentation.
func (l *liveRules) run(changes int) {
	for ; l.changes < changes && len(l.broken) == 0; l.step++ {
		inForce := l.next()
		all := append([]liveRule{l.current}, inForce...) // that judge each event of this step in turn
		allowed := l.hammer(inForce)
		for i := range l.keys {
			k := &l.keys[i]
			if len(inForce) > 0 {
				// Events older than a rule's span are not carried through it.
				shortest := slices.MinFunc(all, func(a, b liveRule) int { return cmp.Compare(a.limit.Span, b.limit.Span) })
				k.known = max(k.known, l.now-int64(shortest.limit.Span))
			}
			if n := allowed[i]; n > 0 {
				k.events.Add(l.now, n)
				l.check(i, k.known, all)
			}
		}
		if n := len(inForce); n > 0 {
			l.current = inForce[n-1]
		}
		for i := range l.keys {
			l.full(i, inForce)
		}
		l.now += l.rnd.Int64N(int64(300 * time.Millisecond))
	}
}

// next returns up to two rules to come.
func (l *liveRules) next() (rules []liveRule) {
	takeKeyN(l.limiter, time.Unix(0, l.now), "another key", 1) // so that the time is known
	l.taken++
	for range l.rnd.IntN(3) {
		rules = append(rules, l.some(l.rnd))
	}
	return rules
}

// hammer takes from several goroutines while the rules change to each of inForce. It returns how many were allowed for each
// key.
func (l *liveRules) hammer(inForce []liveRule) (allowed [liveKeys]uint64) {
	var counts [liveKeys]atomic.Uint64
	var banned [liveKeys]atomic.Bool
	var taken atomic.Uint64
	at := time.Unix(0, l.now)
	var wg sync.WaitGroup
	for range liveGoroutines {
		mine := rand.New(rand.NewPCG(l.rnd.Uint64(), 1))
		wg.Go(func() {
			for range 20 {
				key := mine.IntN(liveKeys)
				d := takeKeyN(l.limiter, at, fmt.Sprint("k", key), 1)
				if taken.Add(1); d.Allowed {
					counts[key].Add(1)
				} else {
					l.refusals.Add(1)
				}
				if !d.BannedUntil.IsZero() {
					banned[key].Store(true)
				}
				if mine.IntN(4) == 0 {
					runtime.Gosched()
				}
			}
		})
	}
	for _, r := range inForce {
		must.Do(l.t, l.limiter.Update(mustSet(l.t, r.rule(l.t))))
		l.changes++
		runtime.Gosched()
	}
	wg.Wait()
	l.taken += taken.Load()
	for i := range allowed {
		allowed[i] = counts[i].Load()
		l.keys[i].banned = banned[i].Load()
	}
	return allowed
}

// check requires that one of the rules allows the events that were allowed after known.
func (l *liveRules) check(key int, known int64, rules []liveRule) {
	said := ""
	for _, r := range rules {
		n := l.keys[key].events.In(l.now, min(int64(r.limit.Span), l.now-known))
		if n <= r.limit.N {
			return
		}
		said += fmt.Sprintf("\n%v %v: %d allowed in the window", r.algorithm, r.limit, n)
	}
	l.broken = append(l.broken, fmt.Sprintf("step %d, after %d changes, key %d is over each of the limits in force: %s", l.step, l.changes, key, said))
}

// full requires that a key which is still refused something has used its limit: exactly what was counted is carried. It is
// for steps without a change, under algorithms that store times; slack is how much later than the event a carried slot may
// place it.
func (l *liveRules) full(key int, inForce []liveRule) {
	k, r := &l.keys[key], l.current
	if len(inForce) > 0 || k.banned || r.limit.N > 128 && r.algorithm != ratelimit.Exact {
		return
	}
	d := peekKeyN(l.limiter, time.Unix(0, l.now), fmt.Sprint("k", key), 1)
	const slack = int64(500 * time.Millisecond)
	if used := k.events.In(l.now, int64(r.limit.Span)+slack); !d.Allowed && d.BannedUntil.IsZero() && used < r.limit.N {
		l.broken = append(l.broken, fmt.Sprintf("step %d, after %d changes, key %d is refused by %v %v, and has used %d: %+v",
			l.step, l.changes, key, r.algorithm, r.limit, used, d))
	}
}

// someLogRule returns a rule that never allows more than N in any true window.
func someLogRule(rnd *rand.Rand) liveRule {
	r := liveRule{algorithm: ratelimit.Algorithm(rnd.IntN(2)), limit: per(1+rnd.Uint64N(40), time.Duration(1+rnd.IntN(5))*time.Second)}
	if rnd.IntN(3) == 0 {
		r.limit.N += rnd.Uint64N(200) // sliding by slots
	}
	if rnd.IntN(3) == 0 {
		r.ban = &ratelimit.Ban{
			After: 20 + rnd.Uint64N(60), Of: ratelimit.Refusals, Span: time.Duration(1+rnd.IntN(2)) * time.Second,
			For: time.Duration(1+rnd.IntN(500)) * time.Millisecond,
		}
	}
	return r
}

// liveOver returns a run over a limiter with that store.
func liveOver(t testing.TB, some func(rnd *rand.Rand) liveRule, open func(m *ratelimit.Memory) ratelimit.Store) *liveRules {
	l := &liveRules{t: t, rnd: randtest.New(t), some: some, now: 1_700_000_000e9}
	l.current = some(l.rnd)
	set := mustSet(t, l.current.rule(t))
	m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Budget: 4 << 20, Bans: 1000}))(t)
	l.limiter = ratelimit.Over(set, open(m))
	return l
}

func liveChanges() int {
	switch {
	case longForm():
		return 30_000
	case testing.Short():
		return 300
	}
	return 1000
}

// TestConcurrentLiveRules changes limit, window, algorithm and ban 1,000 times under load: no window allows more than a
// rule in force allows, where Limiter.Update documents that its counts are carried; no one is refused without having used
// the limit; and each event gets one answer.
func TestConcurrentLiveRules(t *testing.T) {
	l := liveOver(t, someLogRule, itself)
	l.run(liveChanges())
	for _, sentence := range l.broken {
		t.Error(sentence)
	}
	s := l.limiter.Stats().Rules[0]
	if answers := s.Allowed + s.Refused + s.Banned; answers != l.taken {
		t.Errorf("%d events were taken, and %d answers counted", l.taken, answers)
	}
	if l.refusals.Load() == 0 || l.refusals.Load() == l.taken {
		t.Errorf("%d of %d refused: the test has no teeth", l.refusals.Load(), l.taken)
	}
}

// TestConcurrentLiveLimit changes only N, up and down, within one window: a limit that was lowered and raised again still
// has all its counts.
func TestConcurrentLiveLimit(t *testing.T) {
	some := func(rnd *rand.Rand) liveRule {
		return liveRule{algorithm: ratelimit.Algorithm(rnd.IntN(2)), limit: per(1+rnd.Uint64N(200), 5*time.Second)}
	}
	l := liveOver(t, some, itself)
	l.run(liveChanges())
	for _, sentence := range l.broken {
		t.Error(sentence)
	}
}

// TestConcurrentLiveAlgorithms changes to any algorithm under load: each event gets one answer, and no one waits forever.
func TestConcurrentLiveAlgorithms(t *testing.T) {
	some := func(rnd *rand.Rand) liveRule {
		r := someLogRule(rnd)
		if r.algorithm = ratelimit.Algorithm(rnd.IntN(len(limit.Algorithms()))); r.algorithm == ratelimit.Calendar {
			r.limit = ratelimit.Limit{N: r.limit.N, Per: ratelimit.PerMinute}
		}
		return r
	}
	l := liveOver(t, some, itself)
	for l.changes < liveChanges() {
		l.hammer(l.next())
		l.now += l.rnd.Int64N(int64(300 * time.Millisecond))
	}
	s := l.limiter.Stats().Rules[0]
	if answers := s.Allowed + s.Refused + s.Banned; answers != l.taken {
		t.Errorf("%d events were taken, and %d answers counted", l.taken, answers)
	}
}

// forgetting is a broken store: a changed rule begins with nothing counted.
type forgetting struct {
	atomic.Pointer[ratelimit.Memory]
}

func newForgetting(m *ratelimit.Memory) ratelimit.Store {
	f := &forgetting{}
	f.Store(m)
	return forgettingStore{m, f}
}

// forgettingStore is the Store of a forgetting.
type forgettingStore struct {
	*ratelimit.Memory // for the verbs of bans
	now               *forgetting
}

func (f forgettingStore) Decide(ctx context.Context, batch []*ratelimit.Request) {
	f.now.Load().Decide(ctx, batch)
}

func (f forgettingStore) Settle(ctx context.Context, s *ratelimit.Settlement) error {
	return f.now.Load().Settle(ctx, s)
}

func (f forgettingStore) Adjust(ctx context.Context, a *ratelimit.Adjustment) error {
	return f.now.Load().Adjust(ctx, a)
}

func (f forgettingStore) Update(_ context.Context, set *ratelimit.Set, published func()) error {
	fresh, err := ratelimit.NewMemory(set, ratelimit.Config{Budget: 4 << 20, Bans: 1000})
	if err != nil {
		return err
	}
	f.now.Store(fresh)
	published()
	return nil
}

// TestConcurrentEvictionIsDetected runs the tests of live rules over a store that drops counts.
func TestConcurrentEvictionIsDetected(t *testing.T) {
	l := liveOver(t, someLogRule, newForgetting)
	l.run(1000)
	if len(l.broken) == 0 {
		t.Error("a store that forgets at an update is not caught")
	}
}
