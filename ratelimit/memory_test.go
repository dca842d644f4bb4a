package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func mustKey(t testing.TB, fields ...string) match.Key {
	t.Helper()
	k := must.Get(match.NewKey(match.Fold{Off: true}, fields...))(t)
	return k
}

func mustSet(t testing.TB, rules ...ratelimit.Rule) *ratelimit.Set {
	t.Helper()
	s := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, rules...))(t)
	return s
}

func mustLimiter(t testing.TB, s *ratelimit.Set, c ratelimit.Config) *ratelimit.Limiter {
	t.Helper()
	m := must.Get(ratelimit.NewMemory(s, c))(t)
	return ratelimit.Over(s, m)
}

func at(ms int64) time.Time { return time.UnixMilli(ms) }

// randomRules returns a few rules that interfere with each other.
func randomRules(t testing.TB, rnd *rand.Rand) []ratelimit.Rule {
	keys := []match.Key{mustKey(t, "client"), mustKey(t, "path"), mustKey(t, "client", "path")}
	span := func(most int) time.Duration { return time.Duration(1+rnd.IntN(most)) * time.Millisecond }
	var rules []ratelimit.Rule
	for i := range 1 + rnd.IntN(5) {
		r := ratelimit.Rule{
			Name: fmt.Sprint("rule-", i), Key: keys[rnd.IntN(len(keys))], Algorithm: ratelimit.Exact,
			Shadow: rnd.IntN(4) == 0, CountRefused: rnd.IntN(3) == 0,
		}
		if rnd.IntN(3) == 0 {
			r.When.Path = []string{"/a*"}
		}
		for range rnd.IntN(3) {
			r.Limits = append(r.Limits, ratelimit.Limit{N: uint64(rnd.IntN(7)), Span: span(60)})
		}
		if len(r.Limits) == 0 || rnd.IntN(2) == 0 {
			r.Ban = &ratelimit.Ban{After: uint64(rnd.IntN(6)), Span: span(60), For: span(60), Remember: span(200)}
			if len(r.Limits) > 0 && rnd.IntN(2) == 0 {
				r.Ban.Of = ratelimit.Refusals
			}
			if rnd.IntN(2) == 0 {
				r.Ban.Factor, r.Ban.Max = 1+2*rnd.Float64(), r.Ban.For+span(300)
			}
		}
		rules = append(rules, r)
	}
	return rules
}

// TestMemoryAgainstReference judges random events under random rule sets and
// compares every outcome with the definitions.
func TestMemoryAgainstReference(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 3000
	if testing.Short() {
		rounds = 300
	}
	denied := 0
	for range rounds {
		rules := randomRules(t, rnd)
		set := mustSet(t, rules...)
		limiter := mustLimiter(t, set, ratelimit.Config{Budget: -1}) // since times go back
		ref := newReference(set, rules)
		now := int64(rnd.IntN(2000)) - 1000 // either side of 1970
		var outcomes []ratelimit.Outcome
		for step := range 120 {
			switch rnd.IntN(10) {
			case 0:
				now += int64(rnd.IntN(100))
			case 1:
				now -= int64(rnd.IntN(20)) // the clock is set back
			default:
				now += int64(rnd.IntN(4))
			}
			var e match.Event
			if rnd.IntN(12) > 0 {
				e.SetString(match.Client, string(rune('a'+rnd.IntN(3))))
			}
			e.SetString(match.Path, []string{"/a", "/b", "/ab"}[rnd.IntN(3)])
			cost := uint64(1)
			switch rnd.IntN(10) {
			case 0, 1:
				cost += uint64(rnd.IntN(8))
			case 2:
				cost = 0 // only looks
			}
			var d ratelimit.Decision
			d, outcomes = limiter.Judge(at(now), &e, cost, outcomes[:0])
			want := ref.judge(now*1e6, &e, cost)
			if !d.Allowed {
				denied++
			}
			if diff := differs(d, outcomes, want); diff != "" {
				t.Fatalf("step %d: %s\nrules %+v\ndecision %+v\noutcomes %+v", step, diff, rules, d, outcomes)
			}
		}
	}
	if denied == 0 {
		t.Error("nothing was ever denied: the test has no teeth")
	}
}

func differs(d ratelimit.Decision, outcomes []ratelimit.Outcome, want refVerdict) string {
	if d.Allowed != want.allowed {
		return fmt.Sprintf("allowed %v, want %v", d.Allowed, want.allowed)
	}
	if len(outcomes) != len(want.rules) {
		return fmt.Sprintf("%d outcomes, want %d", len(outcomes), len(want.rules))
	}
	for _, o := range outcomes {
		w := want.rules[o.Rule]
		if o.Refused != w.refused || o.Banned != w.banned || o.Started != w.started || o.Skipped != w.skipped {
			return fmt.Sprintf("rule %d: refused, banned, started, skipped %v %v %v %v, want %v %v %v %v",
				o.Rule, o.Refused, o.Banned, o.Started, o.Skipped, w.refused, w.banned, w.started, w.skipped)
		}
		if o.Banned && o.BannedUntil.UnixNano() != w.until {
			return fmt.Sprintf("rule %d: banned until %d, want %d", o.Rule, o.BannedUntil.UnixNano(), w.until)
		}
		if o.Remaining > o.Limit {
			return fmt.Sprintf("rule %d: remaining %d above the limit %d", o.Rule, o.Remaining, o.Limit)
		}
	}
	return ""
}

// TestKeysSharingBytes hands the store keys that begin at one byte but are of
// different lengths: they are different keys.
func TestKeysSharingBytes(t *testing.T) {
	set := mustSet(t, limitRule(t, "a", per(5, time.Second)), limitRule(t, "b", per(5, time.Second)))
	m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{}))(t)
	buffer := []byte("key")
	left := func(a, b []byte) (uint64, uint64) {
		r := ratelimit.Request{Set: set, Cost: 1, Subjects: []ratelimit.Subject{{Key: a}, {Key: b, Outcome: ratelimit.StoreOutcome{Rule: 1}}}}
		must.Do(t, m.Decided(&r))
		return r.Subjects[0].Outcome.Remaining, r.Subjects[1].Outcome.Remaining
	}
	left(buffer, buffer[:2])
	if a, b := left(buffer, buffer); a != 3 || b != 4 {
		t.Errorf("%d and %d left, want 3 and 4", a, b)
	}
	if a, b := left(buffer[:2], buffer[:2]); a != 4 || b != 3 {
		t.Errorf("%d and %d left, want 4 and 3", a, b)
	}
}
