package ratelimitheader

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func key(t testing.TB, fields ...string) match.Key {
	t.Helper()
	k := must.Get(match.NewKey(match.Fold{}, fields...))(t)
	return k
}

func mustSet(t testing.TB, rules ...ratelimit.Rule) *ratelimit.Set {
	t.Helper()
	set := must.Get(ratelimit.NewSet(ratelimit.SetConfig{}, rules...))(t)
	return set
}

// some is a set of rules of each sort: two limits, a burst, a ban alone, shadow, and
// one that adapts.
func some(t testing.TB) *ratelimit.Set {
	client := key(t, "client")
	return mustSet(
		t,
		ratelimit.Rule{Name: "api", Key: client, Limits: []ratelimit.Limit{{N: 5, Span: time.Second}, {N: 60, Span: time.Minute}}},
		ratelimit.Rule{Name: "burst", Key: client, Algorithm: ratelimit.GCRA, Limits: []ratelimit.Limit{{N: 10, Span: time.Second, Burst: 100}}},
		ratelimit.Rule{Name: "flood", Key: client, Ban: &ratelimit.Ban{After: 99, Span: time.Minute, For: time.Hour}},
		ratelimit.Rule{Name: "shadow", Key: client, Limits: []ratelimit.Limit{{N: 1, Span: time.Second}}, Shadow: true},
		ratelimit.Rule{Name: "plan", Key: client, Limits: []ratelimit.Limit{{N: 1000, Span: time.Hour}, {N: 10, AtMost: 600, Span: time.Minute}}},
		ratelimit.Rule{Name: "traffic", Key: client, Limits: []ratelimit.Limit{{N: 9, Span: time.Second}}, Adapt: &ratelimit.Adapt{Span: time.Second, Steps: []ratelimit.AdaptStep{{Below: 5, Limit: 9}}, Above: 3}},
	)
}

// A limit whose N comes with the event has that N as its policy, if the outcome is about it.
func TestLimitOfEvent(t *testing.T) {
	set := some(t)
	p := New(set, false)
	for _, c := range []struct {
		o              ratelimit.Outcome
		policies, left string
	}{
		{ratelimit.Outcome{Limit: 600, Remaining: 529, LimitIndex: 1, ResetAfter: time.Minute}, `"plan/3600s";q=1000;w=3600, "plan/60s";q=600;w=60`, `"plan/60s";r=529;t=60`},
		{ratelimit.Outcome{Limit: 1000, Remaining: 3, ResetAfter: time.Minute}, `"plan/3600s";q=1000;w=3600, "plan/60s";q=10;w=60`, `"plan/3600s";r=3;t=60`},
	} {
		c.o.Rule, c.o.Set = 4, set
		both, n := p.Append(nil, []ratelimit.Outcome{c.o}, &ratelimit.Decision{Allowed: true})
		if string(both[:n]) != c.policies || string(both[n:]) != c.left {
			t.Errorf("%+v:\n%s, %s\nwant\n%s, %s", c.o, both[:n], both[n:], c.policies, c.left)
		}
	}
}

// The fields for decisions: policies, remaining quota, and which of them refused.
func TestAppend(t *testing.T) {
	set := some(t)
	until := time.Unix(1e9, 0)
	for _, c := range []struct {
		name     string
		outcomes []ratelimit.Outcome
		decision ratelimit.Decision
		policies string
		left     string
		violated []Violation
	}{
		{
			"allowed",
			[]ratelimit.Outcome{
				{Rule: 0, Limit: 5, Remaining: 4, ResetAfter: time.Minute},
				{Rule: 1, Limit: 100, Remaining: 99, ResetAfter: time.Second / 10},
				{Rule: 2},
				{Rule: 3, Limit: 1},
				{Rule: 5, Limit: 3, Remaining: 2, ResetAfter: time.Second},
			},
			ratelimit.Decision{Allowed: true},
			`"api/1s";q=5;w=1, "api/60s";q=60;w=60, "burst";q=100;w=10, "traffic";q=3;w=1`,
			`"api/1s";r=4;t=1, "burst";r=99;t=1, "traffic";r=2;t=1`, nil,
		},
		{
			"refused by one",
			[]ratelimit.Outcome{
				{Rule: 0, Limit: 60, Refused: true, RetryAfter: 30500 * time.Millisecond, ResetAfter: time.Minute},
				{Rule: 1, Limit: 100, Remaining: 50, ResetAfter: time.Hour},
				{Rule: 3, Limit: 1, Refused: true, RetryAfter: time.Second},
			},
			ratelimit.Decision{RetryAfter: 30500 * time.Millisecond},
			`"api/1s";q=5;w=1, "api/60s";q=60;w=60, "burst";q=100;w=10`, `"api/60s";r=0;t=31, "burst";r=50;t=31`,
			[]Violation{{"api/60s", `"api/60s"`, 60, false}},
		},
		{
			"more than all",
			[]ratelimit.Outcome{{Rule: 1, Limit: 100, Remaining: 50, Refused: true, RetryAfter: ratelimit.Never, ResetAfter: time.Second}},
			ratelimit.Decision{RetryAfter: ratelimit.Never},
			`"burst";q=100;w=10`, `"burst";r=50`,
			[]Violation{{"burst", `"burst"`, 100, false}},
		},
		{
			"banned",
			[]ratelimit.Outcome{
				{Rule: 0, Limit: 5, Refused: true, RetryAfter: time.Second}, {Rule: 2, Refused: true, Banned: true, BannedUntil: until, RetryAfter: time.Hour},
			},
			ratelimit.Decision{RetryAfter: time.Hour, BannedUntil: until},
			`"api/1s";q=5;w=1, "api/60s";q=60;w=60`, `"api/1s";r=0;t=1`,
			[]Violation{{"flood", `"flood"`, 0, true}},
		},
		{
			"banned by a rule with limits",
			[]ratelimit.Outcome{{Rule: 0, Refused: true, Banned: true, BannedUntil: until, RetryAfter: time.Hour}},
			ratelimit.Decision{RetryAfter: time.Hour, BannedUntil: until},
			`"api/1s";q=5;w=1, "api/60s";q=60;w=60`, `"api/1s";r=0;t=3600, "api/60s";r=0;t=3600`,
			[]Violation{{"api", `"api"`, 0, true}},
		},
		{"of other rules", []ratelimit.Outcome{{Rule: 9, Limit: 5, Refused: true}}, ratelimit.Decision{RetryAfter: 1}, "", "", nil},
		{"only a ban", []ratelimit.Outcome{{Rule: 2}}, ratelimit.Decision{Allowed: true}, "", "", nil},
	} {
		p := New(set, false)
		both, n := p.Append([]byte("x"), c.outcomes, &c.decision)
		if got := string(both[1:n]); got != c.policies {
			t.Errorf("%s: the policies are %s, want %s", c.name, got, c.policies)
		}
		if got := string(both[n:]); got != c.left {
			t.Errorf("%s: what is left is %s, want %s", c.name, got, c.left)
		}
		var violated []Violation
		for _, v := range p.Violated(c.outcomes, &c.decision) {
			violated = append(violated, v)
		}
		if !slices.Equal(violated, c.violated) {
			t.Errorf("%s: refused by %+v, want %+v", c.name, violated, c.violated)
		}
	}
}

// Hidden names are numbers, with the window behind them if there are several.
func TestHiddenNames(t *testing.T) {
	p := New(some(t), true)
	both, n := p.Append(nil, []ratelimit.Outcome{{Rule: 0, Limit: 5}, {Rule: 1, Limit: 100}}, &ratelimit.Decision{Allowed: true})
	if got := string(both[:n]); got != `"policy-1/1s";q=5;w=1, "policy-1/60s";q=60;w=60, "policy-2";q=100;w=10` {
		t.Errorf("the policies are %s", got)
	}
	if r := p.Named("flood"); r == nil || r.Name != "policy-3" || r.JSON != `"policy-3"` {
		t.Errorf("flood is %+v", r)
	}
	if p.Named("policy-3") != nil || new(Policies).Named("flood") != nil {
		t.Error("a name that is not in the set has a rule")
	}
}

// Outcomes of this set are kept; otherwise those of a refusal are made from the decision.
func TestKnown(t *testing.T) {
	set := some(t)
	p := New(set, false)
	own, others := []ratelimit.Outcome{{Set: set, Rule: 1}}, []ratelimit.Outcome{{Set: some(t), Rule: 1}}
	refusal := ratelimit.Decision{Rule: "api", Limit: 5, RetryAfter: time.Second, ResetAfter: time.Minute}
	made := []ratelimit.Outcome{{Set: set, Rule: 0, Refused: true, Limit: 5, RetryAfter: time.Second, ResetAfter: time.Minute}}
	for _, c := range []struct {
		outcomes []ratelimit.Outcome
		decision ratelimit.Decision
		want     []ratelimit.Outcome
	}{
		{own, refusal, own},
		{others, refusal, made},
		{nil, refusal, made},
		{others, ratelimit.Decision{Allowed: true, Rule: "api"}, nil},
		{nil, ratelimit.Decision{Rule: "unknown", RetryAfter: time.Second}, nil},
		{nil, ratelimit.Decision{Rule: "api"}, nil}, // the store failed
		{nil, ratelimit.Decision{Rule: "flood", BannedUntil: time.Unix(1, 0)}, []ratelimit.Outcome{{Set: set, Rule: 2, Refused: true, Banned: true, BannedUntil: time.Unix(1, 0)}}},
	} {
		if got := p.Known(slices.Clone(c.outcomes), &c.decision); !slices.Equal(got, c.want) {
			t.Errorf("%+v of %+v are %+v, want %+v", c.outcomes, c.decision, got, c.want)
		}
	}
}

// Nothing is allocated if buf has enough space.
func TestAppendAllocates(t *testing.T) {
	p := New(some(t), false)
	outcomes := []ratelimit.Outcome{{Rule: 0, Limit: 5, Refused: true, RetryAfter: time.Second}, {Rule: 1, Limit: 100, Remaining: 3}, {Rule: 5, Limit: 3}}
	d := ratelimit.Decision{RetryAfter: time.Second}
	buf := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() {
		buf, _ = p.Append(buf[:0], outcomes, &d)
		for _, v := range p.Violated(outcomes, &d) {
			buf = append(buf, v.JSON...)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// TestTwoLimitsOfOneN has limits with the same N in different spans, plain and adaptive: the fields are about the limit
// that decided.
func TestTwoLimitsOfOneN(t *testing.T) {
	for _, adapt := range []*ratelimit.Adapt{nil, {Span: time.Second, Steps: []ratelimit.AdaptStep{{Below: 1e9, Limit: 5}}, Above: 1}} {
		set := mustSet(t, ratelimit.Rule{
			Name: "api", Key: key(t, "client"), Adapt: adapt,
			Limits: []ratelimit.Limit{{N: 5, Span: time.Second}, {N: 5, Span: time.Minute}},
		})
		l := must.Get(ratelimit.NewLimiter(set, ratelimit.Config{}))(t)
		p := New(set, false)
		start := time.Unix(1_700_000_000, 0)
		var e match.Event
		e.SetString(match.Client, "k")
		for range 5 {
			l.TakeAt(start, &e, 1)
		}
		for _, after := range []time.Duration{0, 2 * time.Second} { // both are full, then one
			d, outcomes := l.Internal().JudgeAt(start.Add(after), &batch.Query{Event: &e, Cost: 1}, nil)
			both, n := p.Append(nil, outcomes, &d)
			if got, want := string(both[n:]), fmt.Sprintf(`"api/60s";r=0;t=%d`, 60-int(after/time.Second)); got != want {
				t.Errorf("after %v: %s, want %s", after, got, want)
			}
			for _, v := range p.Violated(outcomes, &d) {
				if v.Name != "api/60s" {
					t.Errorf("after %v: %s is in the list of violated policies", after, v.Name)
				}
			}
			both, n = p.Append(nil, p.Deciding(nil, &d), &d)
			if got := string(both[n:]); !strings.HasPrefix(got, `"api/60s";r=0;`) {
				t.Errorf("after %v, from the decision alone: %s", after, got)
			}
		}
	}
}
