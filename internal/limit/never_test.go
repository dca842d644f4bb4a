package limit_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// A trail has the allowed events, by brute force: every event, and the sum in
// the window that ends with the newest.
type trail struct {
	span   int64
	events windowtest.Charges
	first  int // of the events, in the window
	sum    uint64
	worst  uint64 // the largest sum so far
}

func (tr *trail) allow(t int64, cost uint64) {
	tr.events.Add(t, cost)
	tr.sum += cost
	for tr.events[tr.first].At <= t-tr.span {
		tr.sum -= tr.events[tr.first].N
		tr.first++
	}
	tr.worst = max(tr.worst, tr.sum)
	if many := 1 << 20; tr.first > 2*many {
		tr.events = slices.Delete(tr.events, 0, many)
		tr.first -= many
	}
}

// hammer sends n events of a hard caller: random ones, bursts at the edges of
// slots and windows, what just fills the limit, and one that comes back at the
// first moment it may. It returns the allowed events, by their true times.
func hammer(rnd *rand.Rand, s *subject, span int64, n int) *trail {
	tr, ahead, now := &trail{span: span}, int64(0), int64(0)
	again := false
	arrivals(rnd, span, 1, n, func(t int64) bool {
		t += ahead
		cost, to := uint64(1), t
		switch rnd.IntN(20) {
		case 0:
			cost += rnd.Uint64N(s.Most())
		case 1:
			if slot := span / 60; rnd.IntN(2) == 0 {
				to = (t/slot+1)*slot - 1
			}
			cost = max(s.Most()-min(s.advance(to), s.Most()), 1)
		case 2, 3:
			if again {
				to = max(now+s.wait(now, 1), t)
			}
		}
		ahead += to - t
		now = to
		if again = !s.take(now, cost); !again {
			tr.allow(now, cost)
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

// TestWorstCases attacks each kind in its worst way, and reaches the bound in docs/dev/proofs.md; random events never
// exceed it.
func TestWorstCases(t *testing.T) {
	const n, burst, span = 100, 250, int64(time.Minute)
	type step struct {
		at    int64
		times int
	}
	// pace takes one as soon as possible, until a span after the burst.
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
		if tr := hammer(rnd, newSubject(t, c.Config), span, min(arrivalCount(12), 1_000_000)); tr.worst > c.worst {
			t.Errorf("%+v: %d allowed in a window, the worst case is %d", c.Config, tr.worst, c.worst)
		}
	}
}

// TestGoodput compares how much each kind allows with Exact, at the limit and under a flood of ten times as much. Sliding
// has to allow 97 %.
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
				now := windowtest.FloorDiv(int64(at), int64(c.resolution)) * int64(c.resolution)
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
