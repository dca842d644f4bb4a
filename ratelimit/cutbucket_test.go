package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// A cutTrial charges a bucket far beyond its burst and gives back a part of that; its twin is never charged it.
type cutTrial struct {
	refunded, twin cutSide
}

// A cutSide is a limiter with its store.
type cutSide struct {
	*ratelimit.Limiter
	store *ratelimit.Memory
}

// credit compares both from now on, and returns where the first has more left.
func (c *cutTrial) credit(now time.Time, over time.Duration) string {
	for range 40 {
		a, b := peekKeyN(c.refunded.Limiter, now, "k", 0), peekKeyN(c.twin.Limiter, now, "k", 0)
		if a.Remaining > b.Remaining {
			return fmt.Sprintf("%d left at %v, %d without what was given back", a.Remaining, now, b.Remaining)
		}
		now = now.Add(over / 40)
	}
	return ""
}

// TestRefundOfACutBucket refunds to a bucket that was charged more than it can hold, at once and while it drains, also
// after a restart and under other rules: never more is left than without the charge. Once the bucket has been empty,
// refunds work as for any other.
func TestRefundOfACutBucket(t *testing.T) {
	for _, a := range []ratelimit.Algorithm{ratelimit.GCRA, ratelimit.LeakyBucket} {
		for _, counted := range []bool{false, true} {
			for _, meanwhile := range []string{"nothing", "a restart", "another limit", "another algorithm"} {
				for _, wait := range []time.Duration{0, 30 * time.Second, 110 * time.Second} {
					name := fmt.Sprintf("%v, refused events count: %t, meanwhile %s, after %v", a, counted, meanwhile, wait)
					trial := cutTrial{cutBucket(t, a, counted, 300), cutBucket(t, a, counted, 280)}
					now := at(0).Add(wait)
					takeKeyN(trial.refunded.Limiter, now, "k", 0) // judged since
					trial.refunded, trial.twin = afterCut(t, trial.refunded, meanwhile, now), afterCut(t, trial.twin, meanwhile, now)
					taken := must.Get(mustRule(trial.refunded.Limiter, "r").RefundAt(now, 20, "k"))(t)
					if wrong := trial.credit(now, 3*time.Minute); wrong != "" {
						t.Fatalf("%s: %d given back: %s", name, taken, wrong)
					}
					late := now.Add(10 * time.Minute)
					if !takeKeyN(trial.refunded.Limiter, late, "k", 5).Allowed {
						t.Fatalf("%s: refused after ten minutes", name)
					}
					if taken, err := mustRule(trial.refunded.Limiter, "r").RefundAt(late, 3, "k"); taken != 3 || err != nil {
						t.Fatalf("%s: %d of 3 given back once the bucket was empty, %v", name, taken, err)
					}
				}
			}
		}
	}
}

// cutBucket returns a limiter of 10 a minute that has been charged the amount: by a reservation that cost more in the end,
// or by refused events that count.
func cutBucket(t *testing.T, a ratelimit.Algorithm, counted bool, charged uint64) cutSide {
	t.Helper()
	r := limitRule(t, "r", per(10, time.Minute))
	r.Algorithm, r.CountRefused = a, counted
	m, l := mustMemory(t, mustSet(t, r), ratelimit.Config{})
	if counted {
		for range charged {
			takeKeyN(l, at(0), "k", 1)
		}
		return cutSide{l, m}
	}
	must.Do(t, reserveN(l, at(0), keyEvent(l, "k"), 1).SettleAt(at(0), charged))
	return cutSide{l, m}
}

// afterCut returns l after what happens meanwhile.
func afterCut(t *testing.T, l cutSide, meanwhile string, now time.Time) cutSide {
	t.Helper()
	r := *l.Set().Rules()[0]
	switch meanwhile {
	case "nothing":
		return l
	case "another limit":
		r.Limits = []ratelimit.Limit{per(12, time.Minute)}
	case "another algorithm":
		r.Algorithm, r.Limits = ratelimit.Sliding, []ratelimit.Limit{per(15, time.Minute)}
	case "a restart":
		set := mustSet(t, r)
		m, after := mustMemory(t, set, ratelimit.Config{})
		for chunk := range l.store.ExportAt(now) {
			must.Get(m.ImportAt(now, chunk))(t)
		}
		return cutSide{after, m}
	}
	must.Do(t, l.Update(mustSet(t, r)))
	return l
}
