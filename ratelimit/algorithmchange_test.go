package ratelimit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// TestAlgorithmChange takes 6 of 10 a minute, one each 2.4 s from the start of a minute, changes the algorithm, and takes
// again at 18 s. The new limit has counted the 6 at the times that the old one had stored: each in its slot, or all at the
// last time. From a bucket it has counted the current level.
func TestAlgorithmChange(t *testing.T) {
	const n, start = 10, 60_000 * 28_000_000
	buckets := map[ratelimit.Algorithm]bool{ratelimit.GCRA: true, ratelimit.LeakyBucket: true}
	drained := map[ratelimit.Algorithm]uint64{ // what is counted at 18 s, at these times
		ratelimit.Sliding: 3, ratelimit.Exact: 3, ratelimit.TwoBucket: 1,
		ratelimit.Fixed: 1, ratelimit.Calendar: 1,
	}
	for _, from := range notInFlight() {
		for _, to := range notInFlight() {
			want := uint64(n - 6)
			switch {
			case buckets[from] && buckets[to]:
				want = n - 6 + 3
			case buckets[from]:
				want = n - 6 + 2
			case buckets[to]:
				want = n - 6 + drained[from]
			}
			r := limitRule(t, "r", per(n, time.Minute))
			r.Algorithm = from
			l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
			for i := range int64(6) {
				if d := takeKeyN(l, at(start+2400*i), "k", 1); !d.Allowed {
					t.Fatal(d)
				}
			}
			r.Algorithm = to
			must.Do(t, l.Update(mustSet(t, r)))
			if d := peekKeyN(l, at(start+18_000), "k", 0); d.Remaining != want || d.Limit != n {
				t.Errorf("%v to %v: %d of %d are left, want %d of %d", from, to, d.Remaining, d.Limit, want, n)
			}
		}
	}
}

// notInFlight returns all algorithms but InFlight.
func notInFlight() (all []ratelimit.Algorithm) {
	for i := range limit.Algorithms() {
		if a := ratelimit.Algorithm(i); a != ratelimit.InFlight {
			all = append(all, a)
		}
	}
	return all
}

// TestAlgorithmChangeOfBeyond lowers a limit and changes its algorithm at once: nothing is allowed while more is carried
// than the new limit, and the whole limit once the carried events have left the window.
func TestAlgorithmChangeOfBeyond(t *testing.T) {
	r := limitRule(t, "r", per(100, time.Minute))
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	if d := takeKeyN(l, at(0), "k", 100); !d.Allowed {
		t.Fatal(d)
	}
	r.Algorithm, r.Limits = ratelimit.Fixed, []ratelimit.Limit{per(5, time.Minute)}
	must.Do(t, l.Update(mustSet(t, r)))
	if d := takeKeyN(l, at(59_999), "k", 1); d.Allowed || d.RetryAfter != time.Millisecond {
		t.Errorf("100 of 5 were carried: %+v", d)
	}
	if d := takeKeyN(l, at(60_000), "k", 5); !d.Allowed {
		t.Errorf("when what was carried has left: %+v", d)
	}
	r.Algorithm = ratelimit.InFlight
	must.Do(t, l.Update(mustSet(t, r)))
	if d := takeKeyN(l, at(60_001), "k", 5); !d.Allowed {
		t.Errorf("what has come in a span is not under way: %+v", d)
	}
}

// TestReservationUnderOtherLimits settles reservations made before the limits of their rule changed: nothing is given back
// and nothing charged. Rules whose limits stay the same, whatever else changes, and reservations of events in flight are
// settled as before.
func TestReservationUnderOtherLimits(t *testing.T) {
	second := func(d time.Duration) func(*ratelimit.Rule) {
		return func(r *ratelimit.Rule) { r.Limits = []ratelimit.Limit{per(20, d)} }
	}
	algorithm := func(a ratelimit.Algorithm) func(*ratelimit.Rule) {
		return func(r *ratelimit.Rule) { r.Algorithm = a }
	}
	for _, c := range []struct {
		name      string
		algorithm ratelimit.Algorithm
		changes   []func(*ratelimit.Rule)
		back      uint64
	}{
		{"nothing", ratelimit.Sliding, nil, 8},
		{"the ban", ratelimit.Sliding, []func(*ratelimit.Rule){func(r *ratelimit.Rule) {
			r.Ban = &ratelimit.Ban{After: 1000, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
		}}, 8},
		{"the algorithm", ratelimit.Sliding, []func(*ratelimit.Rule){algorithm(ratelimit.TwoBucket)}, 0},
		{"N", ratelimit.Sliding, []func(*ratelimit.Rule){func(r *ratelimit.Rule) { r.Limits = []ratelimit.Limit{per(30, time.Minute)} }}, 0},
		{"the span", ratelimit.Fixed, []func(*ratelimit.Rule){second(time.Hour)}, 0},
		{"there and back", ratelimit.GCRA, []func(*ratelimit.Rule){second(time.Second), second(time.Minute)}, 0},
		{"the span of what is under way", ratelimit.InFlight, []func(*ratelimit.Rule){second(time.Hour)}, 8},
		{"to what is under way", ratelimit.Exact, []func(*ratelimit.Rule){algorithm(ratelimit.InFlight)}, 0},
	} {
		r := limitRule(t, "r", per(20, time.Minute))
		r.Algorithm = c.algorithm
		l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
		before := reserveN(l, at(0), keyEvent(l, "k"), 8)
		for _, change := range c.changes {
			change(&r)
			must.Do(t, l.Update(mustSet(t, r)))
		}
		takeKeyN(l, at(0), "k", 8)
		left := peekKeyN(l, at(0), "k", 0).Remaining
		must.Do(t, before.SettleAt(at(0), 0))
		if got := peekKeyN(l, at(0), "k", 0).Remaining; got-left != c.back {
			t.Errorf("%s changes: %d of 8 are given back, want %d", c.name, got-left, c.back)
		}
	}
}
