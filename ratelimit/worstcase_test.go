package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// TestWaitIsNeeded compares the RetryAfter of a client that is alone with the necessary wait by the definition of a window:
// until N less the cost are in the span. It is sufficient, exceeds the necessary wait by at most MaxLate, and equals it to
// the nanosecond where MaxLate is 0.
func TestWaitIsNeeded(t *testing.T) {
	const span = time.Minute
	rnd := randtest.New(t)
	for _, c := range []struct {
		algorithm ratelimit.Algorithm
		n         uint64
	}{
		{ratelimit.Sliding, 1},
		{ratelimit.Sliding, 60},
		{ratelimit.Sliding, 100},
		{ratelimit.Sliding, 128},
		{ratelimit.Sliding, 129},
		{ratelimit.Sliding, 1000},
		{ratelimit.Exact, 200},
		{ratelimit.TwoBucket, 50},
	} {
		r := limitRule(t, "r", per(c.n, span))
		r.Algorithm = c.algorithm
		l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
		late := r.Limits[0].MaxLate(c.algorithm)
		var allowed []int64 // when each unit was
		refused, longest := 0, time.Duration(0)
		now := int64(1_700_000_000e9) + rnd.Int64N(1e12)
		for range 5000 {
			cost := 1 + rnd.Uint64N(min(c.n, 4))
			d := takeKeyN(l, time.Unix(0, now), "k", cost)
			if d.Allowed {
				for range cost {
					allowed = append(allowed, now)
				}
				now += rnd.Int64N(2*int64(span)/int64(c.n)/2 + 1)
				continue
			}
			refused++
			// The unit that has to leave the span is the N-cost+1st newest.
			needed := time.Duration(0)
			if i := len(allowed) - int(c.n-cost) - 1; i >= 0 {
				needed = max(0, time.Duration(allowed[i]-now)+span)
			}
			more := d.RetryAfter - needed
			longest = max(longest, more)
			switch {
			case more > late:
				t.Fatalf("%v, %d a minute: RetryAfter is %v, needed are %v: more than %v too long", c.algorithm, c.n, d.RetryAfter, needed, late)
			case more < 0 && (c.algorithm == ratelimit.Sliding || c.algorithm == ratelimit.Exact):
				t.Fatalf("%v, %d a minute: RetryAfter is %v, needed are %v", c.algorithm, c.n, d.RetryAfter, needed)
			}
			if rnd.IntN(2) == 0 {
				now += int64(d.RetryAfter)
				if again := peekKeyN(l, time.Unix(0, now), "k", cost); !again.Allowed {
					t.Fatalf("%v, %d a minute: refused after the RetryAfter of %v: %+v", c.algorithm, c.n, d.RetryAfter, again)
				}
			} else {
				now += rnd.Int64N(int64(span) / int64(c.n))
			}
		}
		if refused < 100 || late > 0 && longest < late/20 {
			t.Errorf("%v, %d a minute: %d refused, %v too long at most: the test has no teeth", c.algorithm, c.n, refused, longest)
		}
	}
}

// TestWorstCaseAtTheBudget lets other keys push one out of a full store again and
// again: in one window it gets no more than MaxAllowed and what it may have used
// when it was evicted, which is less than half. With a limit of 2 it is nothing.
func TestWorstCaseAtTheBudget(t *testing.T) {
	limits, budget := []uint64{2, 9, 10}, int64(4<<20)
	if testing.Short() {
		limits, budget = limits[:2], 1<<20
	}
	for _, n := range limits {
		most := (n+1)/2 - 1
		r := limitRule(t, "r", per(n, time.Hour))
		l := mustLimiter(t, mustSet(t, r), ratelimit.Config{Budget: budget})
		now := time.Unix(1_700_000_000, 0)
		allowed, evictions, others := uint64(0), uint64(0), 0
		for range 3 {
			for range max(most, 1) {
				if now = now.Add(1); takeKeyN(l, now, "victim", 1).Allowed {
					allowed++
				}
			}
			for i := 0; i < 60_000 && peekKeyN(l, now, "victim", 0).Remaining < n; i++ {
				others++
				now = now.Add(1)
				takeKeyN(l, now, fmt.Sprint("other ", others), 1)
			}
			if peekKeyN(l, now, "victim", 0).Remaining == n {
				evictions++
			}
		}
		for range 2 * n {
			if takeKeyN(l, now, "victim", 1).Allowed {
				allowed++
			}
		}
		if worst := r.Limits[0].MaxAllowed(r.Algorithm) + evictions*most; allowed > worst {
			t.Errorf("%d an hour: %d allowed with %d evictions, the worst case is %d", n, allowed, evictions, worst)
		} else if evictions > 0 && allowed != worst {
			t.Errorf("%d an hour: %d allowed with %d evictions, the worst case of %d is not reached", n, allowed, evictions, worst)
		}
		if (evictions > 0) != (most > 0) {
			t.Errorf("%d an hour: %d evictions for a key that has used %d", n, evictions, max(most, 1))
		}
	}
}
