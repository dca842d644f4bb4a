package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// retryRule returns a rule with that algorithm and one limit or two, which refuses
// for one reason or another.
func retryRule(t testing.TB, rnd *rand.Rand, name string, a ratelimit.Algorithm) ratelimit.Rule {
	r := limitRule(t, name)
	r.Algorithm, r.CountRefused = a, rnd.IntN(4) == 0 && a != ratelimit.InFlight
	if a == ratelimit.Calendar && rnd.IntN(2) == 0 {
		r.Zone = newYork(t)
	}
	for range 1 + rnd.IntN(2) {
		l := per(1+rnd.Uint64N(8), time.Duration(1+rnd.IntN(2000))*time.Millisecond)
		if rnd.IntN(4) == 0 {
			l.N += 100 + rnd.Uint64N(200)
		}
		switch a {
		case ratelimit.Calendar:
			l.Span, l.Per = 0, ratelimit.PerSecond+ratelimit.Period(rnd.IntN(6))
		case ratelimit.GCRA, ratelimit.LeakyBucket:
			l.Burst = rnd.Uint64N(2 * l.N)
		}
		r.Limits = append(r.Limits, l)
	}
	return r
}

// retryBan returns a ban that begins soon.
func retryBan(rnd *rand.Rand) *ratelimit.Ban {
	return &ratelimit.Ban{
		After: 1 + rnd.Uint64N(12), Of: ratelimit.Cause(rnd.IntN(2)), Extend: rnd.IntN(3) == 0, Factor: 1 + rnd.Float64(),
		Span: time.Duration(1+rnd.IntN(2000)) * time.Millisecond, For: time.Duration(1+rnd.IntN(2000)) * time.Millisecond,
		Max: 10 * time.Second, Jitter: 0.2 * rnd.Float64(), Remember: 5 * time.Second,
	}
}

// retryRules returns rules of all kinds together, on two keys.
func retryRules(t testing.TB, rnd *rand.Rand) (rules []ratelimit.Rule) {
	for i := range 1 + rnd.IntN(4) {
		r := retryRule(t, rnd, fmt.Sprint("r", i), ratelimit.Algorithm(rnd.IntN(len(limit.Algorithms()))))
		r.Shadow = rnd.IntN(8) == 0
		if rnd.IntN(3) == 0 {
			r.Key = mustKey(t, "path")
		}
		if rnd.IntN(3) == 0 {
			if r.Ban = retryBan(rnd); r.Ban.Of == ratelimit.Hits && rnd.IntN(3) == 0 {
				r.Limits = nil
			}
		}
		rules = append(rules, r)
	}
	return rules
}

// A patient client waits after each refusal for the RetryAfter that it received.
type patient struct {
	take, peek func(now int64, cost uint64) ratelimit.Decision
	resolution int64 // what its times are multiples of
	now        int64

	refusals, hasty int
	refused         func(d *ratelimit.Decision) // is called with each refusal
	lie             string                      // the first retry-after that was not true
}

// patientOf returns a client under rules, which takes by event, or by key where all rules have one key.
func patientOf(t testing.TB, rules []ratelimit.Rule, resolution time.Duration, byKey bool) *patient {
	l := mustLimiter(t, mustSet(t, rules...), ratelimit.Config{Budget: -1, Bans: 1000, Resolution: resolution})
	r := max(int64(resolution), 1)
	p := &patient{now: floorTo(1_700_000_000e9, r), resolution: r, refused: func(*ratelimit.Decision) {}}
	if byKey {
		p.take = func(now int64, cost uint64) ratelimit.Decision { return takeKeyN(l, time.Unix(0, now), "k", cost) }
		p.peek = func(now int64, cost uint64) ratelimit.Decision { return peekKeyN(l, time.Unix(0, now), "k", cost) }
		return p
	}
	var e match.Event
	e.SetString(match.Client, "a")
	e.SetString(match.Path, "/a")
	p.take = func(now int64, cost uint64) ratelimit.Decision { return l.TakeAt(time.Unix(0, now), &e, cost) }
	p.peek = func(now int64, cost uint64) ratelimit.Decision { return l.PeekN(time.Unix(0, now), &e, cost) }
	return p
}

// live sends events, alone, until a RetryAfter is wrong.
func (p *patient) live(rnd *rand.Rand, events int, pause int64) {
	for range events {
		if p.lie != "" {
			return
		}
		cost := 1 + rnd.Uint64N(3)
		d := p.take(p.now, cost)
		for !d.Allowed && d.RetryAfter != ratelimit.Never && p.lie == "" {
			d = p.wait(rnd, cost, d)
		}
		p.now += floorTo(rnd.Int64N(pause), p.resolution)
	}
}

// wait waits for d after the refusal, takes again, and returns the decision. Now and then it takes too early, and receives
// another RetryAfter.
func (p *patient) wait(rnd *rand.Rand, cost uint64, d ratelimit.Decision) ratelimit.Decision {
	p.refusals++
	p.refused(&d)
	then := p.now + int64(d.RetryAfter)
	if d.RetryAfter <= 0 {
		p.lie = fmt.Sprintf("refused, and told to wait for %v", d.RetryAfter)
		return d
	}
	if early := p.peek(then-1, cost); early.Allowed {
		p.lie = fmt.Sprintf("refused with %+v, and allowed 1 ns before that: %+v", d, early)
	}
	if early := floorTo(then-1, p.resolution); early > p.now && rnd.IntN(8) == 0 {
		p.hasty++
		p.now = early
		if d = p.take(p.now, cost); d.Allowed {
			p.lie = fmt.Sprintf("allowed too early, with %+v", d)
		}
		return d
	}
	p.now = floorTo(then+p.resolution-1, p.resolution)
	again := p.take(p.now, cost)
	if !again.Allowed {
		p.lie = fmt.Sprintf("refused with %+v, waited, and refused again: %+v", d, again)
	}
	return again
}

// TestRetryAfterIsTrue has a lone client wait after each of 1e5 refusals (in the long form) of each algorithm, and of rules
// and bans of all kinds together: it is allowed then, every time, and not a nanosecond before.
func TestRetryAfterIsTrue(t *testing.T) {
	refusals := 10_000
	switch {
	case longForm():
		refusals = 100_000
	case testing.Short():
		refusals = 1_000
	}
	lives := func(t *testing.T, refused func(d *ratelimit.Decision), some func(rnd *rand.Rand) ([]ratelimit.Rule, bool)) {
		rnd := randtest.New(t)
		hasty, total := 0, 0
		for total < refusals {
			rules, byKey := some(rnd)
			var resolution time.Duration
			if rnd.IntN(4) == 0 {
				resolution = []time.Duration{7, time.Microsecond, 3 * time.Millisecond, time.Second}[rnd.IntN(4)]
			}
			p := patientOf(t, rules, resolution, byKey)
			if refused != nil {
				p.refused = refused
			}
			p.live(rnd, 40, int64(1)<<rnd.IntN(29))
			if total, hasty = total+p.refusals, hasty+p.hasty; p.lie != "" {
				t.Fatalf("%s\nrules %+v, resolution %v", p.lie, rules, resolution)
			}
		}
		if hasty == 0 {
			t.Error("nobody came too early: the test has no teeth")
		}
		t.Logf("%d refusals, after %d of which the client came too early: all true", total, hasty)
	}
	for i, name := range limit.Algorithms() {
		t.Run(name, func(t *testing.T) {
			lives(t, nil, func(rnd *rand.Rand) ([]ratelimit.Rule, bool) {
				return []ratelimit.Rule{retryRule(t, rnd, "r", ratelimit.Algorithm(i))}, true
			})
		})
	}
	t.Run("together", func(t *testing.T) {
		kinds := make(map[string]int) // refusals by what refused
		var rules []ratelimit.Rule
		refused := func(d *ratelimit.Decision) {
			what := "a ban"
			if d.BannedUntil.IsZero() {
				what = rules[d.Rule[1]-'0'].Algorithm.String()
			}
			kinds[what]++
		}
		lives(t, refused, func(rnd *rand.Rand) ([]ratelimit.Rule, bool) {
			rules = retryRules(t, rnd)
			return rules, false
		})
		if all := len(limit.Algorithms()) + 1; len(kinds) < all && !testing.Short() {
			t.Errorf("refusals by kind: %v, want refusals of all %d kinds", kinds, all)
		}
	})
}

// TestFalseRetryAfterIsCaught gives clients a RetryAfter that is a little too short, and a little too long.
func TestFalseRetryAfterIsCaught(t *testing.T) {
	rnd := randtest.New(t)
	for i := range limit.Algorithms() {
		for _, by := range []time.Duration{-1, 1, time.Millisecond} {
			r := limitRule(t, "r", per(3, time.Second))
			if r.Algorithm = ratelimit.Algorithm(i); r.Algorithm == ratelimit.Calendar {
				r.Limits = []ratelimit.Limit{{N: 3, Per: ratelimit.PerSecond}}
			}
			p := patientOf(t, []ratelimit.Rule{r}, 0, true)
			take := p.take
			p.take = func(now int64, cost uint64) ratelimit.Decision {
				d := take(now, cost)
				if !d.Allowed && d.RetryAfter != ratelimit.Never {
					d.RetryAfter += by
				}
				return d
			}
			if p.live(rnd, 200, int64(100*time.Millisecond)); p.lie == "" {
				t.Errorf("%v: nobody notices a retry-after that is off by %v", r.Algorithm, by)
			}
		}
	}
}
