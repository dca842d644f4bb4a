package ratelimit_test

import (
	"fmt"
	"log"
	"math"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// TestCharge charges within the limit, beyond it and far beyond it, under every algorithm: a charge is never refused;
// afterwards the key is, until RetryAfter, which is at most two windows.
func TestCharge(t *testing.T) {
	for _, name := range limit.Algorithms() {
		a := must.Get(limit.AlgorithmNamed(name))(t)
		for _, n := range []uint64{10, 500} {
			for _, charged := range []uint64{n / 2, n, n + 1, 3 * n, math.MaxUint64} {
				t.Run(fmt.Sprint(name, n, charged), func(t *testing.T) { testCharge(t, a, n, charged) })
			}
		}
	}
}

func testCharge(t *testing.T, a ratelimit.Algorithm, n, charged uint64) {
	window := per(n, time.Minute)
	if a == ratelimit.Calendar {
		window = ratelimit.Limit{N: n, Per: ratelimit.PerMinute}
	}
	l := with(t, a, window)
	r, other := mustRule(l, "r"), "another key"
	start := at(120_000)
	if d := r.TakeAt(start, 1, "k"); !d.Allowed {
		t.Fatalf("before the charge: %+v", d)
	}
	must.Do(t, r.ChargeAt(start, charged, "k"))
	if d := r.PeekN(start, 1, other); d.Remaining != n-1 {
		t.Errorf("another key was charged: %+v", d)
	}
	d := r.PeekN(start, 1, "k")
	if charged == n/2 {
		if !d.Allowed || d.Remaining != n-n/2-2 {
			t.Errorf("after a charge of half: %+v", d)
		}
		return
	}
	if d.Allowed || d.Remaining != 0 || d.RetryAfter <= 0 || d.RetryAfter > 2*time.Minute {
		t.Fatalf("after a charge of %d: %+v", charged, d)
	}
	if early := r.PeekN(start.Add(d.RetryAfter-1), 1, "k"); early.Allowed {
		t.Errorf("allowed before RetryAfter %v is over", d.RetryAfter)
	}
	if late := r.TakeAt(start.Add(d.RetryAfter), 1, "k"); !late.Allowed {
		t.Errorf("refused after RetryAfter %v: %+v", d.RetryAfter, late)
	}
}

// TestChargeOfOtherKeys charges keys that the rule does not have, keys on the allow list, and keys under a rule that was
// removed.
func TestChargeOfOtherKeys(t *testing.T) {
	l := mustLimiter(t, mustSet(t, limitRule(t, "r", per(10, time.Hour)), limitRule(t, "goes", per(10, time.Hour))), ratelimit.Config{})
	r, goes := mustRule(l, "r"), mustRule(l, "goes")
	if err := r.Charge(1, "k", "too many"); err == nil {
		t.Error("a key with two values is charged under a rule with one field")
	}
	must.Do(t, l.Update(mustSet(t, limitRule(t, "r", per(10, time.Hour)))))
	if err, ok := goes.Charge(1, "k").(*ratelimit.RuleError); !ok || err.Name != "goes" {
		t.Errorf("charged under a rule that is gone: %v", err)
	}
	if d := goes.Take("k"); !d.Allowed || !d.Unmatched || d.Err == nil {
		t.Errorf("taken under a rule that is gone: %+v", d)
	}
	if d := r.Take(); d.Allowed || d.Err == nil {
		t.Errorf("taken without a value: %+v", d)
	}
}

// Answers cost as many tokens as they had at their end. The last may exceed the limit; the user then waits until it has
// left the window.
func ExampleRuleLimiter_Charge() {
	key, err := match.NewKey(match.Fold{}, "user")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name: "tokens", Key: key, Limits: []ratelimit.Limit{{N: 1000, Span: time.Hour}},
	})
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := limiter.Rule("tokens")
	if err != nil {
		log.Fatal(err)
	}
	for _, used := range []uint64{700, 800, 100} {
		if d := tokens.Peek("ada"); !d.Allowed {
			fmt.Println("refused")
			continue
		}
		if err := tokens.Charge(used, "ada"); err != nil {
			log.Fatal(err)
		}
		fmt.Println("used", used, "left", tokens.Peek("ada").Remaining)
	}
	// Output:
	// used 700 left 299
	// used 800 left 0
	// refused
}
