package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// TestAdaptedLimitProtects lets traffic bring a limit of 2,000 down to 100, and
// then a flood of new keys fill the budget: a key that was just refused is not
// evicted for it. N as it stands in the rule would protect from 1,000 on.
func TestAdaptedLimitProtects(t *testing.T) {
	r := limitRule(t, "r", per(2000, time.Hour))
	r.Adapt = &ratelimit.Adapt{Span: time.Second, Steps: []ratelimit.AdaptStep{{Below: 50, Limit: 2000}}, Above: 100}
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{Budget: 4 << 20})
	now := time.Unix(1_700_000_000, 0)
	step := func() time.Time { now = now.Add(time.Millisecond); return now } // 1,000 a second
	for i := range 3000 {
		takeKeyN(l, step(), fmt.Sprint("first ", i%10), 1)
	}
	if n := l.Stats().Rules[0].Limit; n != 100 {
		t.Fatalf("the limit is %d, want 100", n)
	}
	allowed := 0
	for takeKeyN(l, step(), "victim", 1).Allowed {
		allowed++
	}
	for i := range 60_000 {
		takeKeyN(l, step(), fmt.Sprint("other ", i), 1)
	}
	if l.Stats().Rules[0].Evicted == 0 {
		t.Fatal("nothing was evicted: the test has no teeth")
	}
	if d := takeKeyN(l, step(), "victim", 1); d.Allowed || allowed != 100 {
		t.Errorf("after %d allowed of 100 and a flood: %+v", allowed, d)
	}
}
