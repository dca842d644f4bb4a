package ratelimit_test

import (
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// worst is the most that a limit may allow in a window of its span.
func worst(a ratelimit.Algorithm, l ratelimit.Limit) uint64 {
	switch a {
	case ratelimit.TwoBucket, ratelimit.Fixed:
		return 2*l.N - 1
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		if l.Burst == 0 {
			l.Burst = l.N
		}
		return l.N + l.Burst - 1
	case ratelimit.Calendar:
		return 2 * l.N
	}
	return l.N
}

// refundTrial takes and gives back at random under a rule with one limit or two, and compares what is allowed in every true
// window with what each limit may allow and what was given back there: with two limits, one may have given back the whole
// request. refund is the method that gives back.
func refundTrial(t testing.TB, rnd *rand.Rand, a ratelimit.Algorithm, n int, refund func(l *ratelimit.Limiter, at time.Time, key string, n uint64) uint64) (wrong string, back int) {
	r := limitRule(t, "r", someLimit(rnd, a, 2, 150))
	if rnd.IntN(2) == 0 {
		r.Limits = append(r.Limits, someLimit(rnd, a, 2, 150))
	}
	r.Algorithm = a
	l := mustLimiter(t, mustSet(t, r, limitRule(t, "other", per(1, time.Hour))), ratelimit.Config{})
	keys := []string{"k", "a key of more than fifteen bytes"}
	var allowed, refunded [2]windowtest.Charges
	now := int64(1_700_000_000e9)
	for range n {
		span := int64(r.Limits[rnd.IntN(len(r.Limits))].Window())
		switch rnd.IntN(12) {
		case 0:
			now += rnd.Int64N(span)
		case 1:
			now += span - rnd.Int64N(2)
		case 2, 3, 4:
			now += rnd.Int64N(span/20 + 1)
		}
		k := rnd.IntN(2)
		if rnd.IntN(4) == 0 {
			asked := rnd.Uint64N(1 + rnd.Uint64N(2*r.Limits[0].N))
			taken := refund(l, time.Unix(0, now), keys[k], asked)
			if taken > asked {
				return fmt.Sprintf("%d given back of %d", taken, asked), back
			}
			back += int(min(taken, 1))
			if len(r.Limits) > 1 {
				taken = asked
			}
			if taken > 0 {
				refunded[k].Add(now, taken)
			}
			continue
		}
		cost := 1 + rnd.Uint64N(3)
		d := mustRule(l, "r").TakeAt(time.Unix(0, now), cost, keys[k])
		if !d.Allowed {
			continue
		}
		allowed[k].Add(now, cost)
		for _, lim := range r.Limits {
			span := int64(lim.Window())
			if a == ratelimit.Calendar {
				continue // its periods are what the counters' tests look at
			}
			got, may := allowed[k].In(now, span), worst(a, lim)+refunded[k].In(now, span)
			if got > may {
				return fmt.Sprintf("%v, %+v: %d allowed in a window that ends at %d, of which %d may be with what was given back", a, lim, got, now, may), back
			}
		}
	}
	return "", back
}

func refundRule(l *ratelimit.Limiter, at time.Time, key string, n uint64) uint64 {
	taken, err := mustRule(l, "r").RefundAt(at, n, key)
	if err != nil {
		panic(err)
	}
	return taken
}

// TestRefundGivesNoCredit gives back again and again under every algorithm: a true window never has more than the limit
// allows, and what was given back in that window.
func TestRefundGivesNoCredit(t *testing.T) {
	rnd := randtest.New(t)
	rounds, events := 4, 600
	if longForm() {
		rounds, events = 100, 4000
	}
	for i := range limit.Algorithms() {
		a, back := ratelimit.Algorithm(i), 0
		for range rounds {
			wrong, n := refundTrial(t, rnd, a, events, refundRule)
			if wrong != "" {
				t.Fatal(wrong)
			}
			back += n
		}
		if back < events/50 {
			t.Errorf("%v: given back %d times: the test has no teeth", a, back)
		}
	}
}

// TestRefundTwiceIsCaught is the control: a refund that gives back twice the amount.
func TestRefundTwiceIsCaught(t *testing.T) {
	rnd := randtest.New(t)
	twice := func(l *ratelimit.Limiter, at time.Time, key string, n uint64) uint64 {
		return max(refundRule(l, at, key, n), refundRule(l, at, key, n))
	}
	for i := range limit.Algorithms() {
		a, caught := ratelimit.Algorithm(i), ""
		for n := 0; n < 100 && caught == "" && a != ratelimit.Calendar; n++ {
			caught, _ = refundTrial(t, rnd, a, 1000, twice)
		}
		if caught == "" && a != ratelimit.Calendar {
			t.Errorf("%v: nobody notices", a)
		}
	}
}

// TestRefund gives back by hand.
func TestRefund(t *testing.T) {
	two := limitRule(t, "two", per(5, time.Second), per(8, time.Minute))
	bans := ban(t, "bans", ratelimit.Ban{After: 2, Span: time.Minute, For: time.Minute})
	l := mustLimiter(t, mustSet(t, two, bans), ratelimit.Config{})
	take := func(ms int64, cost, want uint64) {
		t.Helper()
		if d := mustRule(l, "two").TakeAt(at(ms), cost, "k"); !d.Allowed || d.Remaining != want {
			t.Errorf("at %d ms: %+v; want %d left", ms, d, want)
		}
	}
	refund := func(ms int64, rule, key string, n, want uint64) {
		t.Helper()
		if got, err := mustRule(l, rule).RefundAt(at(ms), n, key); err != nil || got != want {
			t.Errorf("at %d ms: %d given back of %d, %v; want %d", ms, got, n, err, want)
		}
	}
	refund(0, "two", "k", 3, 0) // never seen
	take(0, 2, 3)
	take(500, 3, 0)
	refund(600, "two", "k", 0, 0)
	refund(600, "two", "k", 1, 1)
	take(700, 1, 0)
	refund(1200, "two", "k", 9, 4) // the minute has 5, the second 4
	take(1200, 5, 0)
	refund(90_000, "two", "k", 9, 0)
	refund(80_000, "two", "k", 9, 0) // a clock set back
	take(80_000, 1, 4)
	refund(100_000, "two", "k", math.MaxUint64, 0) // the second is empty
	for i := range 3 {
		if d := mustRule(l, "bans").TakeAt(at(0), 1, "k"); d.Allowed != (i < 2) {
			t.Errorf("hit %d: %+v", i, d)
		}
		refund(0, "bans", "k", 9, 0)
	}
	take(200_000, 1, 4)
	refund(199_000, "two", "k", 0, 0) // a clock set back does not move the key's
	if d := mustRule(l, "two").TakeAt(at(199_500), 5, "k"); d.Allowed || d.RetryAfter != time.Second {
		t.Errorf("after a refund by a clock set back: %+v", d)
	}
	long := string(make([]byte, 5000))
	mustRule(l, "two").TakeAt(at(0), 4, long)
	refund(0, "two", long, 3, 3)
}

// TestRefundConcurrently takes and gives back concurrently: in the end nothing is used, and at no time was more than the
// limit taken.
func TestRefundConcurrently(t *testing.T) {
	const n = 20
	l := mustLimiter(t, mustSet(t, limitRule(t, "r", per(n, time.Hour)), limitRule(t, "many", per(1000, time.Hour))), ratelimit.Config{})
	each := 5000
	if testing.Short() {
		each = 500
	}
	var out, over atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range each {
				if d := mustRule(l, "r").TakeAt(at(0), 7, "k"); !d.Allowed {
					continue
				}
				over.Store(max(over.Load(), out.Add(7)))
				out.Add(-7)
				if got, err := mustRule(l, "r").RefundAt(at(0), 7, "k"); got != 7 || err != nil {
					t.Errorf("%d given back of 7, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if d := mustRule(l, "r").PeekN(at(0), 0, "k"); d.Remaining != n || over.Load() > n {
		t.Errorf("%d of %d left, %d were out at once", d.Remaining, n, over.Load())
	}
}

// An upload that failed is given back by a caller that has only the amount.
func ExampleRuleLimiter_Refund() {
	key, err := match.NewKey(match.Fold{}, "client", "user")
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := ratelimit.New(
		ratelimit.Rule{Name: "requests", Key: key, Limits: []ratelimit.Limit{{N: 1000, Span: time.Minute}}},
		ratelimit.Rule{Name: "uploads", Key: key, Limits: []ratelimit.Limit{{N: 3, Span: time.Hour}}},
	)
	if err != nil {
		log.Fatal(err)
	}
	uploads, err := limiter.Rule("uploads")
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		uploads.Take("203.0.113.9", "ada")
	}
	fmt.Println("a fourth:", uploads.Take("203.0.113.9", "ada").Allowed)
	n, err := uploads.Refund(1, "203.0.113.9", "ada")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("given back:", n, "and then:", uploads.Take("203.0.113.9", "ada").Allowed)
	_, err = limiter.Rule("upload")
	fmt.Println(err)
	// Output:
	// a fourth: false
	// given back: 1 and then: true
	// ratelimit: unknown rule "upload": did you mean "uploads"?
}
