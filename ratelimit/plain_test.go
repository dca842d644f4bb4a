package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// severalRules returns two to five rules of all kinds on one key; most are plain.
func severalRules(t testing.TB, rnd *rand.Rand) (rules []ratelimit.Rule) {
	for i := range 2 + rnd.IntN(4) {
		r := bannedRule(t, rnd)
		r.Name = fmt.Sprint("r", i)
		if rnd.IntN(8) > 0 && len(r.Limits) > 0 {
			r.Limits, r.Shadow, r.CountRefused = r.Limits[:1], false, false
			if r.Ban != nil {
				r.Ban.Of, r.Ban.Extend = ratelimit.Refusals, false
			}
		}
		rules = append(rules, r)
	}
	return rules
}

// TestPlainRulesDecideAlike compares the decisions and outcomes of two limiters. The second has one
// more rule, a shadow rule: it refuses nothing, but keeps judgePlain from judging.
func TestPlainRulesDecideAlike(t *testing.T) {
	rnd := randtest.New(t)
	rounds, events := 60, 1000
	if testing.Short() {
		rounds, events = 20, 500
	}
	c := ratelimit.Config{Budget: -1} // times go back, so nothing may expire before its end
	allowed, refused := 0, 0
	for range rounds {
		rules := severalRules(t, rnd)
		shadow := limitRule(t, "shadow", per(1, time.Hour))
		shadow.Shadow = true
		short := mustLimiter(t, mustSet(t, rules...), c)
		long := mustLimiter(t, mustSet(t, append(rules, shadow)...), c)
		step, now := int64(1+rnd.IntN(1e9)), int64(1_700_000_000e9)
		var a, b []ratelimit.Outcome
		for range events {
			now += rnd.Int64N(step)
			key, cost, back := attackKeys[rnd.IntN(4)], uint64(rnd.IntN(4)), rnd.Int64N(8)*rnd.Int64N(step)/8
			var da, db ratelimit.Decision
			da, a = short.Judge(time.Unix(0, now-back), keyEvent(short, key), cost, a[:0])
			db, b = long.Judge(time.Unix(0, now-back), keyEvent(long, key), cost, b[:0])
			da.Err, db.Err = nil, nil // errors with the same text are different values
			if da != db {
				t.Fatalf("%+v: alone %+v, with a shadow rule %+v", rules, da, db)
			}
			for i := range a {
				if a[i].Set, b[i].Set = nil, nil; a[i] != b[i] {
					t.Fatalf("%+v: alone %+v, with a shadow rule %+v", rules[a[i].Rule], a[i], b[i])
				}
			}
			if da.Allowed {
				allowed++
			} else {
				refused++
			}
		}
		sa, sb := short.Stats().Rules, long.Stats().Rules
		for i := range rules {
			sa[i].Bans, sb[i].Bans = 0, 0 // as of a time that depends on the seeds of the tables
			if sa[i] != sb[i] {
				t.Fatalf("%+v: alone %+v, with a shadow rule %+v", rules[i], sa[i], sb[i])
			}
		}
	}
	if allowed < rounds*events/20 || refused < rounds*events/20 {
		t.Errorf("%d allowed, %d refused: the test has no teeth", allowed, refused)
	}
}

// TestPlainRulesAfterCut refunds an event that several plain rules have allowed, after a bucket that was charged far beyond
// its burst is empty again: the cut no longer matters.
func TestPlainRulesAfterCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bucket := limitRule(t, "bucket", per(10, time.Minute))
		bucket.Algorithm = ratelimit.GCRA
		l := mustLimiter(t, mustSet(t, bucket, limitRule(t, "window", per(1000, time.Minute))), ratelimit.Config{})
		rule := must.Get(l.Rule("bucket"))(t)
		event := keyEvent(l, "k")
		refunded := func() uint64 {
			n := must.Get(rule.Refund(1, "k"))(t)
			return n
		}
		if l.Take(event); rule.Charge(300, "k") != nil || refunded() != 0 {
			t.Error("a bucket that was cut gives something back")
		}
		time.Sleep(time.Hour)
		if d := l.Take(event); !d.Allowed {
			t.Errorf("the bucket is not empty after an hour: %+v", d)
		}
		if n := refunded(); n != 1 {
			t.Errorf("%d refunded of the event after the bucket was empty, want 1", n)
		}
	})
}
