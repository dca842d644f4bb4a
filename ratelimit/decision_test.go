package ratelimit_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// limitRule and ban make rules on the client for tests that work by hand.
func limitRule(t testing.TB, name string, limits ...ratelimit.Limit) ratelimit.Rule {
	return ratelimit.Rule{Name: name, Key: mustKey(t, "client"), Limits: limits}
}

func ban(t testing.TB, name string, b ratelimit.Ban) ratelimit.Rule {
	return ratelimit.Rule{Name: name, Key: mustKey(t, "client"), Ban: &b}
}

func per(n uint64, span time.Duration) ratelimit.Limit { return ratelimit.Limit{N: n, Span: span} }

// A step is one event of a hand-worked example and the decision it must get.
type step struct {
	ms   int64
	cost uint64
	want ratelimit.Decision
}

func checkSteps(t *testing.T, l *ratelimit.Limiter, steps []step) {
	t.Helper()
	for i, s := range steps {
		if got := takeKeyN(l, at(s.ms), "k", s.cost); !sameDecision(got, s.want) {
			t.Errorf("step %d, at %d ms:\n got %+v\nwant %+v", i, s.ms, got, s.want)
		}
	}
}

// sameDecision compares two decisions, without the error of a cost above the limit.
func sameDecision(a, b ratelimit.Decision) bool {
	banned := a.BannedUntil.Equal(b.BannedUntil)
	above := b.RetryAfter == ratelimit.Never && b.Limit > 0
	if e, ok := a.Err.(*ratelimit.CostError); ok == above && above && e.Rule == b.Rule && e.Limit == b.Limit && e.Cost > e.Limit {
		a.Err = nil
	}
	a.BannedUntil, b.BannedUntil = time.Time{}, time.Time{}
	return banned && a == b
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// TestTwoLimitsOfOneRule works 2 per second and 3 per minute through by hand.
func TestTwoLimitsOfOneRule(t *testing.T) {
	l := mustLimiter(t, mustSet(t, limitRule(t, "r", per(2, time.Second), per(3, time.Minute))), ratelimit.Config{})
	checkSteps(t, l, []step{
		{0, 1, ratelimit.Decision{Allowed: true, Rule: "r", Limit: 2, Remaining: 1, ResetAfter: ms(60_000)}},
		{300, 1, ratelimit.Decision{Allowed: true, Rule: "r", Limit: 2, Remaining: 0, ResetAfter: ms(60_000)}},
		{900, 1, ratelimit.Decision{Rule: "r", Limit: 2, Remaining: 0, RetryAfter: ms(100), ResetAfter: ms(59_400)}},
		{1000, 0, ratelimit.Decision{Allowed: true, Rule: "r", Limit: 2, Remaining: 1, ResetAfter: ms(59_300)}},
		{1000, 1, ratelimit.Decision{Allowed: true, Rule: "r", Limit: 2, Remaining: 0, ResetAfter: ms(60_000)}},
		// Both are full now. The minute's oldest, of 0, is the one to wait for.
		{1200, 1, ratelimit.Decision{Rule: "r", Limit: 3, LimitIndex: 1, Remaining: 0, RetryAfter: ms(58_800), ResetAfter: ms(59_800)}},
		{59_999, 1, ratelimit.Decision{Rule: "r", Limit: 3, LimitIndex: 1, Remaining: 0, RetryAfter: ms(1), ResetAfter: ms(1001)}},
		// A cost of 2 has to wait for the one of 300 too, one of 3 forever.
		{59_999, 2, ratelimit.Decision{Rule: "r", Limit: 3, LimitIndex: 1, Remaining: 0, RetryAfter: ms(301), ResetAfter: ms(1001)}},
		{59_999, 3, ratelimit.Decision{Rule: "r", Limit: 2, Remaining: 2, RetryAfter: ratelimit.Never, ResetAfter: ms(1001)}},
		{60_000, 1, ratelimit.Decision{Allowed: true, Rule: "r", Limit: 3, LimitIndex: 1, Remaining: 0, ResetAfter: ms(60_000)}},
		{200_000, 0, ratelimit.Decision{Allowed: true, Rule: "r", Limit: 2, Remaining: 2}},
	})
}

// TestDecidingRule has several rules refuse: a ban decides first, then the
// longest retry-after, then the order of the rules; of an allowed event, the
// least remaining.
func TestDecidingRule(t *testing.T) {
	second, minute := limitRule(t, "second", per(1, time.Second)), limitRule(t, "minute", per(2, time.Minute))
	for name, c := range map[string]struct {
		rules []ratelimit.Rule
		steps []step
	}{
		"least remaining": {[]ratelimit.Rule{minute, second}, []step{
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "second", Limit: 1, Remaining: 0, ResetAfter: ms(1000)}},
		}},
		"first of equals": {[]ratelimit.Rule{limitRule(t, "a", per(2, time.Second)), limitRule(t, "b", per(2, time.Minute))}, []step{
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "a", Limit: 2, Remaining: 1, ResetAfter: ms(1000)}},
		}},
		"longest retry-after": {[]ratelimit.Rule{second, minute}, []step{
			{0, 2, ratelimit.Decision{Rule: "second", Limit: 1, Remaining: 1, RetryAfter: ratelimit.Never}},
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "second", Limit: 1, ResetAfter: ms(1000)}},
			{1000, 1, ratelimit.Decision{Allowed: true, Rule: "second", Limit: 1, ResetAfter: ms(1000)}},
			{1500, 1, ratelimit.Decision{Rule: "minute", Limit: 2, RetryAfter: ms(58_500), ResetAfter: ms(59_500)}},
		}},
		"file order": {[]ratelimit.Rule{limitRule(t, "a", per(1, time.Second)), limitRule(t, "b", per(1, time.Second))}, []step{
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "a", Limit: 1, ResetAfter: ms(1000)}},
			{1, 1, ratelimit.Decision{Rule: "a", Limit: 1, RetryAfter: ms(999), ResetAfter: ms(999)}},
		}},
		// The limit's wait of a minute is longer than the ban's second, and the client has to wait for both; the decision
		// reports the ban.
		"a ban first": {[]ratelimit.Rule{
			limitRule(t, "minute", per(1, time.Minute)),
			ban(t, "ban", ratelimit.Ban{After: 1, Span: time.Hour, For: time.Second}),
		}, []step{
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "minute", Limit: 1, ResetAfter: ms(60_000)}},
			{100, 1, ratelimit.Decision{Rule: "ban", Started: true, Limit: 1, RetryAfter: ms(59_900), ResetAfter: ms(1000), BannedUntil: at(1100)}},
			{600, 1, ratelimit.Decision{Rule: "ban", Limit: 1, RetryAfter: ms(59_400), ResetAfter: ms(500), BannedUntil: at(1100)}},
			// The ban has ended, but this counts as a hit: one more would ban.
			{1100, 1, ratelimit.Decision{Rule: "minute", Limit: 1, RetryAfter: time.Hour, ResetAfter: ms(58_900)}},
		}},
		"the longer ban": {[]ratelimit.Rule{
			ban(t, "short", ratelimit.Ban{After: 1, Span: time.Hour, For: time.Second}),
			ban(t, "long", ratelimit.Ban{After: 1, Span: time.Hour, For: time.Minute}),
		}, []step{
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "short", Limit: 1, ResetAfter: time.Hour}},
			{1, 1, ratelimit.Decision{Rule: "long", Started: true, Limit: 1, RetryAfter: ms(60_000), ResetAfter: ms(60_000), BannedUntil: at(60_001)}},
			// The long ban holds; the short one, over, is passed by.
			{5000, 1, ratelimit.Decision{Rule: "long", Limit: 1, RetryAfter: ms(55_001), ResetAfter: ms(55_001), BannedUntil: at(60_001)}},
		}},
		// A ban after no hit at all bans on the first, again and again.
		"a ban after 0": {[]ratelimit.Rule{ban(t, "ban", ratelimit.Ban{Span: time.Hour, For: time.Second})}, []step{
			{0, 1, ratelimit.Decision{Rule: "ban", Started: true, RetryAfter: ratelimit.Never, ResetAfter: ms(1000), BannedUntil: at(1000)}},
			{1000, 1, ratelimit.Decision{Rule: "ban", Started: true, RetryAfter: ratelimit.Never, ResetAfter: ms(1000), BannedUntil: at(2000)}},
		}},
		"never before any wait": {[]ratelimit.Rule{limitRule(t, "a", per(2, time.Minute)), limitRule(t, "b", per(1, time.Hour)), limitRule(t, "c", per(1, time.Second)), limitRule(t, "d", per(3, time.Hour))}, []step{
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "b", Limit: 1, ResetAfter: time.Hour}},
			{10, 2, ratelimit.Decision{Rule: "b", Limit: 1, RetryAfter: ratelimit.Never, ResetAfter: ms(3_599_990)}},
		}},
		// The decision on the event that starts a ban is that of the ban.
		"a ban over its own limit": {[]ratelimit.Rule{{
			Name: "r", Key: mustKey(t, "client"), Limits: []ratelimit.Limit{per(9, time.Minute)},
			Ban: &ratelimit.Ban{After: 1, Span: time.Minute, For: time.Second},
		}}, []step{
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "r", Limit: 9, Remaining: 8, ResetAfter: ms(60_000)}},
			{10, 1, ratelimit.Decision{Rule: "r", Limit: 1, RetryAfter: ms(1000), ResetAfter: ms(59_990), Started: true, BannedUntil: at(1010)}},
		}},
		// The refused event was the second hit, and the next one would ban:
		// waiting for the limit alone is not enough.
		"a ban that is near": {[]ratelimit.Rule{
			limitRule(t, "limit", per(1, time.Second)),
			ban(t, "ban", ratelimit.Ban{After: 2, Span: time.Minute, For: time.Hour}),
		}, []step{
			{0, 1, ratelimit.Decision{Allowed: true, Rule: "limit", Limit: 1, ResetAfter: ms(1000)}},
			{10, 1, ratelimit.Decision{Rule: "limit", Limit: 1, RetryAfter: ms(59_990), ResetAfter: ms(990)}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			checkSteps(t, mustLimiter(t, mustSet(t, c.rules...), ratelimit.Config{}), c.steps)
		})
	}
}

// TestRefusedChargesNothing has one rule refuse what the other would allow.
func TestRefusedChargesNothing(t *testing.T) {
	l := mustLimiter(t, mustSet(t, limitRule(t, "two", per(2, time.Minute)), limitRule(t, "ten", per(10, time.Minute))), ratelimit.Config{})
	var outcomes []ratelimit.Outcome
	for range 7 {
		_, outcomes = l.Judge(at(0), keyEvent(l, "k"), 1, outcomes[:0])
	}
	if outcomes[0].Remaining != 0 || outcomes[1].Remaining != 8 || outcomes[1].Refused {
		t.Errorf("after 2 allowed and 5 refused: %+v", outcomes)
	}
}

// TestCountRefused keeps a client out that doesn't stop trying, and lets one in
// that does. Without it, refusals don't matter.
func TestCountRefused(t *testing.T) {
	for _, n := range []uint64{2, 70} { // a log and a ring
		for _, counted := range []bool{false, true} {
			r := limitRule(t, "r", per(n, time.Second))
			r.CountRefused = counted
			l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
			allowed := 0
			now := int64(0)
			for ; now < 10_000; now += 5 {
				if takeKeyN(l, at(now), "k", 1).Allowed {
					allowed++
				}
			}
			if counted != (allowed == int(n)) {
				t.Errorf("N %d, refusals counted %v: %d allowed", n, counted, allowed)
			}
			d := takeKeyN(l, at(now), "k", 1)
			if d.Allowed {
				continue
			}
			if d := takeKeyN(l, at(now).Add(d.RetryAfter), "k", 1); !d.Allowed {
				t.Errorf("N %d, refusals counted %v: still refused after its retry-after: %+v", n, counted, d)
			}
		}
	}
}

// TestCountRefusedRemaining charges a refused event of a cost that only just
// does not fit: nothing is left then.
func TestCountRefusedRemaining(t *testing.T) {
	r := limitRule(t, "r", per(5, time.Second))
	r.CountRefused = true
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	checkSteps(t, l, []step{
		{0, 3, ratelimit.Decision{Allowed: true, Rule: "r", Limit: 5, Remaining: 2, ResetAfter: ms(1000)}},
		{500, 3, ratelimit.Decision{Rule: "r", Limit: 5, Remaining: 0, RetryAfter: ms(1000), ResetAfter: ms(1000)}},
		{600, math.MaxUint64, ratelimit.Decision{Rule: "r", Limit: 5, Remaining: 0, RetryAfter: ratelimit.Never, ResetAfter: ms(1000)}},
	})
}

// TestShadow checks that a shadow rule reports its outcome and has no other effect.
func TestShadow(t *testing.T) {
	shadow := limitRule(t, "shadow", per(1, time.Minute))
	shadow.Shadow, shadow.Ban = true, &ratelimit.Ban{After: 3, Span: time.Minute, For: time.Minute}
	l := mustLimiter(t, mustSet(t, shadow, limitRule(t, "real", per(3, time.Minute))), ratelimit.Config{})
	for i, want := range []struct{ allowed, would, banned, started bool }{
		{true, false, false, false},
		{true, true, false, false},
		{true, true, false, false},
		{false, true, true, true}, // refused by the real rule; the shadow ban starts
		{false, true, true, false},
	} {
		d, o := l.Judge(at(int64(i)), keyEvent(l, "k"), 1, nil)
		if d.Allowed != want.allowed || d.Rule != "real" || !d.BannedUntil.IsZero() {
			t.Errorf("event %d: %+v", i, d)
		}
		if o[0].Refused != want.would || o[0].Banned != want.banned || o[0].Started != want.started {
			t.Errorf("event %d: outcome of the shadow rule: %+v, want %+v", i, o[0], want)
		}
	}
	only := mustLimiter(t, mustSet(t, shadow), ratelimit.Config{})
	for i := range 6 {
		if d := takeKeyN(only, at(int64(i)), "k", 1); d != (ratelimit.Decision{Allowed: true}) {
			t.Errorf("event %d under a shadow rule alone: %+v", i, d)
		}
	}
}

// TestLimitZero refuses all, and no waiting helps.
func TestLimitZero(t *testing.T) {
	for _, a := range []ratelimit.Algorithm{ratelimit.Sliding, ratelimit.Exact} {
		r := limitRule(t, "none", per(0, time.Second))
		r.Algorithm = a
		checkSteps(t, mustLimiter(t, mustSet(t, r), ratelimit.Config{}), []step{
			{0, 1, ratelimit.Decision{Rule: "none", RetryAfter: ratelimit.Never}},
			{1e6, 5, ratelimit.Decision{Rule: "none", RetryAfter: ratelimit.Never}},
			{1e6, 0, ratelimit.Decision{Allowed: true, Rule: "none"}},
		})
	}
}

// TestCostAboveLimit refuses for ever, whatever the cost, and charges nothing.
func TestCostAboveLimit(t *testing.T) {
	for _, n := range []uint64{5, 70} {
		l := mustLimiter(t, mustSet(t, limitRule(t, "r", per(n, time.Second))), ratelimit.Config{})
		for _, cost := range []uint64{n + 1, math.MaxUint32, math.MaxUint32 + 1, math.MaxUint64} {
			d := takeKeyN(l, at(0), "k", cost)
			if want := (ratelimit.Decision{Rule: "r", Limit: n, Remaining: n, RetryAfter: ratelimit.Never}); !sameDecision(d, want) {
				t.Errorf("cost %d: %+v, want %+v", cost, d, want)
			}
		}
		if d := takeKeyN(l, at(0), "k", n); !d.Allowed || d.Remaining != 0 {
			t.Errorf("cost %d: %+v", n, d)
		}
	}
}

// TestCostZeroOnlyLooks looks at a full limit and at a ban one hit away, again
// and again: neither counts it.
func TestCostZeroOnlyLooks(t *testing.T) {
	l := mustLimiter(t, mustSet(t,
		limitRule(t, "limit", per(2, time.Minute)),
		ban(t, "ban", ratelimit.Ban{After: 3, Span: time.Minute, For: time.Minute}),
	), ratelimit.Config{})
	look := func(limitLeft, banLeft uint64) {
		t.Helper()
		for range 10 {
			d, o := l.Judge(at(0), keyEvent(l, "k"), 0, nil)
			if !d.Allowed || o[0].Remaining != limitLeft || o[1].Limit != 3 || o[1].Remaining != banLeft {
				t.Errorf("a look finds %+v, %+v; want %d and %d left", d, o, limitLeft, banLeft)
			}
		}
	}
	look(2, 3)
	takeKeyN(l, at(0), "k", 1)
	look(1, 2)
	takeKeyN(l, at(0), "k", 1)
	takeKeyN(l, at(0), "k", 1) // refused, and a hit
	look(0, 0)
	if d := takeKeyN(l, at(0), "k", 1); d.Rule != "ban" || d.Allowed {
		t.Errorf("the fourth hit: %+v", d)
	}
	if d := takeKeyN(l, at(0), "k", 0); d.Allowed {
		t.Errorf("a look during a ban: %+v", d)
	}
}

// TestNoRuleMatches allows events that no rule matches, and names no rule.
func TestNoRuleMatches(t *testing.T) {
	r := limitRule(t, "r", per(0, time.Second))
	r.When.Path = []string{"/login"}
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	for path, client := range map[string]string{"/": "a", "/login": ""} {
		var e match.Event
		e.SetString(match.Path, path)
		e.SetString(match.Client, client)
		if d, o := l.Judge(at(0), &e, 1, nil); d != (ratelimit.Decision{Allowed: true, Unmatched: true}) || len(o) != 0 {
			t.Errorf("path %q, client %q: %+v, %+v", path, client, d, o)
		}
	}
}

// TestCostErrorIsAboutALimit takes a cost above the limit during a ban: a ban counts hits, which have no cost.
func TestCostErrorIsAboutALimit(t *testing.T) {
	r := limitRule(t, "r", per(5, time.Minute))
	r.Ban = &ratelimit.Ban{After: 20, Span: time.Minute, For: time.Hour}
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	for range 21 {
		takeKeyN(l, at(0), "k", 1)
	}
	d := takeKeyN(l, at(0), "k", 10)
	if d.Allowed || d.BannedUntil.IsZero() || d.RetryAfter != ratelimit.Never || d.Err != nil {
		t.Errorf("during a ban: %+v", d)
	}
	var above *ratelimit.CostError
	if d = takeKeyN(l, at(0), "other", 10); !errors.As(d.Err, &above) || above.Cost != 10 || above.Limit != 5 {
		t.Errorf("without a ban: %+v", d)
	}
}
