package latelyredis_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestLockstep compares each decision about random events under random rules with the
// memory store, at the same times.
func TestLockstep(t *testing.T) {
	t.Parallel()
	client := redis(t).client(t)
	rounds, steps := 90, 120
	if testing.Short() {
		rounds = 30
	}
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		now := clockAt(time.Now())
		rules := set(t, randomRules(rnd)...)
		memory := microMemory(t, rules)
		store := storeAt(t, client, rules, prefixed(), now)
		redis := limiterOf(t, rules, store)
		var done []string
		var wait time.Duration
		for range steps {
			if wait > 0 && rnd.IntN(2) == 0 {
				now.Add(wait.Microseconds() - int64(rnd.IntN(2))) // when it is allowed, or just before
			} else {
				now.Add(gap(rnd, rules))
			}
			at, n, peek := time.UnixMicro(now.Load()), cost(rnd, rules), rnd.IntN(5) == 0
			var e match.Event
			e.SetString(match.Path, fmt.Sprint("/", rnd.IntN(2)))
			done = append(done, fmt.Sprintf("at %v: %d for %s, peek %v", at, n, e.Get(match.Path), peek))
			want, _ := outcomes(memory, at, &e, n, peek)
			got, d := outcomes(redis, at, &e, n, peek)
			if wait = d.RetryAfter; wait > limit.MaxSpan/2 {
				wait = 0
			}
			if !slices.Equal(got, want) {
				for i := range rules.Rules() {
					t.Logf("rule %d: %+v", i, *rules.Rules()[i])
				}
				t.Fatalf("seed %d, round %d: after\n%v\nRedis returns\n%+v\nand memory\n%+v", seed, round, done[max(0, len(done)-20):], got, want)
			}
		}
		if got, want := decided(redis), decided(memory); !slices.Equal(got, want) {
			t.Fatalf("seed %d, round %d: the statistics of rules are\n%+v\nand in memory\n%+v", seed, round, got, want)
		}
	}
}

// decided returns what the rules of l have decided.
func decided(l *ratelimit.Limiter) (all []ratelimit.RuleStats) {
	for _, r := range l.Stats().Rules {
		all = append(all, ratelimit.RuleStats{
			Rule: r.Rule, Allowed: r.Allowed, Refused: r.Refused, Banned: r.Banned, Shadow: r.Shadow, Skipped: r.Skipped, BansStarted: r.BansStarted, Limit: r.Limit,
		})
	}
	return all
}

// outcomes returns the outcome of each rule, with waiting times at the precision of Redis, and last the decision.
func outcomes(l *ratelimit.Limiter, at time.Time, e *match.Event, n uint64, peek bool) (all []string, d ratelimit.Decision) {
	var outs []ratelimit.Outcome
	if peek {
		d, _ = l.Internal().JudgeAt(at, &batch.Query{Event: e, Cost: n, Peek: true}, nil)
	} else {
		d, outs = l.Internal().JudgeAt(at, &batch.Query{Event: e, Cost: n}, nil)
	}
	micros := func(d time.Duration) time.Duration {
		return (d + time.Microsecond - 1).Truncate(time.Microsecond)
	}
	for _, o := range outs {
		all = append(all, fmt.Sprintf("%d: refused %v charged %v banned %v until %v started %v skipped %v limit %d of %d remaining %d retry %v reset %v delay %v",
			o.Rule, o.Refused, o.Charged, o.Banned, o.BannedUntil, o.Started, o.Skipped, o.LimitIndex, o.Limit, o.Remaining, micros(o.RetryAfter), micros(o.ResetAfter), micros(o.Delay)))
	}
	return append(all, fmt.Sprintf("%v by %q, limit %d remaining %d retry %v reset %v delay %v, %v", d.Allowed, d.Rule, d.Limit, d.Remaining,
		micros(d.RetryAfter), micros(d.ResetAfter), micros(d.Delay), d.Err)), d
}

// randomRules returns rules of one key.
func randomRules(rnd *rand.Rand) (rules []ratelimit.Rule) {
	single := rnd.IntN(2) == 0 // a rule with one limit has scripts of its own
	for i := range 1 + rnd.IntN(3) {
		r := ratelimit.Rule{Name: fmt.Sprint("r", i), Key: match.MustKey("path"), Algorithm: ratelimit.Algorithm(rnd.IntN(len(limit.Algorithms())))}
		r.Shadow, r.CountRefused = rnd.IntN(4) == 0, rnd.IntN(4) == 0
		switch r.Algorithm {
		case ratelimit.InFlight:
			r.CountRefused = false
		case ratelimit.GCRA, ratelimit.LeakyBucket:
			// At its highest, a bucket in memory is short of that by less than a
			// nanosecond. TestConforms has these, beside fractions.
			r.CountRefused = false
		}
		for range 1 + rnd.IntN(3) {
			r.Limits = append(r.Limits, randomLimit(rnd, r.Algorithm))
		}
		if rnd.IntN(3) == 0 {
			r.Ban = randomBan(rnd)
			if r.Ban.Of == ratelimit.Hits && rnd.IntN(2) == 0 {
				r.Algorithm, r.Limits, r.CountRefused = ratelimit.Sliding, nil, false
			}
		}
		if single && len(r.Limits) > 0 {
			r.Limits, r.Shadow, r.CountRefused = r.Limits[:1], false, false
			return []ratelimit.Rule{r}
		}
		rules = append(rules, r)
	}
	return rules
}

func randomBan(rnd *rand.Rand) *ratelimit.Ban {
	spans := []time.Duration{time.Millisecond, 48 * time.Millisecond, time.Second, time.Hour, 24 * time.Hour, limit.MaxSpan}
	b := &ratelimit.Ban{
		After: []uint64{0, 1, 2, 5, 20}[rnd.IntN(5)], Of: ratelimit.Cause(rnd.IntN(2)), Span: spans[rnd.IntN(6)],
		Extend: rnd.IntN(4) == 0, Remember: []time.Duration{0, time.Millisecond, time.Hour}[rnd.IntN(3)],
	}
	switch rnd.IntN(3) {
	case 0:
		b.For = spans[rnd.IntN(5)]
	case 1:
		b.For, b.Factor = spans[rnd.IntN(4)], []float64{1, 1.0001, 1.7, 2, 1000}[rnd.IntN(5)]
		b.Max = b.For * time.Duration(1+rnd.IntN(100))
	case 2:
		b.Steps = []time.Duration{spans[rnd.IntN(5)], spans[rnd.IntN(5)], spans[rnd.IntN(5)]}
		b.Max = (b.Steps[0] * 3 / 2).Truncate(time.Millisecond)
	}
	return b
}

func randomLimit(rnd *rand.Rand, a ratelimit.Algorithm) ratelimit.Limit {
	l := ratelimit.Limit{N: []uint64{0, 1, 3, 10, 100, 128, 129, 300, 1000, 70_000, limit.MaxN}[rnd.IntN(11)]}
	switch a {
	case ratelimit.Calendar:
		l.Per = ratelimit.PerSecond + ratelimit.Period(rnd.IntN(6))
		return l
	case ratelimit.Exact, ratelimit.InFlight:
		l.N = min(l.N, 1000)
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		if l.N > 0 && rnd.IntN(2) == 0 {
			l.Burst = 1 + rnd.Uint64N(min(2*l.N, limit.MaxN))
		}
	}
	l.Span = []time.Duration{1, 7, 48, 100, 997, 1000, 60_000, 3_600_001, 315_360_000_000}[rnd.IntN(9)] * time.Millisecond
	if l.Span == limit.MaxSpan {
		l.Burst = min(l.Burst, l.N) // more would take longer than that to drain
	}
	return l
}

// someLimit returns the span and what can be used of some limit.
func someLimit(rnd *rand.Rand, s *ratelimit.Set) (span time.Duration, n uint64) {
	r := s.Rules()[rnd.IntN(len(s.Rules()))]
	if len(r.Limits) == 0 {
		return r.Ban.Span, max(r.Ban.After, 1)
	}
	l := r.Limits[rnd.IntN(len(r.Limits))]
	return l.Window(), max(l.N, l.Burst, 1)
}

// gap returns the microseconds between two events.
func gap(rnd *rand.Rand, s *ratelimit.Set) int64 {
	span, n := someLimit(rnd, s)
	width := max(span.Microseconds()/60, 1)
	switch rnd.IntN(10) {
	case 0:
		return 0
	case 2:
		return min(width*rnd.Int64N(130), 4*365*24*3600e6) // years, but not so many that time ends
	case 3:
		return min(width, 3600e6)
	}
	return rnd.Int64N(min(2*span.Microseconds()/int64(min(n, 100)), 3600e6) + 1)
}

func cost(rnd *rand.Rand, s *ratelimit.Set) uint64 {
	_, n := someLimit(rnd, s)
	switch rnd.IntN(12) {
	case 0:
		return rnd.Uint64N(n + 2)
	case 1, 2:
		return rnd.Uint64N(2 + n/8)
	case 3:
		return []uint64{0, 1 << 32, 1<<53 - 1, 1 << 63}[rnd.IntN(4)]
	}
	return 1
}
