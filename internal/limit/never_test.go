package limit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
)

// A trail is what was allowed, by brute force: every event, and the sum of those
// in the window that ends with the newest.
type trail struct {
	span   int64
	events charges
	first  int // of the events, in the window
	sum    uint64
	worst  uint64 // the largest sum there was
}

func (tr *trail) allow(t int64, cost uint64) {
	tr.events.charge(t, cost)
	tr.sum += cost
	for tr.events[tr.first].t <= t-tr.span {
		tr.sum -= tr.events[tr.first].cost
		tr.first++
	}
	tr.worst = max(tr.worst, tr.sum)
	if many := 1 << 20; tr.first > 2*many {
		tr.events = slices.Delete(tr.events, 0, many)
		tr.first -= many
	}
}

// since returns the sum of what was allowed after t.
func (tr *trail) since(t int64) (n uint64) {
	for i := len(tr.events) - 1; i >= 0 && tr.events[i].t > t; i-- {
		n += tr.events[i].cost
	}
	return n
}

// hammer sends n events of a hard caller: random ones, bursts at the edges of
// slots and windows, what just fills the limit, and one that comes back at the
// first moment it may. It returns what was allowed, by the true times.
func hammer(rnd *rand.Rand, s *subject, span int64, resolution int64, n int, refused func(tr *trail, t int64, cost uint64)) *trail {
	tr, ahead, now := &trail{span: span}, int64(0), int64(0)
	again := false
	arrivals(rnd, span, resolution, n, func(t int64) bool {
		t += ahead
		cost, to := uint64(1), t
		switch rnd.IntN(20) {
		case 0:
			cost += rnd.Uint64N(s.Most())
		case 1:
			if slot := span / 60; resolution == 1 && rnd.IntN(2) == 0 {
				to = (t/slot+1)*slot - 1
			}
			cost = max(s.Most()-min(s.advance(to), s.Most()), 1)
		case 2, 3:
			if again && resolution == 1 {
				to = max(now+s.wait(now, 1), t)
			}
		}
		ahead += to - t
		now = to
		if again = !s.take(now, cost); !again {
			tr.allow(now, cost)
		} else if refused != nil {
			refused(tr, now, cost)
		}
		return true
	})
	return tr
}

// arrivalCount returns how many events a test sends that has n subjects.
func arrivalCount(n int) int {
	if longTests() {
		return 10_000_000
	}
	return 300_000 / n
}

// TestNeverOver sends 1e7 events each (in the long form) to kinds that promise
// never to allow more than N in a window, and counts by brute force.
func TestNeverOver(t *testing.T) {
	configs := []limit.Config{
		{Algorithm: limit.Sliding, N: 1, Span: time.Millisecond},
		{Algorithm: limit.Sliding, N: 3, Span: time.Second},
		{Algorithm: limit.Sliding, N: 128, Span: time.Minute},
		{Algorithm: limit.Sliding, N: 129, Span: time.Minute},
		{Algorithm: limit.Sliding, N: 150, Span: 7 * time.Millisecond},
		{Algorithm: limit.Sliding, N: 300, Span: 100 * time.Second, Resolution: time.Second},
		{Algorithm: limit.Sliding, N: 1000, Span: time.Hour},
		{Algorithm: limit.Sliding, N: 70_000, Span: time.Second},
		{Algorithm: limit.Exact, N: 100, Span: time.Second},
		{Algorithm: limit.Exact, N: 2000, Span: time.Minute},
		{Algorithm: limit.InFlight, N: 10, Span: time.Second},
	}
	rnd := randtest.New(t)
	for _, c := range configs {
		s := newSubject(t, c)
		tr := hammer(rnd, s, int64(c.Span), max(int64(c.Resolution), 1), arrivalCount(len(configs)), nil)
		if tr.worst > c.N {
			t.Errorf("%+v: %d allowed in a window", c, tr.worst)
		}
		if tr.worst < c.N {
			t.Errorf("%+v: never more than %d allowed in a window: the test has no teeth", c, tr.worst)
		}
	}
}

// TestTooEarlyIsCaught is the control: counters that forget a nanosecond too early,
// or a slot (the ring that counts the current slot in place of the oldest).
func TestTooEarlyIsCaught(t *testing.T) {
	rnd := randtest.New(t)
	for _, c := range []struct {
		limit.Config
		by time.Duration
	}{
		{limit.Config{Algorithm: limit.Sliding, N: 3, Span: time.Second}, 1},
		{limit.Config{Algorithm: limit.Exact, N: 100, Span: time.Second}, 1},
		{limit.Config{Algorithm: limit.Sliding, N: 150, Span: time.Minute}, 1},
		{limit.Config{Algorithm: limit.Sliding, N: 150, Span: time.Minute}, time.Second},
	} {
		s := newSubject(t, c.Config)
		s.Counter = s.Early(c.by)
		if tr := hammer(rnd, s, int64(c.Span), 1, 300_000, nil); tr.worst <= c.N {
			t.Errorf("%+v forgets %v too early, and nobody notices", c.Config, c.by)
		}
	}
}

// TestRefusalsAreJustified checks that when Sliding refuses, N were allowed
// within a span and a slot.
func TestRefusalsAreJustified(t *testing.T) {
	rnd := randtest.New(t)
	for _, n := range []uint64{1, 100, 128, 129, 1000} {
		span, slot := int64(time.Minute), int64(time.Second)
		if n <= 128 {
			slot = 0
		}
		refusals := 0
		s := newSubject(t, limit.Config{Algorithm: limit.Sliding, N: n, Span: time.Minute})
		hammer(rnd, s, span, 1, min(arrivalCount(10), 300_000), func(tr *trail, at int64, cost uint64) {
			refusals++
			if cost <= n && tr.since(at-span-slot)+cost <= n {
				t.Fatalf("n %d: %d refused at %d, %d were allowed in a span and a slot", n, cost, at, tr.since(at-span-slot))
			}
		})
		if refusals < 300 {
			t.Errorf("n %d: %d refusals: the test has no teeth", n, refusals)
		}
	}
}

// TestWorstCases attacks each kind in the way that gets most out of it, and finds
// what docs/dev/proofs.md says; random events never find more.
func TestWorstCases(t *testing.T) {
	const n, burst, span = 100, 250, int64(time.Minute)
	type step struct {
		at    int64
		times int
	}
	// pace asks for one whenever there is one, until a span after the burst.
	pace := func(s *subject, tr *trail) {
		for now := int64(0); now < span; now += s.wait(now, 1) {
			if s.take(now, 1) {
				tr.allow(now, 1)
			}
		}
	}
	for _, c := range []struct {
		limit.Config
		attack []step
		pace   bool
		worst  uint64
	}{
		{limit.Config{Algorithm: limit.Sliding}, []step{{0, n}, {span - 1, n}, {span, n}}, false, n},
		{limit.Config{Algorithm: limit.Exact}, []step{{0, n}, {span - 1, n}, {span, n}}, false, n},
		{limit.Config{Algorithm: limit.InFlight}, []step{{0, n}, {span - 1, n}, {span, n}}, false, n},
		{limit.Config{Algorithm: limit.TwoBucket}, []step{{span - 1, n}, {2*span - 2, n}}, false, 2*n - 1},
		{limit.Config{Algorithm: limit.Fixed}, []step{{0, 1}, {span - 1, n}, {span, n}}, false, 2*n - 1},
		{limit.Config{Algorithm: limit.Calendar, Period: limit.Minute}, []step{{span - 1, n}, {span, n}}, false, 2 * n},
		{limit.Config{Algorithm: limit.GCRA}, nil, true, 2*n - 1},
		{limit.Config{Algorithm: limit.GCRA, Burst: 1}, nil, true, n},
		{limit.Config{Algorithm: limit.GCRA, Burst: burst}, nil, true, n + burst - 1},
		{limit.Config{Algorithm: limit.LeakyBucket, Burst: burst}, nil, true, n + burst - 1},
	} {
		if c.N = n; c.Algorithm != limit.Calendar {
			c.Span = time.Duration(span)
		}
		s, tr := newSubject(t, c.Config), &trail{span: span}
		if c.pace {
			pace(s, tr)
		}
		for _, step := range c.attack {
			for range step.times {
				if s.take(step.at, 1) {
					tr.allow(step.at, 1)
				}
			}
		}
		if tr.worst != c.worst {
			t.Errorf("%+v: %d allowed in a window, the worst case is %d", c.Config, tr.worst, c.worst)
		}
		rnd := randtest.New(t)
		if tr := hammer(rnd, newSubject(t, c.Config), span, 1, min(arrivalCount(12), 1_000_000), nil); tr.worst > c.worst {
			t.Errorf("%+v: %d allowed in a window, the worst case is %d", c.Config, tr.worst, c.worst)
		}
	}
}

// TestNeverTwoOfOne takes under limits of 1: no kind allows a second event within
// a span of the first, but for the windows that are not about the last span.
func TestNeverTwoOfOne(t *testing.T) {
	rnd := randtest.New(t)
	for _, c := range allKinds(1, time.Second) {
		if c.Algorithm == limit.Calendar || c.Algorithm == limit.LeakyBucket {
			continue
		}
		if tr := hammer(rnd, newSubject(t, c), int64(c.Span), 1, 20_000, nil); tr.worst != 1 {
			t.Errorf("%+v: %d allowed in a window", c, tr.worst)
		}
	}
}

// TestGoodput compares how much each kind allows with what Exact does, at the
// limit and under a flood of ten times as much. Sliding has to allow 97 %.
func TestGoodput(t *testing.T) {
	rnd := randtest.New(t)
	spans := 40.0
	if longTests() {
		spans = 2000
	}
	for _, c := range []struct {
		n          uint64
		span       time.Duration
		resolution time.Duration
	}{
		{150, 300 * time.Second, 1},
		{150, 300 * time.Second, time.Millisecond},
		{1000, time.Hour, time.Second},
		{1000, time.Minute, time.Millisecond},
		{130, time.Second, time.Millisecond},
	} {
		for _, load := range []float64{1, 10} {
			allowed := map[limit.Algorithm]float64{}
			kinds := []limit.Algorithm{limit.Exact, limit.Sliding, limit.TwoBucket, limit.GCRA, limit.Fixed}
			subjects := make([]*subject, len(kinds))
			for i, kind := range kinds {
				config := limit.Config{Algorithm: kind, N: c.n, Span: c.span}
				if kind == limit.Sliding {
					config.Resolution = c.resolution
				}
				subjects[i] = newSubject(t, config)
			}
			gap := float64(c.span) / float64(c.n) / load
			for at := 1e18; at < 1e18+spans*float64(c.span); at += rnd.ExpFloat64() * gap {
				now := floorDiv(int64(at), int64(c.resolution)) * int64(c.resolution)
				for i, s := range subjects {
					if s.take(now, 1) {
						allowed[kinds[i]]++
					}
				}
			}
			for _, kind := range kinds {
				share := allowed[kind] / allowed[limit.Exact]
				if longTests() {
					t.Logf("%d per %v, resolution %v, load %v: %v allows %.2f %% of exact", c.n, c.span, c.resolution, load, kind, 100*share)
				}
				if kind == limit.Sliding && share < 0.97 {
					t.Errorf("%d per %v, resolution %v, load %v: sliding allows %.2f %% of exact", c.n, c.span, c.resolution, load, 100*share)
				}
			}
		}
	}
}
