package ratelimit_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// TestSettleMoreThanCharged settles a reservation to more than was reserved, after its key was evicted: the difference is
// charged all the same.
func TestSettleMoreThanCharged(t *testing.T) {
	const n = 100
	for _, a := range []ratelimit.Algorithm{
		ratelimit.Sliding, ratelimit.Exact, ratelimit.TwoBucket, ratelimit.GCRA, ratelimit.Fixed,
	} {
		t.Run(fmt.Sprint(a), func(t *testing.T) {
			rule := limitRule(t, "r", per(n, time.Minute))
			rule.Algorithm = a
			l := mustLimiter(t, mustSet(t, rule), ratelimit.Config{Budget: 1 << 20})
			more := reserveN(l, at(0), keyEvent(l, "more"), 1)
			less := reserveN(l, at(0), keyEvent(l, "less"), 1)
			for i := range 10_000 {
				takeKeyN(l, at(150_000), strconv.Itoa(i), 1)
			}
			if s := l.Stats().Rules[0]; s.Expired < 2 {
				t.Fatalf("nothing was evicted: the test has no teeth: %+v", s)
			}
			for r, actual := range map[*ratelimit.Reservation]uint64{more: 81, less: 0} {
				must.Do(t, r.SettleAt(at(150_000), actual))
			}
			for key, want := range map[string]uint64{"more": 20, "less": n} {
				if d := peekKeyN(l, at(150_000), key, 0); d.Remaining != want {
					t.Errorf("%s: %d are left, want %d", key, d.Remaining, want)
				}
			}
		})
	}
}

// TestSettleMoreInTheSketch does so with keys for which there is no memory.
func TestSettleMoreInTheSketch(t *testing.T) {
	const n = 4
	now := time.Unix(1_000_000, 0)
	l, _ := newFlooded(t, roomBudget, limitRule(t, "r", per(n, floodSpan)))
	fillUp(t, l, now, n/2)
	tried := 0
	for i := range 100 {
		key := "guest-" + strconv.Itoa(i)
		sketched := l.Stats().Rules[0].Sketched
		r := reserveN(l, now, keyEvent(l, key), 1)
		if !r.Decision.Allowed || l.Stats().Rules[0].Sketched == sketched {
			continue
		}
		tried++
		must.Do(t, r.SettleAt(now, n))
		if d := takeKeyN(l, now, key, 1); d.Allowed {
			t.Fatalf("%s was allowed after %d of %d were used: %+v", key, n, n, d)
		}
	}
	if tried < 10 {
		t.Errorf("%d of 100 were counted by the sketch: the test has no teeth", tried)
	}
}
