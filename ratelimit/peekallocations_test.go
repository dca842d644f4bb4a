package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/ratelimit"
)

// TestPeeksDoNotAllocate looks in every way, and decides where a decision takes more
// memory than usual: under many rules at once, and for keys without memory.
func TestPeeksDoNotAllocate(t *testing.T) {
	var many []ratelimit.Rule
	for i := range 20 {
		many = append(many, limitRule(t, fmt.Sprint(i), per(1000, time.Second), per(40, time.Second)))
	}
	under := mustLimiter(t, mustSet(t, many...), ratelimit.Config{})
	l := mustLimiter(t, mustSet(t, many[:2]...), ratelimit.Config{})
	full := fullLimiter(t)
	e, unknown, without, rule := keyEvent(l, "k"), keyEvent(l, "new"), keyEvent(full, "without memory"), mustRule(l, "0")
	now := int64(0)
	for name, verb := range map[string]func(){
		"Peek":               func() { l.Peek(e) },
		"PeekN":              func() { l.PeekN(at(now), e, 2) },
		"RuleLimiter.Peek":   func() { rule.Peek("k") },
		"PeekN of a new key": func() { l.PeekN(at(now), unknown, 1) },
		"TakeAt, many rules": func() { under.TakeAt(at(now), e, 1) },
		"PeekN, many rules":  func() { under.PeekN(at(now), e, 1) },
		"TakeAt, no memory":  func() { full.TakeAt(at(0), without, 1) },
		"PeekN, no memory":   func() { full.PeekN(at(0), without, 1) },
	} {
		step := func() {
			now += 20
			verb()
		}
		takeKeyN(l, at(now), "k", 1)
		for range 500 {
			step()
		}
		if n := testing.AllocsPerRun(500, step); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	if s := full.Stats(); s.Rules[0].Sketched == 0 {
		t.Errorf("no key was without memory: %+v", s)
	}
}

// fullLimiter returns a limiter whose budget is taken by keys that are protected.
func fullLimiter(t *testing.T) *ratelimit.Limiter {
	l := mustLimiter(t, mustSet(t, limitRule(t, "r", per(1, time.Hour))), ratelimit.Config{Budget: 1 << 20})
	for i := range 40_000 {
		takeKeyN(l, at(0), fmt.Sprint("key ", i), 1)
	}
	return l
}

// TestLookAtNewKeyAfterAnother has a key that is full looked at, and then one that
// is new under the same rules, with the same memory: nothing of the first may show.
func TestLookAtNewKeyAfterAnother(t *testing.T) {
	rnd := randtest.New(t)
	for range 200 {
		rules := randomRules(t, rnd)
		l, fresh := mustLimiter(t, mustSet(t, rules...), ratelimit.Config{}), mustLimiter(t, mustSet(t, rules...), ratelimit.Config{})
		now := rnd.Int64N(1 << 40)
		for range 100 {
			takeKeyN(l, at(now), "full", 1)
		}
		peekKeyN(l, at(now), "full", 1)
		got, want := peekKeyN(l, at(now), "new", 1), peekKeyN(fresh, at(now), "new", 1)
		if got != want {
			t.Fatalf("a new key, after another: %+v\nwithout: %+v\nrules %+v", got, want, rules)
		}
	}
}
