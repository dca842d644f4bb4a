package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A witness is what was admitted of one key, by brute force: each event, with the
// time that it was judged at.
type witness struct {
	newest int64
	events []admission
}

type admission struct {
	t       int64
	cost    uint64
	settled bool
	r       *ratelimit.Reservation
}

// A promise is what an algorithm says of the events that it admits.
type promise struct {
	algorithm ratelimit.Algorithm
	limit     ratelimit.Limit
	zone      *time.Location
	memory    ratelimit.MemoryConfig

	// over returns how much is over the limit now that the last event has been
	// admitted; 0 is as promised.
	over func(p *promise, w *witness) uint64
}

// inTrueWindow is the promise of Sliding and Exact: at most N in (t-span, t].
func inTrueWindow(p *promise, w *witness) uint64 {
	n := uint64(0)
	for i := len(w.events) - 1; i >= 0 && w.events[i].t > w.newest-int64(p.limit.Span); i-- {
		n += w.events[i].cost
	}
	w.forget(w.newest - 2*int64(p.limit.Span))
	return above(n, p.limit.N)
}

// inOwnWindow is that of Fixed: at most N in a window that begins with the first
// event after the one before.
func inOwnWindow(p *promise, w *witness) uint64 {
	n, start := uint64(0), w.events[0].t
	first := 0
	for i, e := range w.events {
		if e.t-start >= int64(p.limit.Span) {
			n, start, first = 0, e.t, i
		}
		n += e.cost
	}
	w.events = w.events[first:]
	return above(n, p.limit.N)
}

// inCalendar is that of Calendar: at most N while the wall clock shows one day.
func inCalendar(p *promise, w *witness) uint64 {
	n := uint64(0)
	year, month, day := time.Unix(0, w.newest).In(p.zone).Date()
	for i := len(w.events) - 1; i >= 0; i-- {
		if y, m, d := time.Unix(0, w.events[i].t).In(p.zone).Date(); y != year || m != month || d != day {
			break
		}
		n += w.events[i].cost
	}
	w.forget(w.newest - 50*int64(time.Hour))
	return above(n, p.limit.N)
}

// underWay is that of InFlight: at most N that were not settled within the span.
func underWay(p *promise, w *witness) uint64 {
	n := uint64(0)
	for i := len(w.events) - 1; i >= 0 && w.events[i].t > w.newest-int64(p.limit.Span); i-- {
		if !w.events[i].settled {
			n += w.events[i].cost
		}
	}
	w.forget(w.newest - 2*int64(p.limit.Span))
	return above(n, p.limit.N)
}

func above(n, limit uint64) uint64 { return n - min(n, limit) }

// forget drops what was admitted at t or before.
func (w *witness) forget(t int64) {
	n := 0
	for n < len(w.events) && w.events[n].t <= t {
		n++
	}
	if n > 256 {
		w.events = append([]admission(nil), w.events[n:]...)
	}
}

func newYork(t testing.TB) *time.Location {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Logf("no time zones here (%v): a day is always 24 hours", err)
		return time.FixedZone("east", 5*3600)
	}
	return zone
}

func promises(t testing.TB) []promise {
	const s, ms = time.Second, time.Millisecond
	return []promise{
		{algorithm: ratelimit.Sliding, limit: per(1, ms), over: inTrueWindow},
		{algorithm: ratelimit.Sliding, limit: per(5, s), over: inTrueWindow},
		{algorithm: ratelimit.Sliding, limit: per(64, 60*s), over: inTrueWindow},
		{algorithm: ratelimit.Sliding, limit: per(65, 60*s), over: inTrueWindow},
		{algorithm: ratelimit.Sliding, limit: per(100, 7*ms), over: inTrueWindow},
		{algorithm: ratelimit.Sliding, limit: per(300, 100*s), memory: ratelimit.MemoryConfig{Resolution: s}, over: inTrueWindow},
		{algorithm: ratelimit.Sliding, limit: per(1000, 3600*s), over: inTrueWindow},
		{algorithm: ratelimit.Exact, limit: per(3, s), over: inTrueWindow},
		{algorithm: ratelimit.Exact, limit: per(500, 60*s), over: inTrueWindow},
		{algorithm: ratelimit.Fixed, limit: per(10, s), over: inOwnWindow},
		{algorithm: ratelimit.Fixed, limit: per(700, 60*s), over: inOwnWindow},
		{algorithm: ratelimit.Calendar, limit: ratelimit.Limit{N: 200, Per: ratelimit.PerDay}, zone: newYork(t), over: inCalendar},
		{algorithm: ratelimit.InFlight, limit: per(4, s), over: underWay},
		{algorithm: ratelimit.InFlight, limit: per(90, s), over: underWay},
	}
}

func (p *promise) String() string { return fmt.Sprint(p.algorithm, " ", p.limit) }

// harass sends n events of a hard caller to a limiter of p: random ones, bursts at
// the edges of slots and windows, what just fills the limit, one that comes back at
// the first moment it may, and now and then the clock set back. It returns the
// most that was ever over, and how many were refused.
func (p *promise) harass(t testing.TB, rnd *rand.Rand, n int) (over uint64, refused int) {
	r := limit(t, "r", p.limit)
	r.Algorithm, r.Zone = p.algorithm, p.zone
	l := mustLimiter(t, mustSet(t, r), p.memory)
	ws := make(map[string]*witness)
	span, resolution := int64(p.limit.Window()), max(int64(p.memory.Resolution), 1)
	now := int64(1_700_000_000e9) + rnd.Int64N(span)
	for range n {
		key := string(rune('a' + rnd.IntN(3)))
		w := ws[key]
		if w == nil {
			w = &witness{newest: -1 << 63}
			ws[key] = w
		}
		cost := uint64(1)
		switch rnd.IntN(24) {
		case 0:
			now += rnd.Int64N(2 * span)
		case 1, 2:
			now = edge(now, span/60) - rnd.Int64N(2)
		case 3:
			now = edge(now, span)
		case 4:
			cost = 1 + rnd.Uint64N(p.limit.N)
		case 5:
			cost = max(l.PeekKeyAt(time.Unix(0, now), key, 0).Remaining, 1) // all that is left
		case 6:
			if d := l.PeekKeyAt(time.Unix(0, now), key, 1); d.RetryAfter > 0 {
				now += int64(d.RetryAfter) - resolution*rnd.Int64N(2)
			}
		case 7:
			now -= rnd.Int64N(span / 4)
		case 8, 9, 10, 11:
			now += rnd.Int64N(span/int64(p.limit.N) + 1)
		case 12:
			now += rnd.Int64N(span/60 + 1)
		}
		now = floorTo(now, resolution)
		w.newest = max(w.newest, now) // an earlier event is judged then
		res := l.ReserveKeyAt(time.Unix(0, now), key, cost)
		if !res.Decision.Allowed {
			refused++
			continue
		}
		w.events = append(w.events, admission{t: w.newest, cost: cost, r: res})
		over = max(over, p.over(p, w))
		if i := rnd.IntN(len(w.events)); p.algorithm == ratelimit.InFlight && rnd.IntN(3) > 0 && !w.events[i].settled {
			w.events[i].settled = true
			w.events[i].r.CancelAt(time.Unix(0, now))
		}
	}
	return over, refused
}

func edge(t, width int64) int64 { return floorTo(t, max(width, 1)) + max(width, 1) }

func floorTo(t, width int64) int64 { return t - ((t%width)+width)%width }

// TestNeverOverAsPromised sends 3e5 events (1e7 for each promise in the long form) to the
// algorithms that promise never to admit more than N, and counts by brute force.
func TestNeverOverAsPromised(t *testing.T) {
	rnd := seeded(t)
	ps := promises(t)
	n := 300_000 / len(ps)
	switch {
	case longForm():
		n = 10_000_000
	case raceEnabled:
		n /= 10
	}
	for i := range ps {
		p := &ps[i]
		if over, refused := p.harass(t, rnd, n); over > 0 {
			t.Errorf("%v admitted %d more than its limit", p, over)
		} else if refused == 0 {
			t.Errorf("%v refused nothing: the test has no teeth", p)
		}
	}
}

// TestOtherPromisesAreCaught holds algorithms to promises that they do not make.
func TestOtherPromisesAreCaught(t *testing.T) {
	rnd := seeded(t)
	const s = time.Second
	for _, p := range []promise{
		{algorithm: ratelimit.Fixed, limit: per(5, s), over: inTrueWindow},
		{algorithm: ratelimit.Weighted, limit: per(100, s), over: inTrueWindow},
		{algorithm: ratelimit.TwoBucket, limit: per(100, s), over: inTrueWindow},
		{algorithm: ratelimit.GCRA, limit: per(100, s), over: inTrueWindow},
		{algorithm: ratelimit.TokenBucket, limit: per(5, s), over: inTrueWindow},
		{algorithm: ratelimit.LeakyBucket, limit: per(5, s), over: inTrueWindow},
		{algorithm: ratelimit.Sliding, limit: per(5, s), over: inOwnWindowOfTwo},
		{algorithm: ratelimit.Sliding, limit: per(5, s), over: oneNanosecondMore},
		{algorithm: ratelimit.InFlight, limit: per(4, s), over: neverOver},
	} {
		if over, _ := p.harass(t, rnd, 30_000); over == 0 {
			t.Errorf("%v is not found to be over another's promise", &p)
		}
	}
}

// inOwnWindowOfTwo is inOwnWindow with windows of twice the span.
func inOwnWindowOfTwo(p *promise, w *witness) uint64 {
	twice := *p
	twice.limit.Span *= 2
	return inOwnWindow(&twice, w)
}

// oneNanosecondMore is inTrueWindow with a window that is closed at both ends.
func oneNanosecondMore(p *promise, w *witness) uint64 {
	more := *p
	more.limit.Span++
	return inTrueWindow(&more, w)
}

// neverOver is underWay for those who believe that all are under way for ever.
func neverOver(p *promise, w *witness) uint64 {
	n := uint64(0)
	for _, e := range w.events {
		n += e.cost
	}
	return above(n, p.limit.N)
}

// retryRule returns a rule that refuses, for one reason or another.
func retryRule(t testing.TB, rnd *rand.Rand, name string) ratelimit.Rule {
	r := limit(t, name)
	a := ratelimit.Algorithm(rnd.IntN(len(ratelimit.Algorithms())))
	r.Algorithm, r.CountRefused, r.Shadow = a, rnd.IntN(4) == 0, rnd.IntN(8) == 0
	for range 1 + rnd.IntN(2) {
		l := per(1+rnd.Uint64N(8), time.Duration(1+rnd.IntN(2000))*time.Millisecond)
		if rnd.IntN(4) == 0 {
			l.N += 60 + rnd.Uint64N(200)
		}
		switch {
		case a == ratelimit.Calendar:
			l.Span, l.Per = 0, ratelimit.PerSecond+ratelimit.Period(rnd.IntN(4))
		case a == ratelimit.GCRA || a == ratelimit.TokenBucket || a == ratelimit.LeakyBucket:
			l.Burst = rnd.Uint64N(2 * l.N)
		}
		r.Limits = append(r.Limits, l)
	}
	if rnd.IntN(3) > 0 {
		return r
	}
	r.Ban = &ratelimit.Ban{
		After: 1 + rnd.Uint64N(12), Of: ratelimit.Cause(rnd.IntN(2)), Extend: rnd.IntN(3) == 0, Factor: 1 + rnd.Float64(),
		Span: time.Duration(1+rnd.IntN(2000)) * time.Millisecond, For: time.Duration(1+rnd.IntN(2000)) * time.Millisecond,
		Max: 10 * time.Second, Jitter: 0.2 * rnd.Float64(), Remember: 5 * time.Second,
	}
	if r.Ban.Of == ratelimit.Hits && rnd.IntN(3) == 0 {
		r.Limits = nil
	}
	return r
}

// TestRetryAfterIsTrueForAll has a lone client wait after each refusal for as long
// as it was told, under random rules of every kind: it is admitted then, and not a
// nanosecond before.
func TestRetryAfterIsTrueForAll(t *testing.T) {
	rnd := seeded(t)
	refusals := 5000
	if longForm() {
		refusals = 100_000
	}
	seen := make(map[string]int) // refusals by what refused
	for total := 0; total < refusals; {
		var rules []ratelimit.Rule
		for i := range 1 + rnd.IntN(4) {
			rules = append(rules, retryRule(t, rnd, fmt.Sprint("r", i)))
		}
		l := mustLimiter(t, mustSet(t, rules...), ratelimit.MemoryConfig{Budget: ratelimit.NoBudget, Bans: 1000})
		now := int64(1_700_000_000e9)
		for range 200 {
			cost := 1 + rnd.Uint64N(3)
			d := l.TakeKeyAt(time.Unix(0, now), "k", cost)
			if d.Allowed || d.RetryAfter == ratelimit.Never {
				now += rnd.Int64N(int64(100 * time.Millisecond))
				continue
			}
			total++
			what := "a ban"
			if d.BannedUntil.IsZero() {
				what = l.Set().Rule(int(d.Rule[1] - '0')).Algorithm.String()
			}
			seen[what]++
			now += int64(d.RetryAfter)
			if early := l.PeekKeyAt(time.Unix(0, now-1), "k", cost); early.Allowed {
				t.Fatalf("rules %+v: refused with %+v, and admitted 1 ns before that: %+v", rules, d, early)
			}
			if then := l.TakeKeyAt(time.Unix(0, now), "k", cost); !then.Allowed {
				t.Fatalf("rules %+v: refused with %+v, waited, and refused again: %+v", rules, d, then)
			}
		}
	}
	if all := len(ratelimit.Algorithms()) + 1; len(seen) < all {
		t.Errorf("refused were %v, want refusals of all %d kinds: the test has no teeth", seen, all)
	}
}
