package limits

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// ours is each algorithm under two limits, and more than one limit: a limit with a ban, eight rules on one key.
func ours() []subject {
	var all []subject
	for _, a := range limit.Algorithms() {
		for _, n := range []uint64{60, usual} {
			all = append(all, subject{
				name: fmt.Sprintf("ratelimit,%s,%d-a-minute", a, n),
				make: func(_ int, limit uint64) limiter { return newLimiter(ruleOf(a, limit)) },
				// 60 is the form of sliding that is exact, and few keys pass.
				limit: n, span: time.Minute, series: n == usual || a == "sliding", err: refusal(a, n),
			})
		}
	}
	return append(all,
		subject{name: "ratelimit,sliding,ban", make: func(_ int, limit uint64) limiter { return newLimiter(ruleWithBan(limit)) }, limit: usual, span: time.Minute, series: true},
		subject{name: "ratelimit,sliding,8-rules", make: func(_ int, limit uint64) limiter { return newLimiter(eightRules(limit)...) }, limit: usual, span: time.Minute, series: true, most: 100_000},
	)
}

// refusal returns why there is no such rule.
func refusal(algorithm string, limit uint64) error {
	_, err := ratelimit.NewSet(ratelimit.SetConfig{}, ruleOf(algorithm, limit))
	return err
}

// ruleOf returns a rule of n events a minute. A log cannot have plenty: it
// then has its largest limit a millisecond, which is not reached either.
func ruleOf(algorithm string, n uint64) ratelimit.Rule {
	a, err := limit.AlgorithmNamed(algorithm)
	if err != nil {
		panic(err)
	}
	l := ratelimit.Limit{N: n, Span: time.Minute}
	if (a == ratelimit.Exact || a == ratelimit.InFlight) && n == plenty {
		l = ratelimit.Limit{N: limit.MaxLog, Span: time.Millisecond}
	}
	return rule(algorithm, a, l)
}

func rule(name string, a ratelimit.Algorithm, l ratelimit.Limit) ratelimit.Rule {
	key, err := match.NewKey(match.Fold{}, "user")
	if err != nil {
		panic(err)
	}
	return ratelimit.Rule{Name: name, Key: key, Algorithm: a, Limits: []ratelimit.Limit{l}}
}

func ruleWithBan(limit uint64) ratelimit.Rule {
	r := ruleOf("sliding", limit)
	r.Ban = &ratelimit.Ban{After: 20, Of: ratelimit.Refusals, Span: 5 * time.Minute, For: 10 * time.Minute}
	return r
}

// eightRules allow n a minute, over spans from a minute to a day.
func eightRules(n uint64) (rules []ratelimit.Rule) {
	for i, m := range []time.Duration{1, 2, 5, 10, 30, 60, 360, 1440} {
		l := ratelimit.Limit{N: min(n*uint64(m), limit.MaxN), Span: m * time.Minute}
		rules = append(rules, rule(fmt.Sprint("rule-", i), ratelimit.Sliding, l))
	}
	return rules
}

// A rateLimiter judges a key under its one rule.
type rateLimiter struct{ *ratelimit.RuleLimiter }

// A rulesLimiter judges a key under all its rules.
type rulesLimiter struct{ *ratelimit.Limiter }

func newLimiter(rules ...ratelimit.Rule) limiter {
	l, err := ratelimit.New(rules...)
	if err != nil {
		panic(err)
	}
	if len(rules) > 1 {
		return rulesLimiter{l}
	}
	r, err := l.Rule(rules[0].Name)
	if err != nil {
		panic(err)
	}
	return rateLimiter{r}
}

func (w rateLimiter) Take(key string) bool { return w.RuleLimiter.Take(key).Allowed }

// TakeAt takes at a time that the caller has.
func (w rateLimiter) TakeAt(t time.Time, key string) bool {
	return w.RuleLimiter.TakeAt(t, 1, key).Allowed
}

func (w rulesLimiter) Take(key string) bool {
	var e match.Event
	e.SetString(match.User, key)
	return w.Limiter.Take(&e).Allowed
}

func (w rulesLimiter) TakeAt(t time.Time, key string) bool {
	var e match.Event
	e.SetString(match.User, key)
	return w.Limiter.TakeAt(t, &e, 1).Allowed
}
