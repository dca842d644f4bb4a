package ratelimit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// A flawed judge is a limiter but for one flaw, which others have had.
type flawed struct {
	limiterJudge
	answers map[string]*staleAnswer
	last    map[string]int64
	rings   map[string]map[int64]uint64
	flaw    func(f *flawed, t int64, key string, cost uint64) ratelimit.Decision
}

// A staleAnswer is the remaining number of a key some events ago.
type staleAnswer struct {
	left uint64
	uses int
}

func (f *flawed) take(t int64, key string, cost uint64) ratelimit.Decision {
	return f.flaw(f, t, key, cost)
}

func (f *flawed) reserve(t int64, key string, cost uint64) (ratelimit.Decision, func(int64)) {
	return f.take(t, key, cost), nil
}

// sound has no flaw.
func (f *flawed) sound(t int64, key string, cost uint64) ratelimit.Decision {
	return f.limiterJudge.take(t, key, cost)
}

// chargesLate decides by the remaining number two events ago and charges then: a check and an add with other events in
// between.
func (f *flawed) chargesLate(t int64, key string, cost uint64) ratelimit.Decision {
	s := f.answers[key]
	if s == nil || s.uses == 2 {
		s = &staleAnswer{left: f.peek(t, key, 0).Remaining}
		f.answers[key] = s
	}
	s.uses++
	f.sound(t, key, cost)
	return ratelimit.Decision{Allowed: cost <= s.left, Remaining: s.left}
}

// beginsAnew evicts a key when its clock is set back.
func (f *flawed) beginsAnew(t int64, key string, cost uint64) ratelimit.Decision {
	if t < f.last[key] {
		resetKey(f.Limiter, key)
	}
	f.last[key] = t
	return f.sound(t, key, cost)
}

// forgetsIdle evicts a key that had no event for half a window.
func (f *flawed) forgetsIdle(t int64, key string, cost uint64) ratelimit.Decision {
	if t-f.last[key] > int64(flawedLimit.Span)/2 {
		resetKey(f.Limiter, key)
	}
	f.last[key] = t
	return f.sound(t, key, cost)
}

// forgetsOldest is a ring of 60 slots, including the current one: the oldest is dropped when it begins to leave the window.
func (f *flawed) forgetsOldest(t int64, key string, cost uint64) ratelimit.Decision {
	ring := f.rings[key]
	if ring == nil {
		ring = make(map[int64]uint64)
		f.rings[key] = ring
	}
	t = max(t, f.last[key])
	f.last[key] = t
	slot, n := t/slotWidth(flawedLimit.Span), uint64(0)
	for k, count := range ring {
		if k <= slot-60 {
			delete(ring, k)
			continue
		}
		n += count
	}
	d := ratelimit.Decision{Allowed: n+cost <= flawedLimit.N, Remaining: flawedLimit.N - min(n, flawedLimit.N)}
	if d.Allowed {
		ring[slot] += cost
	}
	return d
}

// tooStrict refuses what needs all that is left.
func (f *flawed) tooStrict(t int64, key string, cost uint64) ratelimit.Decision {
	if cost > 0 && f.peek(t, key, 0).Remaining <= cost {
		f.sound(t, key, 0) // the window moves on
		return ratelimit.Decision{}
	}
	return f.sound(t, key, cost)
}

var flawedLimit = per(100, time.Second)

// TestConcurrentFlawsAreCaught attacks flawed judges as TestConcurrentNeverOverAsPromised attacks
// limiters, and the one without a flaw beside them.
func TestConcurrentFlawsAreCaught(t *testing.T) {
	rnd := randtest.New(t)
	for _, c := range []struct {
		name string
		flaw func(f *flawed, t int64, key string, cost uint64) ratelimit.Decision
		over bool // too much is allowed
		need bool // too much is refused
	}{
		{"none", (*flawed).sound, false, false},
		{"charges late", (*flawed).chargesLate, true, false},
		{"begins again when the clock is set back", (*flawed).beginsAnew, true, false},
		{"forgets what is idle", (*flawed).forgetsIdle, true, false},
		{"forgets the oldest slot", (*flawed).forgetsOldest, true, false},
		{"refuses the last", (*flawed).tooStrict, false, true},
	} {
		a := newAttack(0, limitRule(t, "r", flawedLimit))
		a.setBack = true
		f := &flawed{
			limiterJudge: limiterJudge{Limiter: mustLimiter(t, mustSet(t, a.rules...), ratelimit.Config{Budget: -1})},
			answers:      make(map[string]*staleAnswer), last: make(map[string]int64), rings: make(map[string]map[int64]uint64),
			flaw: c.flaw,
		}
		o := a.run(rnd, f, 10_000)
		if (o.over > 0) != c.over {
			t.Errorf("%s: %d over (%s)", c.name, o.over, o.wrong)
		}
		if (c.over || c.need) != (o.wrong != "") {
			t.Errorf("%s: found %q", c.name, o.wrong)
		}
	}
}

// TestConcurrentOtherPromisesAreCaught holds algorithms to what they do not claim.
func TestConcurrentOtherPromisesAreCaught(t *testing.T) {
	rnd := randtest.New(t)
	const s = int64(time.Second)
	for _, c := range []struct {
		algorithm ratelimit.Algorithm
		n         uint64
		claim     claim
	}{
		{ratelimit.Fixed, 5, claim{span: s, most: 5}},
		{ratelimit.TwoBucket, 100, claim{span: s, most: 100}},
		{ratelimit.GCRA, 100, claim{span: s, most: 100}},
		{ratelimit.LeakyBucket, 5, claim{span: s, most: 5}},
		{ratelimit.Exact, 5, claim{span: s + 1, most: 5}},
		{ratelimit.Sliding, 5, claim{span: s + 1, most: 5}},
		{ratelimit.Sliding, 150, claim{span: s + 2*slotWidth(time.Second), most: 150}},
		{ratelimit.Sliding, 5, claim{extent: fromFirst, span: 2 * s, most: 5}},
		{ratelimit.Calendar, 5, claim{extent: fromFirst, span: s, most: 5}},
		{ratelimit.InFlight, 4, claim{extent: fromFirst, span: 100 * s, most: 4}},
	} {
		r := limitRule(t, "r", per(c.n, time.Second))
		r.Algorithm = c.algorithm
		if c.algorithm == ratelimit.Calendar {
			r.Limits = []ratelimit.Limit{{N: c.n, Per: ratelimit.PerSecond}}
		}
		a := newAttack(0, r)
		a.claims, a.held, a.needed = []claim{c.claim}, 1, false
		j := &limiterJudge{Limiter: mustLimiter(t, mustSet(t, r), ratelimit.Config{})}
		if o := a.run(rnd, j, 20_000); o.over == 0 {
			t.Errorf("%v is not found to be over another's promise, %+v", c.algorithm, c.claim)
		}
	}
	// And twins that are not alike.
	r := limitRule(t, "r", per(129, time.Second))
	a := newAttack(0, r)
	exact := r
	exact.Algorithm = ratelimit.Exact
	tw := &twins{
		a: &limiterJudge{Limiter: mustLimiter(t, mustSet(t, r), ratelimit.Config{})},
		b: &limiterJudge{Limiter: mustLimiter(t, mustSet(t, exact), ratelimit.Config{})},
	}
	if a.run(rnd, tw, 20_000); tw.differs == "" {
		t.Error("sliding above 128 passes as exact")
	}
}

// TestWorstCasesAreReached attacks each algorithm in its worst way, and reaches the bound in docs/dev/proofs.md, which
// TestConcurrentNeverOverAsPromised never finds exceeded.
func TestWorstCasesAreReached(t *testing.T) {
	const n, burst, s = 100, 250, int64(time.Second)
	type visit struct {
		at   int64
		cost uint64
	}
	for _, c := range []struct {
		algorithm ratelimit.Algorithm
		burst     uint64
		visits    []visit // none: whenever one fits, until a span has passed
		worst     uint64
	}{
		{ratelimit.Sliding, 0, []visit{{0, n}, {s - 1, 1}, {s, n}}, n},
		{ratelimit.Exact, 0, []visit{{0, n}, {s - 1, 1}, {s, n}}, n},
		{ratelimit.InFlight, 0, []visit{{0, n}, {s - 1, 1}, {s, n}}, n},
		{ratelimit.TwoBucket, 0, []visit{{s - 1, n}, {2*s - 2, n - 1}}, 2*n - 1},
		{ratelimit.Fixed, 0, []visit{{0, 1}, {s - 1, n - 1}, {s, n}}, 2*n - 1},
		{ratelimit.Calendar, 0, []visit{{s - 1, n}, {s, n}}, 2 * n},
		{ratelimit.GCRA, 0, nil, 2*n - 1},
		{ratelimit.GCRA, 1, nil, n},
		{ratelimit.GCRA, burst, nil, n + burst - 1},
		{ratelimit.LeakyBucket, burst, nil, n + burst - 1},
	} {
		r := limitRule(t, "r", ratelimit.Limit{N: n, Span: time.Second, Burst: c.burst})
		if r.Algorithm = c.algorithm; r.Algorithm == ratelimit.Calendar {
			r.Limits = []ratelimit.Limit{{N: n, Per: ratelimit.PerSecond}}
		}
		l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
		claims, w, worst := []claim{{span: s}}, newWitness(1), uint64(0)
		take := func(now int64, cost uint64) time.Duration {
			d := takeKeyN(l, time.Unix(0, now), "k", cost)
			if d.Allowed {
				w.allow(claims, now, cost)
				worst = max(worst, w.sums[0].sum)
			}
			return d.RetryAfter
		}
		for _, v := range c.visits {
			take(v.at, v.cost)
		}
		for now := int64(0); c.visits == nil && now < s; now += int64(take(now, 1)) {
		}
		if worst != c.worst {
			t.Errorf("%v, burst %d: %d allowed in a window, the worst case is %d", c.algorithm, c.burst, worst, c.worst)
		}
		if said := r.Limits[0].MaxAllowed(c.algorithm); said != c.worst {
			t.Errorf("%v, burst %d: MaxAllowed is %d, the worst case %d", c.algorithm, c.burst, said, c.worst)
		}
	}
}
