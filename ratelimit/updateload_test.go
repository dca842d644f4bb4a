package ratelimit_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// The events allowed while rules changed, from several goroutines and with a clock that goes on, are checked afterwards.
// Each was judged between two known times and under one of a few rules.

// An allowedEvent is one of these events.
type allowedEvent struct {
	from, to   int64 // it was judged between these times
	first, may int   // by one of the rules first ... may, by their numbers
}

// A regime is one rule after another under load.
type regime struct {
	t       testing.TB
	family  *family
	limiter *ratelimit.Limiter
	rules   []ratelimit.Rule // in the order in which they held

	clock       atomic.Int64
	begun, done atomic.Int64 // the number of the newest rule: its Update was called, has returned

	mu     sync.Mutex
	events [regimeKeys][]allowedEvent
	broken []string // sentences

	taken  atomic.Uint64
	banned [regimeKeys]atomic.Int64 // the latest end of a ban that any caller received
	inBan  atomic.Uint64            // events refused by a ban
}

const (
	regimeKeys       = 5
	regimeGoroutines = 3
)

// A family is algorithms that a rule changes between.
type family struct {
	name       string
	algorithms []ratelimit.Algorithm
	forgets    bool // some drop events that are still in a window of the others
}

var families = []family{
	{"true windows", []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact}, false},
	{"windows", []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact, ratelimit.TwoBucket}, false},
	{"buckets", []ratelimit.Algorithm{ratelimit.GCRA, ratelimit.LeakyBucket}, false},
	{"fixed", []ratelimit.Algorithm{ratelimit.Fixed}, false},
	{"calendar", []ratelimit.Algorithm{ratelimit.Calendar}, false},
	{"in-flight", []ratelimit.Algorithm{ratelimit.InFlight}, false},
	{"any", notInFlight(), true},
}

// rule returns a member of the family: a limit, at times much above or below the
// others', its window, and perhaps a ban after hits or refusals.
func (f *family) rule(t testing.TB, rnd *rand.Rand) ratelimit.Rule {
	l := per(1+rnd.Uint64N(1<<(1+rnd.IntN(8))), []time.Duration{20 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond, 64 * time.Millisecond}[rnd.IntN(4)])
	r := limitRule(t, "r")
	switch r.Algorithm = f.algorithms[rnd.IntN(len(f.algorithms))]; r.Algorithm {
	case ratelimit.Calendar:
		l.Span, l.Per = 0, ratelimit.PerSecond+ratelimit.Period(rnd.IntN(2))
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		l.Burst = rnd.Uint64N(2 * l.N)
	}
	r.Limits = []ratelimit.Limit{l}
	if rnd.IntN(2) == 0 {
		r.Ban = &ratelimit.Ban{
			After: 10 + rnd.Uint64N(60), Of: ratelimit.Cause(rnd.IntN(2)), Span: time.Duration(1+rnd.IntN(30)) * time.Millisecond,
			For: time.Duration(1+rnd.IntN(30)) * time.Millisecond,
		}
	}
	return r
}

// newRegime returns one that begins with a rule of f, over such a store.
func newRegime(t testing.TB, rnd *rand.Rand, f *family, open func(m *ratelimit.Memory) ratelimit.Store) *regime {
	g := &regime{t: t, family: f, rules: []ratelimit.Rule{f.rule(t, rnd)}}
	set := mustSet(t, g.rules...)
	m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Budget: 4 << 20, Bans: 1000}))(t)
	g.limiter = ratelimit.Over(set, open(m))
	g.clock.Store(1_700_000_000e9)
	return g
}

// take takes until stop, at a pace that uses up most limits.
func (g *regime) take(rnd *rand.Rand, stop *atomic.Bool) {
	var mine [regimeKeys][]allowedEvent
	for !stop.Load() {
		key := rnd.IntN(regimeKeys)
		first := int(g.done.Load())
		ban := g.banned[key].Load()
		from := g.clock.Load()
		if rnd.IntN(16) == 0 {
			from = g.clock.Add(rnd.Int64N(int64(time.Millisecond)))
		}
		var d ratelimit.Decision
		if at := time.Unix(0, from); rnd.IntN(4) > 0 {
			d = takeKeyN(g.limiter, at, regimeKey(key), 1)
		} else {
			d, _ = g.limiter.Judge(at, keyEvent(g.limiter, regimeKey(key)), 1, nil)
		}
		to, may := g.clock.Load(), int(g.begun.Load())
		g.taken.Add(1)
		switch {
		case d.Allowed && to < ban:
			g.found("key %d is allowed at %d, in a ban until %d", key, from, ban)
		case d.Allowed:
			mine[key] = append(mine[key], allowedEvent{from, to, first, may})
		case !d.BannedUntil.IsZero():
			g.inBan.Add(1)
			raise(&g.banned[key], d.BannedUntil.UnixNano())
		}
		if rnd.IntN(8) == 0 {
			runtime.Gosched()
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for key := range mine {
		g.events[key] = append(g.events[key], mine[key]...)
	}
}

func regimeKey(key int) string {
	return []string{"a", "b", "c", "d", "a key of more than fifteen bytes"}[key]
}

func raise(a *atomic.Int64, to int64) {
	for was := a.Load(); was < to && !a.CompareAndSwap(was, to); {
		was = a.Load()
	}
}

func (g *regime) found(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.broken) < 5 {
		g.broken = append(g.broken, fmt.Sprintf(format, args...))
	}
}

// govern changes the rule a number of times while goroutines take.
func (g *regime) govern(rnd *rand.Rand, f *family, changes int) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range regimeGoroutines {
		mine := rand.New(rand.NewPCG(rnd.Uint64(), 1))
		wg.Go(func() { g.take(mine, &stop) })
	}
	for range changes {
		next := f.rule(g.t, rnd)
		if was := g.rules[len(g.rules)-1]; rnd.IntN(3) > 0 && (!f.forgets || next.Algorithm == was.Algorithm) { // only a part of it
			switch rnd.IntN(3) {
			case 0:
				next.Algorithm, next.Limits = was.Algorithm, was.Limits
			case 1:
				next.Limits[0].Span, next.Limits[0].Per, next.Ban = was.Limits[0].Span, was.Limits[0].Per, was.Ban
			case 2:
				next.Limits[0].N, next.Limits[0].Burst, next.Ban = was.Limits[0].N, was.Limits[0].Burst, was.Ban
				if was.Limits[0].Burst != 0 {
					next.Algorithm = was.Algorithm
				}
			}
		}
		g.rules = append(g.rules, next)
		g.begun.Add(1)
		if err := g.limiter.Update(mustSet(g.t, next)); err != nil {
			g.t.Error(err)
			break
		}
		g.done.Add(1)
		until := g.taken.Load() + rnd.Uint64N(1<<rnd.IntN(10))
		for g.taken.Load() < until {
			runtime.Gosched()
		}
	}
	stop.Store(true)
	wg.Wait()
}

// A bound is what rules, one after the other, may allow: in any window of span, the shortest of their spans, as much as the
// largest rule does at worst alone, by docs/dev/proofs.md; for buckets also in any shorter time. For a family that drops
// counts, see overChange.
type bound struct {
	first, last int // of the rules
	span        time.Duration
	most        uint64
	burst       uint64  // for buckets, the largest burst; 0 for others
	rate        float64 // for buckets, the fastest rate per nanosecond
}

// bound returns the bound for the rules first ... last.
func (g *regime) bound(first, last int) bound {
	b := bound{first: first, last: last, span: g.rules[first].Limits[0].Window()}
	more := uint64(0)
	for i := range g.rules[first : last+1] {
		r := &g.rules[first+i]
		l := r.Limits[0]
		b.span = min(b.span, l.Window())
		b.most = max(b.most, l.N)
		switch r.Algorithm {
		case ratelimit.TwoBucket, ratelimit.Fixed, ratelimit.Calendar:
			more = max(more, l.N)
		case ratelimit.GCRA, ratelimit.LeakyBucket:
			burst := cmp.Or(l.Burst, l.N)
			more, b.burst = max(more, burst), max(b.burst, burst)
			b.rate = max(b.rate, float64(l.N)/float64(l.Span))
		}
	}
	b.most += more
	if g.family.forgets && last == first+1 {
		b.most, b.burst = overChange(&g.rules[first], &g.rules[last], b.most), 0
	}
	return b
}

// overChange returns how much is allowed at worst over a change of was to is, by
// docs/dev/proofs.md, where most is it if both are windows.
func overChange(was, is *ratelimit.Rule, most uint64) uint64 {
	windows := families[1].algorithms
	before, after := was.Limits[0].MaxAllowed(was.Algorithm), is.Limits[0].MaxAllowed(is.Algorithm)
	switch {
	case was.Algorithm == is.Algorithm, slices.Contains(windows, was.Algorithm) && slices.Contains(windows, is.Algorithm):
		return most
	case !slices.Contains(windows, was.Algorithm):
		return before + after
	case is.Algorithm == ratelimit.Fixed, is.Algorithm == ratelimit.Calendar:
		return max(before, is.Limits[0].N) + is.Limits[0].N
	}
	return max(before, after)
}

// allows reports whether n may be allowed within a time that was no longer than
// elapsed.
func (b *bound) allows(n uint64, elapsed int64) bool {
	return n <= b.most && (b.burst == 0 || n <= b.burst+uint64(b.rate*float64(elapsed)+1e-6))
}

// check returns a sentence for a key that was allowed too much. It looks at the windows that begin with an event, and
// counts the events that were certainly judged in them.
func (g *regime) check() (broken []string) {
	for key := range g.events {
		events := g.events[key]
		slices.SortFunc(events, func(a, b allowedEvent) int { return cmp.Compare(a.from, b.from) })
		for i := range events {
			if s := g.checkFrom(events[i:]); s != "" {
				broken = append(broken, fmt.Sprintf("key %d: %s", key, s))
				break
			}
		}
	}
	return append(broken, g.broken...)
}

// checkFrom checks the window that begins with the first of events.
func (g *regime) checkFrom(events []allowedEvent) string {
	begin := events[0].from
	b := g.bound(events[0].first, events[0].may)
	n, latest := uint64(0), begin
	for i := 0; i < len(events) && events[i].from < begin+int64(b.span); i++ {
		e := &events[i]
		was := b.span
		if e.first < b.first || e.may > b.last {
			b = g.bound(min(b.first, e.first), max(b.last, e.may))
		}
		if (b.burst != 0 || g.family.forgets) && b.last > b.first+1 {
			return "" // see TestConcurrentUpdateUnderLoad
		}
		if b.span < was { // count again
			n = 0
			for _, e := range events[:i] {
				n += within(e.to, begin+int64(b.span))
			}
		}
		latest = max(latest, e.to)
		if n += within(e.to, begin+int64(b.span)); !b.allows(n, latest-begin) {
			return fmt.Sprintf("%d are allowed in %v from %d on, too many for the rules %d to %d: %+v, %+v",
				n, time.Duration(latest-begin), begin, b.first, b.last, b, g.rules[b.first:b.last+1])
		}
	}
	return ""
}

func within(t, end int64) uint64 {
	if t < end {
		return 1
	}
	return 0
}

// TestConcurrentUpdateUnderLoad changes limit, window, algorithm and ban 1,000 times while goroutines take (20,000 times
// for each family of algorithms in the long form): no window has more than the larger of the old limit and the new allows
// at worst, or than both if the algorithm is any, and no ban ends early.
//
// For buckets, and for any algorithm, this is checked over one change at a time: a level above twice the burst of a bucket,
// or burst and N, is cut off, so that a bucket which is lowered far and raised again at once has lost a part of its level.
func TestConcurrentUpdateUnderLoad(t *testing.T) {
	regimes, changes := 1, 200
	if longForm() {
		regimes, changes = 20, 1000
	}
	for i := range families {
		f := &families[i]
		t.Run(f.name, func(t *testing.T) {
			rnd := randtest.New(t)
			taken, allowed, inBan := uint64(0), uint64(0), uint64(0)
			for range regimes {
				g := newRegime(t, rnd, f, itself)
				g.govern(rnd, f, changes)
				for _, s := range g.check() {
					t.Fatal(s)
				}
				taken, inBan = taken+g.taken.Load(), inBan+g.inBan.Load()
				for _, events := range g.events {
					allowed += uint64(len(events))
				}
			}
			if allowed == 0 || inBan == 0 || allowed+inBan >= taken {
				t.Errorf("%d taken, %d allowed, %d in bans: the test has no teeth", taken, allowed, inBan)
			}
			t.Logf("%d changes, %d taken, %d allowed, %d refused by bans: none over", regimes*changes, taken, allowed, inBan)
		})
	}
}

// TestConcurrentLossyUpdateIsDetected does the same with a store that counts from nothing after each change: it allows too
// much in every family, and ends bans early.
func TestConcurrentLossyUpdateIsDetected(t *testing.T) {
	rnd := randtest.New(t)
	for i := range families {
		f := &families[i]
		counts, bans := false, false
		for try := 0; try < 10 && !(counts && bans); try++ {
			g := newRegime(t, rnd, f, newForgetting)
			g.govern(rnd, f, 200)
			bans = bans || len(g.broken) > 0
			g.broken = nil
			counts = counts || len(g.check()) > 0
		}
		if !counts || !bans {
			t.Errorf("%s: that a store forgets is noticed by counts: %v, by bans: %v", f.name, counts, bans)
		}
	}
}
