package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// TestRulesChangeWhileTheProcessStalls has events with times of their own while the process stalls between two changes of a
// rule; the first changes its algorithm. However much time passes on the clock, the window has no more than the limit.
func TestRulesChangeWhileTheProcessStalls(t *testing.T) {
	const n = 14
	for _, stall := range []time.Duration{0, time.Minute, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := limitRule(t, "r", per(n, time.Minute))
			r.Algorithm = ratelimit.Exact
			l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
			allowed := 0
			for range n {
				if takeKeyN(l, at(0), "k", 1).Allowed {
					allowed++
				}
			}
			r.Algorithm = ratelimit.TwoBucket
			must.Do(t, l.Update(mustSet(t, r)))
			time.Sleep(stall) // of the bubble: no event comes meanwhile
			r.Ban = &ratelimit.Ban{After: 1000, Of: ratelimit.Refusals, Span: time.Hour, For: time.Hour}
			must.Do(t, l.Update(mustSet(t, r)))
			for range 2 * n {
				if takeKeyN(l, at(1000), "k", 1).Allowed {
					allowed++
				}
			}
			if allowed != n {
				t.Errorf("stalled for %v: %d of %d are allowed within a second", stall, allowed, n)
			}
		})
	}
}
