package latelyredis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// planned returns a rule whose events bring their limit, up to atMost.
func planned(t testing.TB, a ratelimit.Algorithm, n, atMost uint64) *ratelimit.Set {
	t.Helper()
	rule := limited("limit", match.MustKey("path"), a, n)
	rule.Limits[0].AtMost = atMost
	return set(t, rule)
}

// TestRefusalOfALimit has nodes remember refusals of events that bring different limits: a refusal
// under one limit does not refuse events with another.
func TestRefusalOfALimit(t *testing.T) {
	t.Parallel()
	for i := range limit.Algorithms() {
		a := ratelimit.Algorithm(i)
		f := newFleet(t, redis(t), planned(t, a, 2, 8), prefixed())
		take := func(node int, limit uint64) ratelimit.Decision {
			t.Helper()
			d := ruleOf(t, f.limiters[node]).TakeLimit(limit, 1, "/")
			if d.Err != nil || d.Limit != max(limit, 2) {
				t.Fatalf("%v: under %d: %+v", a, limit, d)
			}
			return d
		}
		for step, want := range []struct {
			limit   uint64
			allowed bool
		}{{0, true}, {0, true}, {0, false}, {0, false}, {4, true}, {0, false}, {3, false}, {4, true}, {4, false}, {0, false}, {5, true}, {4, false}, {8, true}, {8, true}, {8, true}, {8, false}, {5, false}} {
			if d := take(step%3, want.limit); d.Allowed != want.allowed {
				t.Errorf("%v: step %d under a limit of %d: %+v, want allowed %v", a, step, want.limit, d, want.allowed)
			}
		}
	}
}

// TestNodesWithOtherLimitsOfEvents has two nodes with different default and largest limits decide about one key, as during a rollout
// of rules: no event is allowed over the N that it brings.
func TestNodesWithOtherLimitsOfEvents(t *testing.T) {
	t.Parallel()
	rng := randtest.New(t)
	for _, a := range []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact} {
		for _, most := range [][2]uint64{{40, 100}, {100, 300}, {129, 128}} {
			var nodes [2]*ratelimit.RuleLimiter
			now, config := clockAt(time.Now().Truncate(time.Hour)), prefixed() // of both
			for i := range nodes {
				nodes[i] = ruleOf(t, nodeAt(t, planned(t, a, 5, most[i]), config, now))
			}
			key, span := fmt.Sprintf("/%v/%d", a, most[0]), time.Minute.Microseconds()
			var allowed []int64
			for range 600 {
				now.Add(rng.Int64N(span / 100))
				i := rng.IntN(2)
				n := 1 + rng.Uint64N(most[i])
				d := nodes[i].TakeLimit(n, 1, key)
				if d.Err != nil {
					t.Fatal(d.Err)
				}
				for len(allowed) > 0 && allowed[0] <= now.Load()-span {
					allowed = allowed[1:]
				}
				if d.Allowed {
					allowed = append(allowed, now.Load())
					if uint64(len(allowed)) > n {
						t.Fatalf("%v, at most %d: an event under %d is the %d in its window", a, most, n, len(allowed))
					}
				}
			}
		}
	}
}
