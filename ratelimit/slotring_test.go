package ratelimit_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/ratelimit"
)

// partThatDiffers returns which part of d, the decision at time t for cost, is not as m has it, and
// charges m.
func partThatDiffers(m *windowtest.Limit, d ratelimit.Decision, t int64, cost uint64, countRefused bool) string {
	left := m.N - min(m.Used(t), m.N)
	if d.Allowed != (cost <= left) {
		return "the decision"
	}
	if d.Allowed || countRefused {
		m.Charge(t, cost)
	}
	after := m.Used(t)
	if d.Limit != m.N || d.Remaining != m.N-min(after, m.N) {
		return "what remains"
	}
	switch wait := int64(d.RetryAfter); {
	case d.Allowed && wait != 0:
		return "a retry-after of what is allowed"
	case !d.Allowed && (m.Used(t+wait)+cost > m.N || m.Used(t+wait-1)+cost <= m.N):
		return "the retry-after"
	}
	if reset := int64(d.ResetAfter); m.Used(t+reset) != 0 || after > 0 && m.Used(t+reset-1) == 0 {
		return "the reset-after"
	}
	return ""
}

// randomArrivals yields times that are multiples of resolution, in bursts and
// with pauses around the span's length.
func randomArrivals(rnd *rand.Rand, span, resolution time.Duration, n int, yield func(t int64) bool) {
	r := max(int64(resolution), 1)
	t := (rnd.Int64N(2e12) - 1e12) / r * r // either side of 1970
	for range n {
		switch rnd.IntN(60) {
		case 0:
			t += rnd.Int64N(2 * int64(span))
		case 1:
			t += int64(span)
		case 2:
			t += int64(span) - rnd.Int64N(int64(span)/30+1)
		default:
			t += rnd.Int64N(int64(span)/60 + 1)
		}
		t = windowtest.FloorDiv(t, r) * r
		if !yield(t) {
			return
		}
	}
}

// TestSlidingDefinition compares every field of every decision with the
// definition, at resolutions finer and coarser than a slot, that divide it, are
// divided by it, and neither.
func TestSlidingDefinition(t *testing.T) {
	rnd := randtest.New(t)
	refused, round, arrivals := 0, 0, 2000
	if testing.Short() {
		arrivals = 400
	}
	for _, span := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 60 * time.Millisecond, 997 * time.Millisecond, time.Second, time.Minute, 100 * time.Second} {
		for _, resolution := range []time.Duration{0, 1, 7, time.Microsecond, 300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 100 * time.Millisecond, time.Second, 7 * time.Second} {
			n := uint64(129 + rnd.IntN(2)*rnd.IntN(60))
			model := windowtest.New(limit.Config{N: n, Span: span, Resolution: resolution})
			round++
			r := limitRule(t, "r", per(n, span))
			r.CountRefused = round%3 == 0
			l := mustLimiter(t, mustSet(t, r), ratelimit.Config{Resolution: resolution})
			randomArrivals(rnd, span, resolution, arrivals, func(now int64) bool {
				cost := uint64(1 + rnd.IntN(6))
				d := takeKeyN(l, time.Unix(0, now), "k", cost)
				if !d.Allowed {
					refused++
				}
				if diff := partThatDiffers(model, d, now, cost, r.CountRefused); diff != "" {
					t.Fatalf("%d per %v, resolution %v, at %d, cost %d: %s differs: %+v", n, span, resolution, now, cost, diff, d)
				}
				return true
			})
		}
	}
	if refused < 100 {
		t.Errorf("only %d refused: the test has no teeth", refused)
	}
}

// TestSlidingIsExactForFlooredTimes compares Sliding with Exact. Where a slot is no wider than the resolution, it holds at
// most one representable time, and the decisions must be the same in all fields, whether or not the span is a multiple of
// the resolution; where it is wider, they must differ somewhere.
func TestSlidingIsExactForFlooredTimes(t *testing.T) {
	rnd := randtest.New(t)
	refused := 0
	for _, span := range []time.Duration{30 * time.Millisecond, 997 * time.Millisecond, time.Minute} {
		width := time.Duration(windowtest.New(limit.Config{Span: span}).Width)
		for _, resolution := range []time.Duration{width, width + 1, 2*width - 1, 3 * width, span / 7, span / 2, span, 3 * span, 2 * width / 3, width / 2, 1} {
			n := uint64(129 + rnd.IntN(40))
			set := func(a ratelimit.Algorithm) *ratelimit.Limiter {
				r := limitRule(t, "r", per(n, span))
				r.Algorithm = a
				return mustLimiter(t, mustSet(t, r), ratelimit.Config{Resolution: resolution})
			}
			sliding, exact := set(ratelimit.Sliding), set(ratelimit.Exact)
			same := true
			randomArrivals(rnd, span, resolution, 6000, func(now int64) bool {
				cost := uint64(1 + rnd.IntN(4))
				a, b := takeKeyN(sliding, time.Unix(0, now), "k", cost), takeKeyN(exact, time.Unix(0, now), "k", cost)
				if !a.Allowed {
					refused++
				}
				if same = a == b; !same && width <= resolution {
					t.Errorf("%d per %v, resolution %v, at %d, cost %d: sliding %+v, exact %+v", n, span, resolution, now, cost, a, b)
				}
				return same
			})
			if same && width > resolution {
				t.Errorf("%d per %v, resolution %v: sliding never differs from exact: the test has no teeth", n, span, resolution)
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d refused: the test has no teeth", refused)
	}
}

// TestSlidingUpTo64IsExact takes under limits that are a log by either name.
func TestSlidingUpTo64IsExact(t *testing.T) {
	rnd := randtest.New(t)
	for _, n := range []uint64{1, 2, 63, 64} {
		span := time.Duration(1+rnd.IntN(2000)) * time.Millisecond
		r := limitRule(t, "r", per(n, span))
		sliding := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
		r.Algorithm = ratelimit.Exact
		exact := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
		randomArrivals(rnd, span, 0, 5000, func(now int64) bool {
			a, b := takeKeyN(sliding, time.Unix(0, now), "k", 1), takeKeyN(exact, time.Unix(0, now), "k", 1)
			if a != b {
				t.Errorf("%d per %v at %d: sliding %+v, exact %+v", n, span, now, a, b)
			}
			return a == b
		})
	}
}

// TestSlidingSaturates counts refused events of huge cost: a slot that is full
// stays full, and nothing wraps to let the client in.
func TestSlidingSaturates(t *testing.T) {
	const most = limit.MaxN
	r := limitRule(t, "r", per(most, time.Minute))
	r.CountRefused = true
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	const gone = 61*time.Second - 1 // the last nanosecond of the slot leaves
	checkSteps(t, l, []step{
		{0, most - 1, ratelimit.Decision{Allowed: true, Rule: "r", Limit: most, Remaining: 1, ResetAfter: gone}},
		{0, 1, ratelimit.Decision{Allowed: true, Rule: "r", Limit: most, ResetAfter: gone}},
		{0, 1, ratelimit.Decision{Rule: "r", Limit: most, RetryAfter: gone, ResetAfter: gone}},
	})
	now := int64(0)
	for i := range 400 {
		cost := []uint64{1, most, most + 1, math.MaxUint64, math.MaxUint64 - 1}[i%5]
		now += 333
		if d := takeKeyN(l, at(now), "k", cost); d.Allowed || d.Remaining != 0 {
			t.Fatalf("event %d of cost %d is let in: %+v", i, cost, d)
		}
	}
	d := takeKeyN(l, at(now), "k", 1)
	if d.Allowed || d.RetryAfter < time.Minute || d.RetryAfter > 61*time.Second {
		t.Errorf("when every slot is full: %+v", d)
	}
	if d := takeKeyN(l, at(now).Add(d.RetryAfter), "k", most); !d.Allowed || d.Remaining != 0 {
		t.Errorf("after the retry-after: %+v", d)
	}
}
