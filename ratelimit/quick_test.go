package ratelimit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestTheShortWayIsTheSame takes from one limiter by key, from one by event, and
// from one with outcomes, which goes the long way: all must say the same, for
// every algorithm, with and without a ban, with times that go back.
func TestTheShortWayIsTheSame(t *testing.T) {
	rnd := seeded(t)
	rounds := 40
	if testing.Short() || raceEnabled {
		rounds = 8
	}
	refused, banned := 0, 0
	for _, name := range ratelimit.Algorithms() {
		a, _ := ratelimit.AlgorithmNamed(name)
		for round := range rounds {
			r := limit(t, "r", per(1+rnd.Uint64N(100), time.Second))
			r.Algorithm = a
			if round%3 == 0 {
				r.Ban = &ratelimit.Ban{
					After: rnd.Uint64N(9), Of: ratelimit.Cause(rnd.IntN(2)), Span: time.Second,
					For: 200 * time.Millisecond, Extend: rnd.IntN(2) == 0,
				}
			}
			build := func() *ratelimit.Limiter { return mustLimiter(t, mustSet(t, r), ratelimit.MemoryConfig{}) }
			byKey, byEvent, long := build(), build(), build()
			var e match.Event
			now := int64(0)
			for range 400 {
				now = max(now+rnd.Int64N(60)-5, 0)
				key := string(rune('a' + rnd.IntN(2)))
				e.SetString(match.Client, key)
				cost := rnd.Uint64N(4)
				want, _ := long.JudgeKey(at(now), key, cost, nil)
				for i, got := range []ratelimit.Decision{byKey.TakeKeyAt(at(now), key, cost), byEvent.TakeAt(at(now), &e, cost)} {
					if _, above := want.Err.(*ratelimit.CostError); !sameDecision(got, want) && !above {
						t.Fatalf("%s, way %d, cost %d at %d: %+v, want %+v", name, i, cost, now, got, want)
					}
				}
				if !want.Allowed {
					refused++
				}
				if !want.BannedUntil.IsZero() {
					banned++
				}
			}
			same := func(s ratelimit.Stats) ratelimit.RuleStats { return s.Rules[0] }
			if k, l := same(byKey.Stats()), same(long.Stats()); k != l || k != same(byEvent.Stats()) {
				t.Fatalf("%s: stats are %+v, the long way %+v", name, k, l)
			}
		}
	}
	if refused == 0 || banned == 0 {
		t.Errorf("%d were refused, %d by a ban: the test proves nothing", refused, banned)
	}
}
