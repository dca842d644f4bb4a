package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// goodRule returns a rule that is valid, with no value at a bound.
func goodRule(t testing.TB) ratelimit.Rule {
	return ratelimit.Rule{
		Name: "r", Key: mustKey(t, "client"), Limits: []ratelimit.Limit{{N: 5, Span: time.Second}},
		Ban: &ratelimit.Ban{After: 3, Span: time.Minute, For: time.Minute},
	}
}

// wantParts checks that err has all parts: it must name the field, the value and what the value must be.
func wantParts(t *testing.T, name string, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", name)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s: the error is %q, without %q", name, err, part)
		}
	}
}

func newSetError(c ratelimit.SetConfig, rules ...ratelimit.Rule) error {
	_, err := ratelimit.NewSet(c, rules...)
	return err
}

// adaptOver returns an Adapt with one step, smoothed over that time.
func adaptOver(smooth time.Duration) *ratelimit.Adapt {
	a := &ratelimit.Adapt{Smooth: smooth, Steps: make([]ratelimit.AdaptStep, 1)}
	a.Steps[0].Below, a.Steps[0].Limit = 1, 1
	return a
}

func TestRuleErrors(t *testing.T) {
	const spans = "must be whole milliseconds from 1ms to 87600h"
	oneStep := adaptOver(0).Steps
	for name, c := range map[string]struct {
		spoil func(*ratelimit.Rule)
		want  []string
	}{
		"name":      {func(r *ratelimit.Rule) { r.Name = "" }, []string{"name: missing", "must be a name of its own"}},
		"key":       {func(r *ratelimit.Rule) { r.Key = match.Key{} }, []string{"key: missing", "must be a field or a list"}},
		"nothing":   {func(r *ratelimit.Rule) { r.Limits, r.Ban = nil, nil }, []string{"limit: missing", "must be given, or a ban"}},
		"algorithm": {func(r *ratelimit.Rule) { r.Algorithm = 10 }, []string{"algorithm: 10", "must be Sliding to InFlight"}},
		"policy": {
			func(r *ratelimit.Rule) { r.OnStoreFailure = 3 },
			[]string{"on_store_failure: 3", "must be FailLocal, FailOpen or FailClosed"},
		},
		"limit of sliding": {
			func(r *ratelimit.Rule) { r.Limits[0].N = limit.MaxN + 1 },
			[]string{"limit: 4294967296", "must be at most 4294967295 with sliding"},
		},
		"limit of gcra": {
			func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].N = ratelimit.GCRA, limit.MaxN+1 },
			[]string{"limit: 4294967296", "must be at most 4294967295 with gcra"},
		},
		"limit of fixed": {
			func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].N = ratelimit.Fixed, limit.MaxN+1 },
			[]string{"limit: 4294967296", "must be at most 4294967295 with fixed"},
		},
		"limit of calendar": {
			func(r *ratelimit.Rule) {
				r.Algorithm, r.Limits[0] = ratelimit.Calendar, ratelimit.Limit{N: limit.MaxN + 1, Per: ratelimit.PerDay}
			},
			[]string{"limit: 4294967296", "must be at most 4294967295 with calendar"},
		},
		"limit of exact": {
			func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].N = ratelimit.Exact, limit.MaxLog+1 },
			[]string{"limit: 65536", "must be at most 65535 with exact"},
		},
		"burst of none": {
			func(r *ratelimit.Rule) { r.Limits[0].Burst = 3 },
			[]string{"burst: 3", "must be 0 with sliding"},
		},
		"burst too large": {
			func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].Burst = ratelimit.GCRA, limit.MaxN+1 },
			[]string{"burst 4294967296", "at most 4294967295"},
		},
		"burst that takes for ever": {
			func(r *ratelimit.Rule) {
				r.Algorithm, r.Limits[0] = ratelimit.GCRA, ratelimit.Limit{N: 1, Span: limit.MaxSpan, Burst: 2}
			},
			[]string{"burst: 2", "must be at most 1"},
		},
		"period of none": {
			func(r *ratelimit.Rule) { r.Limits[0].Per = ratelimit.PerDay },
			[]string{"period: day", "must be none with sliding"},
		},
		"span of no period": {
			func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].Span = ratelimit.Calendar, 2*time.Second },
			[]string{"span 2s", "must be 1s, 1m, 1h, 24h, 168h or a period"},
		},
		"period and span": {
			func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].Per = ratelimit.Calendar, ratelimit.PerMonth },
			[]string{"period month and span 1s", "must be one of them"},
		},
		"zone of none": {
			func(r *ratelimit.Rule) { r.Zone = time.UTC },
			[]string{"zone: UTC", "must be left out with algorithm sliding"},
		},
		"refused in flight": {
			func(r *ratelimit.Rule) { r.Algorithm, r.CountRefused = ratelimit.InFlight, true },
			[]string{"count_refused: true", "in-flight"},
		},
		"adapt of a rate": {
			func(r *ratelimit.Rule) { r.Algorithm, r.Adapt = ratelimit.GCRA, &ratelimit.Adapt{} },
			[]string{"adapt: must be left out with gcra"},
		},
		"adapt without rows": {
			func(r *ratelimit.Rule) { r.Adapt = &ratelimit.Adapt{Above: 3} },
			[]string{"adapt.steps: missing: must be 1 or more"},
		},
		"adapt span": {
			func(r *ratelimit.Rule) { r.Adapt = &ratelimit.Adapt{Span: time.Millisecond} },
			[]string{"adapt.span: 1ms", "from 1s to 1h"},
		},
		"adapt smooth short": {
			func(r *ratelimit.Rule) { r.Adapt = &ratelimit.Adapt{Smooth: time.Second - 1, Steps: oneStep} },
			[]string{"adapt.smooth: 999.999999ms", "1s to 24h"},
		},
		"adapt smooth long": {
			func(r *ratelimit.Rule) { r.Adapt = &ratelimit.Adapt{Smooth: 24*time.Hour + 1, Steps: oneStep} },
			[]string{"adapt.smooth: 24h0m0.000000001s", "1s to 24h"},
		},
		"adapt above": {
			func(r *ratelimit.Rule) { r.Adapt = &ratelimit.Adapt{Above: limit.MaxN + 1, Steps: oneStep} },
			[]string{"adapt.above: 4294967296", "at most 4294967295"},
		},
		"second limit": {
			func(r *ratelimit.Rule) { r.Limits = append(r.Limits, ratelimit.Limit{N: 1}) },
			[]string{"span: 0s", spans},
		},
		"span not ms":   {func(r *ratelimit.Rule) { r.Limits[0].Span = time.Millisecond + 1 }, []string{"span: 1.000001ms", spans}},
		"span negative": {func(r *ratelimit.Rule) { r.Limits[0].Span = -time.Second }, []string{"span: -1s", spans}},
		"span too long": {
			func(r *ratelimit.Rule) { r.Limits[0].Span = limit.MaxSpan + time.Millisecond },
			[]string{"span: 87600h0m0.001s", spans},
		},
		"refusals of nothing": {
			func(r *ratelimit.Rule) { r.Limits, r.Ban.Of = nil, ratelimit.Refusals },
			[]string{"limit: missing", "a ban after refusals"},
		},
		"ban": {func(r *ratelimit.Rule) { r.Ban.Factor = 0.5 }, []string{"ban.factor: 0.5", "from 1 to 1000"}},
	} {
		r := goodRule(t)
		must.Do(t, newSetError(ratelimit.SetConfig{}, r))
		c.spoil(&r)
		wantParts(t, name, newSetError(ratelimit.SetConfig{}, r), append(c.want, "rule 1")...)
	}
}

func TestRuleBounds(t *testing.T) {
	for name, change := range map[string]func(*ratelimit.Rule){
		"least": func(r *ratelimit.Rule) {
			r.Limits[0] = ratelimit.Limit{N: 0, Span: time.Millisecond}
			*r.Ban = ratelimit.Ban{After: 0, Span: time.Millisecond, For: time.Millisecond}
		},
		"most": func(r *ratelimit.Rule) {
			r.Limits[0] = ratelimit.Limit{N: limit.MaxN, Span: limit.MaxSpan}
			*r.Ban = ratelimit.Ban{
				After: limit.MaxLog, Span: limit.MaxSpan, For: limit.MaxSpan,
				Factor: 1000, Max: limit.MaxSpan, Remember: limit.MaxSpan,
			}
		},
		"most of exact": func(r *ratelimit.Rule) { r.Algorithm, r.Limits[0].N = ratelimit.Exact, limit.MaxLog },
		"adapt":         func(r *ratelimit.Rule) { r.Adapt = adaptOver(time.Second) },
		"adapt most":    func(r *ratelimit.Rule) { r.Adapt = adaptOver(24 * time.Hour) },
		"only a ban":    func(r *ratelimit.Rule) { r.Limits = nil },
		"only a limit":  func(r *ratelimit.Rule) { r.Ban = nil },
	} {
		r := goodRule(t)
		change(&r)
		if err := newSetError(ratelimit.SetConfig{}, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailPolicyNames(t *testing.T) {
	for p, name := range map[ratelimit.FailPolicy]string{
		ratelimit.FailLocal: "local", ratelimit.FailOpen: "open", ratelimit.FailClosed: "closed",
	} {
		if p.String() != name {
			t.Errorf("%q has the name %q", name, p)
		}
	}
	if got := ratelimit.FailPolicy(9).String(); got != "policy?" {
		t.Errorf("policy 9 is %q", got)
	}
}
