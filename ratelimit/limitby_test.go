package ratelimit_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A planned event is an event of a trace, whose customer may have changed plans
// before it.
type planned struct {
	at   int64 // since the beginning of the trace
	cost uint64
	n    uint64 // 0 is the default
}

const plannedSpan = time.Minute

// plannedTrace returns the events of one key: bursts and pauses, some of them longer than a window; N changes now and then.
func plannedTrace(rng *rand.Rand, atMost uint64) (trace []planned) {
	n, t := rng.Uint64N(atMost+1), int64(0)
	for range 8 + rng.IntN(40) {
		switch rng.IntN(12) {
		case 0:
			n = rng.Uint64N(atMost + 1)
		case 1:
			n = max(1, rng.Uint64N(4)) // a downgrade to nearly nothing
		case 2:
			n = atMost
		}
		switch rng.IntN(16) {
		case 0:
			t += rng.Int64N(3 * int64(plannedSpan))
		case 1:
			t += int64(plannedSpan)
		case 2, 3, 4:
		default:
			t += rng.Int64N(int64(plannedSpan) / 8)
		}
		trace = append(trace, planned{t, 1 + rng.Uint64N(3)*rng.Uint64N(atMost/8+1), n})
	}
	return trace
}

// plannedRule is a rule that reads the N of a client from the field plan.
func plannedRule(a ratelimit.Algorithm, n, atMost uint64, key ...string) ratelimit.Rule {
	l := ratelimit.Limit{N: n, Span: plannedSpan, AtMost: atMost}
	if a == ratelimit.Calendar {
		l.Span, l.Per = 0, ratelimit.PerMinute
	}
	return ratelimit.Rule{
		Name: "planned", Key: match.MustKey(key...), Algorithm: a,
		Limits: []ratelimit.Limit{l}, LimitBy: &ratelimit.LimitBy{Field: "plan"},
	}
}

// overPlan judges traces under a rule, and returns the first wrong decision: more than the N
// of the event, or a refusal without need.
func overPlan(t *testing.T, rng *rand.Rand, rule ratelimit.Rule, traces int) string {
	t.Helper()
	const n, perLimiter = 10, 2000
	atMost := rule.Limits[0].AtMost
	var limiter *ratelimit.Limiter
	begin := time.Date(2026, 11, 27, 22, 0, 0, 0, time.UTC).UnixNano()
	var e match.Event
	for i := range traces {
		if i%perLimiter == 0 {
			limiter = must.Get(ratelimit.New(rule))(t)
		}
		start := begin + int64(i)*6*int64(time.Hour) + rng.Int64N(int64(time.Hour))
		own := windowtest.New(limit.Config{
			Algorithm: limit.Algorithm(rule.Algorithm), N: n, Span: plannedSpan, AtMost: atMost, Period: limit.Minute,
		})
		client := "c" + strconv.Itoa(i)

		for j, ev := range plannedTrace(rng, atMost) {
			e.Reset()
			e.SetNamedString("tenant", client)
			if ev.n > 0 {
				e.SetNamedString("plan", strconv.FormatUint(ev.n, 10))
			} else {
				ev.n = n
			}
			at := start + ev.at
			d, used := limiter.TakeAt(time.Unix(0, at), &e, ev.cost), own.Used(at)
			switch {
			case d.Err == nil && d.Allowed != (used+ev.cost <= ev.n):
				return fmt.Sprintf("%v, at most %d: event %d of cost %d under %d: allowed %v, with %d used", rule.Algorithm, atMost, j, ev.cost, ev.n, d.Allowed, used)
			case d.Limit != ev.n:
				return fmt.Sprintf("%v: an event under %d was told of a limit of %d", rule.Algorithm, ev.n, d.Limit)
			}
			if d.Allowed {
				own.SetN(at, ev.n)
				own.Charge(at, ev.cost)
			}
		}
	}
	return ""
}

// TestLimitOfEventIsHeld changes N in the middle of windows: an event is allowed if and only if the window of its key then
// has no more than the N of that event, by the definition of each algorithm. The long form has 125,000 traces for each.
func TestLimitOfEventIsHeld(t *testing.T) {
	traces := 1000
	if longForm() {
		traces = 125_000
	}
	for i := range limit.Algorithms() {
		for _, atMost := range []uint64{40, 128, 200} {
			t.Run(fmt.Sprint(ratelimit.Algorithm(i), " ", atMost), func(t *testing.T) {
				t.Parallel()
				if wrong := overPlan(t, randtest.New(t), plannedRule(ratelimit.Algorithm(i), 10, atMost, "tenant"), traces/3+1); wrong != "" {
					t.Error(wrong)
				}
			})
		}
	}
}

// TestSecondWindowIsCaught is the control: a window for each plan lets a client begin again with
// each change.
func TestSecondWindowIsCaught(t *testing.T) {
	for i := range limit.Algorithms() {
		if overPlan(t, randtest.New(t), plannedRule(ratelimit.Algorithm(i), 10, 40, "tenant", "plan"), 1000) == "" {
			t.Errorf("%v: a second window was not found", ratelimit.Algorithm(i))
		}
	}
}

type planMap map[string]uint64

func (p planMap) N(value []byte) (n uint64, ok bool) {
	n, ok = p[string(value)]
	return n, ok
}

// TestTakeLimit gives the limit of a key with the key: from the caller, from LimitBy, or from neither.
func TestTakeLimit(t *testing.T) {
	rule := plannedRule(ratelimit.Sliding, 2, 5, "tenant")
	rule.LimitBy = &ratelimit.LimitBy{Field: "tenant", Plans: planMap{"acme": 4}}
	fixed := rule
	fixed.Name, fixed.Limits, fixed.LimitBy = "fixed", []ratelimit.Limit{{N: 2, Span: plannedSpan}}, nil
	limiter := must.Get(ratelimit.New(rule, fixed))(t)
	plans := must.Get(limiter.Rule("planned"))(t)
	for _, step := range []struct {
		limit uint64
		key   string
		want  ratelimit.Decision
	}{
		{0, "acme", ratelimit.Decision{Allowed: true, Limit: 4, Remaining: 3}},
		{0, "other", ratelimit.Decision{Allowed: true, Limit: 2, Remaining: 1}},
		{5, "acme", ratelimit.Decision{Allowed: true, Limit: 5, Remaining: 3}},
		{9, "acme", ratelimit.Decision{Allowed: true, Limit: 5, Remaining: 2}},
		{3, "acme", ratelimit.Decision{Limit: 3}},
		{0, "acme", ratelimit.Decision{Allowed: true, Limit: 4}},
		{0, "acme", ratelimit.Decision{Limit: 4}},
		{5, "acme", ratelimit.Decision{Allowed: true, Limit: 5}},
	} {
		d := plans.TakeLimit(step.limit, 1, step.key)
		if d.Allowed != step.want.Allowed || d.Limit != step.want.Limit || d.Remaining != step.want.Remaining || d.Err != nil {
			t.Errorf("%s under %d: %+v, want %+v", step.key, step.limit, d, step.want)
		}
	}
	others := must.Get(limiter.Rule("fixed"))(t)
	if d := others.TakeLimit(3, 1, "acme"); d.Allowed || d.Err == nil || d.Err.Error() != `ratelimit: rule "fixed": its limit is fixed: must have at_most to take a limit from a request` {
		t.Errorf("a limit under a rule without AtMost: %+v, want an error", d)
	}
	if d := others.TakeLimit(0, 1, "acme"); !d.Allowed || d.Err != nil {
		t.Errorf("no limit under a rule without AtMost: %+v, want it allowed", d)
	}
}

// TestLimitOfKeyAndEvent judges keys whose field of LimitBy is one of several, or an alternative, by the same N as events.
func TestLimitOfKeyAndEvent(t *testing.T) {
	for _, key := range [][]string{{"tenant"}, {"tenant | client"}, {"client | tenant"}, {"path", "tenant | client"}, {"client", "tenant"}} {
		rule := plannedRule(ratelimit.Sliding, 2, 9, key...)
		rule.LimitBy = &ratelimit.LimitBy{Field: "tenant", Plans: planMap{"acme": 7, "tenant:acme": 9}}
		limiter := must.Get(ratelimit.New(rule))(t)
		judge := must.Get(limiter.Rule("planned"))(t)
		for _, tenant := range []string{"acme", "tenant:acme", "other", ""} {
			var e match.Event
			e.SetString(match.Path, "/")
			if e.SetNamedString("tenant", tenant); tenant == "" || key[0] == "client" {
				e.SetString(match.Client, "192.0.2.1")
			}
			k, ok := rule.Key.Append(nil, &e)
			if !ok {
				continue
			}
			fromEvent, fromKey := limiter.Peek(&e).Limit, judge.Peek(keyvalue.All(rule.Key, string(k))...).Limit
			if fromEvent != fromKey {
				t.Errorf("key %q, tenant %q: the event is judged by %d, and its key by %d", key, tenant, fromEvent, fromKey)
			}
		}
	}
}

// TestLimitOfEventValues has values in the field for N that are not a number from 1 to AtMost.
func TestLimitOfEventValues(t *testing.T) {
	limiter := must.Get(ratelimit.New(plannedRule(ratelimit.Exact, 7, 50, "tenant")))(t)
	for value, want := range map[string]uint64{
		"20": 20, "050": 50, "": 7, "0": 7, "000": 7, "-1": 7, "1.5": 7, "gold": 7, " 20": 7, "1e1": 7,
		"51": 50, "18446744073709551617": 50, "99999999999999999999999999999999": 50,
	} {
		var e match.Event
		e.SetNamedString("tenant", value+"!")
		if value != "" {
			e.SetNamedString("plan", value)
		}
		if d := limiter.Peek(&e); d.Limit != want {
			t.Errorf("%q: judged by %d, want %d", value, d.Limit, want)
		}
	}
}

func TestLimitByMistakes(t *testing.T) {
	for want, change := range map[string]func(*ratelimit.Rule){
		"at_most: missing: must be given by one limit with LimitBy": func(r *ratelimit.Rule) { r.Limits[0].AtMost = 0 },
		"limit: 2 have AtMost: must be one": func(r *ratelimit.Rule) {
			r.Limits = append(r.Limits, ratelimit.Limit{N: 1, Span: time.Hour, AtMost: 2})
		},
		"at_most: 9: must be at least the limit, 10": func(r *ratelimit.Rule) { r.Limits[0].AtMost = 9 },
		"at_most: 65536: must be at most 65535":      func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].AtMost = ratelimit.Exact, 65536 },
		"must be 1 or more with gcra":                func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].N = ratelimit.GCRA, 0 },
		"adapt: must be left out": func(r *ratelimit.Rule) {
			r.Adapt = &ratelimit.Adapt{Steps: []ratelimit.AdaptStep{{Below: 1, Limit: 1}}, Above: 1}
		},
		"limit_by: key: empty name": func(r *ratelimit.Rule) { r.LimitBy.Field = "" },
	} {
		r := plannedRule(ratelimit.Sliding, 10, 20, "tenant")
		change(&r)
		if _, err := ratelimit.New(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: must contain %q", err, want)
		}
	}
}
