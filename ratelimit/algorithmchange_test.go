package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// TestAlgorithmChange changes exact to gcra: both limits judge for one span of the
// old one, and then gcra alone.
func TestAlgorithmChange(t *testing.T) {
	rule := func(a ratelimit.Algorithm, n uint64) ratelimit.Rule {
		r := limit(t, "r", per(n, time.Minute))
		r.Algorithm = a
		return r
	}
	l := mustLimiter(t, mustSet(t, rule(ratelimit.Exact, 10)), ratelimit.Config{})
	update := func(r ratelimit.Rule) error { return l.Update(mustSet(t, r)) }
	take := func(s int64, cost uint64) ratelimit.Decision { return takeKeyN(l, at(1000*s), "k", cost) }
	if d := take(0, 7); !d.Allowed {
		t.Fatal(d)
	}
	if err := update(rule(ratelimit.GCRA, 60)); err != nil {
		t.Fatal(err)
	}
	if d := take(1, 3); !d.Allowed || d.Remaining != 0 || d.Limit != 10 {
		t.Errorf("3 of 60 by gcra, and of 3 left by exact: %+v", d)
	}
	if d := take(20, 1); d.Allowed || d.RetryAfter != 40*time.Second {
		t.Errorf("beyond what exact allows: %+v", d)
	}
	if d := take(20, 20); d.Allowed || d.RetryAfter != 40*time.Second {
		t.Errorf("above N of exact, which judges for 40 s more: %+v", d)
	}
	err := update(rule(ratelimit.Fixed, 60))
	if err == nil || !strings.Contains(err.Error(), "changed from exact to gcra") || !strings.Contains(err.Error(), "must be gcra until 2") {
		t.Errorf("another change within the span: %v", err)
	}
	if err := update(rule(ratelimit.GCRA, 120)); err != nil {
		t.Errorf("another N within the span: %v", err)
	}
	if d := take(59, 1); d.Allowed {
		t.Errorf("exact judges no more after a change of N: %+v", d)
	}
	if d := take(60, 100); !d.Allowed || d.Limit != 120 {
		t.Errorf("after a span of exact: %+v", d)
	}
	if err := update(rule(ratelimit.Fixed, 60)); err != nil {
		t.Errorf("another change after the span: %v", err)
	}
	if d := take(60, 30); d.Allowed || d.Limit != 120 {
		t.Errorf("beyond what gcra allows: %+v", d)
	}
}

// TestAlgorithmChangeReservation settles after a change what was reserved before it:
// the old limit gets it back, and the new one, which has not counted it, nothing.
func TestAlgorithmChangeReservation(t *testing.T) {
	r := limit(t, "r", per(10, time.Minute))
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	before := reserveN(l, at(0), keyEvent(l, "k"), 8)
	r.Algorithm = ratelimit.TwoBucket
	if err := l.Update(mustSet(t, r)); err != nil {
		t.Fatal(err)
	}
	if d := takeKeyN(l, at(1), "k", 2); !d.Allowed {
		t.Fatal(d)
	}
	if err := before.SettleAt(at(2), 0); err != nil {
		t.Fatal(err)
	}
	if d := peekKeyN(l, at(2), "k", 1); d.Remaining != 7 { // 8, less the one of the look
		t.Errorf("of 10, 2 were taken and 8 given back: %+v", d)
	}
}

// TestEventBeforeTheEndOfFormer drops the former limits of a rule, because an event of
// one key came after their end, and then judges an event of another key that is of an
// earlier time: the former limits would refuse it, so it is judged at their end.
func TestEventBeforeTheEndOfFormer(t *testing.T) {
	r := limit(t, "r", per(10, time.Minute))
	r.Algorithm = ratelimit.Exact
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	if d := takeKeyN(l, at(0), "k", 10); !d.Allowed {
		t.Fatal(d)
	}
	r.Algorithm = ratelimit.GCRA
	if err := l.Update(mustSet(t, r)); err != nil {
		t.Fatal(err)
	}
	takeKeyN(l, at(60_000), "another", 1) // the former limit is over
	r.Limits = []ratelimit.Limit{per(20, time.Minute)}
	if err := l.Update(mustSet(t, r)); err != nil {
		t.Fatal(err)
	}
	if d := takeKeyN(l, at(30_000), "k", 1); !d.Allowed {
		t.Errorf("refused at the end of the former limit: %+v", d)
	}
	if d := takeKeyN(l, at(59_000), "k", 20); d.Allowed { // it has drained by 9 since 30 s, by none since 60 s
		t.Errorf("21 of a burst of 20: %+v", d)
	}
}
