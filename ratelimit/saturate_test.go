package ratelimit_test

import (
	"math"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

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
