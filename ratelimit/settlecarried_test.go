package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// TestSettleAfterALongerSpan gives back what had left the window before an Update made it longer: the counts of other
// events stay.
func TestSettleAfterALongerSpan(t *testing.T) {
	const n = 100
	rule := func(a ratelimit.Algorithm, l ratelimit.Limit) ratelimit.Rule {
		r := limitRule(t, "r", l)
		if r.Algorithm = a; a == ratelimit.Calendar {
			r.Limits[0].Per, r.Limits[0].Span = ratelimit.PerHour, 0
			if l.Span == time.Second {
				r.Limits[0].Per = ratelimit.PerSecond
			}
		}
		return r
	}
	algorithms := []ratelimit.Algorithm{
		ratelimit.Sliding, ratelimit.Exact, ratelimit.TwoBucket, ratelimit.GCRA,
		ratelimit.LeakyBucket, ratelimit.Fixed, ratelimit.Calendar,
	}
	for _, was := range algorithms {
		for _, is := range algorithms {
			t.Run(fmt.Sprintf("%v to %v", was, is), func(t *testing.T) {
				l := mustLimiter(t, mustSet(t, rule(was, per(n, time.Second))), ratelimit.Config{})
				gone := reserveN(l, at(0), keyEvent(l, "k"), 50)
				takeKeyN(l, at(3000), "k", 1) // it is not counted any more
				update := func(span time.Duration) {
					must.Do(t, l.Update(mustSet(t, rule(is, per(n, span)))))
				}
				update(time.Hour)
				stays := reserveN(l, at(3000), keyEvent(l, "k"), 40)
				if !gone.Decision.Allowed || !stays.Decision.Allowed {
					t.Fatalf("refused: %+v, %+v", gone.Decision, stays.Decision)
				}
				before := peekKeyN(l, at(3000), "k", 0).Remaining
				must.Do(t, gone.SettleAt(at(3000), 0))
				if d := peekKeyN(l, at(3000), "k", 0); d.Remaining != before {
					t.Errorf("%d of %d are left, and %d after what was gone is given back", before, n, d.Remaining)
				}
				must.Do(t, stays.SettleAt(at(3000), 0))
				if d := peekKeyN(l, at(3000), "k", 0); d.Remaining != before+40 {
					t.Errorf("of 40 reserved under these rules %d were given back", d.Remaining-before)
				}
			})
		}
	}
}

// TestSettleAfterALostTime gives back, after an Update, what was counted when a log had already dropped a time that still
// counts: the dropped time must not let another event in.
func TestSettleAfterALostTime(t *testing.T) {
	for _, update := range []bool{false, true} {
		r := limitRule(t, "r", per(2, time.Second))
		r.Algorithm, r.CountRefused = ratelimit.Exact, true
		l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
		takeKeyN(l, at(0), "k", 1)
		b := reserveN(l, at(1), keyEvent(l, "k"), 1)
		if takeKeyN(l, at(2), "k", 1).Allowed {
			t.Fatal("a third of two is allowed")
		}
		if update {
			r.Limits = []ratelimit.Limit{per(2, 2*time.Second)}
			must.Do(t, l.Update(mustSet(t, r)))
		}
		must.Do(t, b.SettleAt(at(3), 0))
		if d := takeKeyN(l, at(3), "k", 1); d.Allowed {
			t.Errorf("update %v: after the second of three is given back, a fourth of two is allowed", update)
		}
	}
}
