package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

func with(t testing.TB, a ratelimit.Algorithm, limits ...ratelimit.Limit) *ratelimit.Limiter {
	t.Helper()
	r := limitRule(t, "r", limits...)
	r.Algorithm = a
	return mustLimiter(t, mustSet(t, r), ratelimit.Config{})
}

// TestSettle gives back what was reserved too much, once, and charges what was too little, for each algorithm that counts.
func TestSettle(t *testing.T) {
	for _, a := range []ratelimit.Algorithm{
		ratelimit.Sliding, ratelimit.Exact, ratelimit.TwoBucket, ratelimit.GCRA,
		ratelimit.LeakyBucket, ratelimit.Fixed, ratelimit.Calendar,
	} {
		for _, n := range []uint64{10, 100} {
			t.Run(fmt.Sprint(a, n), func(t *testing.T) {
				l := with(t, a, per(n, time.Hour))
				left := func() uint64 { return peekKeyN(l, at(0), "k", 0).Remaining }
				r := reserveN(l, at(0), keyEvent(l, "k"), 8)
				if !r.Decision.Allowed || left() != n-8 {
					t.Fatalf("reserved: %+v, %d left", r.Decision, left())
				}
				for range 2 { // the second does nothing
					if err := r.SettleAt(at(0), 3); err != nil || left() != n-3 {
						t.Fatalf("settled to 3: %v, %d left of %d", err, left(), n)
					}
				}
				r = reserveN(l, at(0), keyEvent(l, "k"), 1)
				if r.SettleAt(at(0), 6); left() != n-9 {
					t.Fatalf("settled to 6: %d left of %d", left(), n)
				}
				r = reserveN(l, at(0), keyEvent(l, "k"), 1)
				if r.SettleAt(at(0), n); left() != 0 || takeKeyN(l, at(0), "k", 1).Allowed {
					t.Errorf("charged beyond the limit: %d left", left())
				}
				if r = reserveN(l, at(0), keyEvent(l, "k"), 1); r.Decision.Allowed {
					t.Error("reserved beyond the limit")
				}
				if err := r.SettleAt(at(0), 0); err != nil || left() != 0 {
					t.Errorf("a refused reservation gave back %d, %v", left(), err)
				}
			})
		}
	}
}

// TestNoCredit cancels reservations that have left the window.
func TestNoCredit(t *testing.T) {
	for _, n := range []uint64{5, 100} {
		l := with(t, ratelimit.Sliding, per(n, time.Minute))
		used := func(ms int64) uint64 { return n - peekKeyN(l, at(ms), "k", 0).Remaining }

		expired := reserveN(l, at(0), keyEvent(l, "k"), 3)
		takeKeyN(l, at(70_000), "k", 2)
		if expired.SettleAt(at(70_000), 0); used(70_000) != 2 {
			t.Errorf("canceled after it had expired: %d used, want 2", used(70_000))
		}

		reset := reserveN(l, at(70_000), keyEvent(l, "k"), 2)
		if err := resetKey(l, "k"); err != nil || used(70_000) != 0 {
			t.Fatalf("reset: %v, %d used", err, used(70_000))
		}
		takeKeyN(l, at(70_000), "k", 2) // at the same time as the reservation
		if reset.SettleAt(at(70_000), 0); used(70_000) != 2 {
			t.Errorf("canceled after a reset: %d used, want 2", used(70_000))
		}
	}
}

// TestSettleAfterUpdate settles what was reserved under earlier rules.
func TestSettleAfterUpdate(t *testing.T) {
	l := mustLimiter(t, mustSet(t, limitRule(t, "gone", per(9, time.Minute)), limitRule(t, "r", per(9, time.Minute))), ratelimit.Config{})
	r := reserveN(l, at(0), keyEvent(l, "k"), 4)
	must.Do(t, l.Update(mustSet(t, limitRule(t, "new", per(9, time.Minute)), limitRule(t, "r", per(9, time.Minute)))))
	if d := peekKeyN(l, at(0), "k", 0); d.Rule != "r" || d.Remaining != 5 {
		t.Errorf("after the update: %+v", d)
	}
	must.Do(t, r.SettleAt(at(0), 0))
	_, os := l.Judge(at(0), keyEvent(l, "k"), 0, nil)
	if os[0].Remaining != 9 || os[1].Remaining != 9 {
		t.Errorf("after the settlement: %+v", os)
	}
}

// TestPeekChangesNothing peeks between all other calls, also into the future, and compares with a limiter that is never
// peeked.
func TestPeekChangesNothing(t *testing.T) {
	rnd := randtest.New(t)
	for _, name := range limit.Algorithms() {
		a, _ := limit.AlgorithmNamed(name)
		for _, n := range []uint64{4, 80} {
			r := limitRule(t, "r", per(n, time.Second))
			r.Algorithm = a
			r.Ban = &ratelimit.Ban{After: 6, Of: ratelimit.Refusals, Span: time.Second, For: 300 * time.Millisecond}
			asked, other := mustLimiter(t, mustSet(t, r), ratelimit.Config{}), mustLimiter(t, mustSet(t, r), ratelimit.Config{})
			now := int64(0)
			for range 2000 {
				now += rnd.Int64N(30 * 4 / int64(n/4))
				cost := 1 + rnd.Uint64N(3)
				peekKeyN(asked, at(now+rnd.Int64N(3000)), "k", rnd.Uint64N(5))
				peekKeyN(asked, at(now), "never taken", 1)
				would := peekKeyN(asked, at(now), "k", cost)
				got, want := takeKeyN(asked, at(now), "k", cost), takeKeyN(other, at(now), "k", cost)
				if got.Allowed != want.Allowed || got.Remaining != want.Remaining || got.RetryAfter != want.RetryAfter ||
					got.ResetAfter != want.ResetAfter || !got.BannedUntil.Equal(want.BannedUntil) {
					t.Fatalf("%s: with Peek before it %+v, without %+v", name, got, want)
				}
				if would.Allowed != got.Allowed {
					t.Fatalf("%s: it would be %+v, and is %+v", name, would, got)
				}
			}
			if keys := asked.Stats().Rules[0].Keys; keys != 1 {
				t.Errorf("%s: %d keys are held, want the one that was taken", name, keys)
			}
		}
	}
}

func TestInFlight(t *testing.T) {
	l := with(t, ratelimit.InFlight, per(3, time.Minute))
	var rs []*ratelimit.Reservation
	for range 3 {
		rs = append(rs, reserveN(l, at(0), keyEvent(l, "k"), 1))
	}
	if d := takeKeyN(l, at(10), "k", 1); d.Allowed {
		t.Fatalf("a fourth at once: %+v", d)
	}
	rs[1].SettleAt(at(20), 1) // over, whatever it cost
	if again := reserveN(l, at(20), keyEvent(l, "k"), 1); !again.Decision.Allowed {
		t.Fatalf("after one is over: %+v", again.Decision)
	}
	if d := takeKeyN(l, at(59_999), "k", 1); d.Allowed {
		t.Errorf("within the longest time: %+v", d)
	}
	if d := takeKeyN(l, at(60_000), "k", 1); !d.Allowed {
		t.Errorf("after two that never ended have to be believed over: %+v", d)
	}
}

// TestConcurrentInFlightIsNeverAbove has many goroutines under way at once.
func TestConcurrentInFlightIsNeverAbove(t *testing.T) {
	const most = 5
	l := with(t, ratelimit.InFlight, per(most, time.Hour))
	var under, allowed atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 3000 {
				r := l.Reserve(keyEvent(l, "k"), 1)
				if !r.Decision.Allowed {
					continue
				}
				if n := under.Add(1); n > most {
					t.Errorf("%d are under way", n)
				}
				allowed.Add(1)
				under.Add(-1)
				r.Cancel()
			}
		})
	}
	wg.Wait()
	if d := peekKey(l, "k"); d.Remaining != most-1 || allowed.Load() == 0 {
		t.Errorf("%d were allowed; in the end %+v", allowed.Load(), d)
	}
}

// TestConcurrentReservationEndsOnce cancels one of two reservations several times at once.
func TestConcurrentReservationEndsOnce(t *testing.T) {
	l := with(t, ratelimit.Sliding, per(100, time.Hour))
	l.Reserve(keyEvent(l, "k"), 60)
	r := l.Reserve(keyEvent(l, "k"), 40)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 3 {
				if err := r.Cancel(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if d := peekKey(l, "k"); d.Remaining != 39 {
		t.Errorf("60 and 40 were reserved of 100, and the 40 canceled: %+v, want 39 left after another", d)
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := with(t, ratelimit.Sliding, per(2, time.Second))
		start := time.Now()
		for i, want := range []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second} {
			r, err := l.Wait(t.Context(), keyEvent(l, "k"), 1)
			if err != nil || !r.Decision.Allowed || time.Since(start) != want {
				t.Errorf("the %d-th waited %v, want %v; %+v, %v", i, time.Since(start), want, r.Decision, err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		takeKey(l, "k")
		before := time.Now()
		if _, err := l.Wait(short, keyEvent(l, "k"), 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != 0 {
			t.Errorf("a context that would not last: %v after %v", err, time.Since(before))
		}
		if _, err := l.Wait(t.Context(), keyEvent(l, "k"), 3); !isCost(err) {
			t.Errorf("a cost above the limit: %v", err)
		}
		ends, end := context.WithCancel(t.Context())
		time.AfterFunc(100*time.Millisecond, end)
		if _, err := l.Wait(ends, keyEvent(l, "k"), 2); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ended: %v", err)
		}
	})
}

func isCost(err error) bool {
	return errors.Is(err, ratelimit.ErrCost)
}

// TestConcurrentWaitInTheLeakyBucket has each wait for its turn, in order, and none in a
// queue that is full.
func TestConcurrentWaitInTheLeakyBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := with(t, ratelimit.LeakyBucket, ratelimit.Limit{N: 10, Span: time.Second, Burst: 4})
		start := time.Now()
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				_, err := l.Wait(t.Context(), keyEvent(l, "k"), 1)
				if waited := time.Since(start); err != nil || waited != time.Duration(i)*100*time.Millisecond {
					t.Errorf("the %d-th waited %v, %v", i, waited, err)
				}
			})
			synctest.Wait()
		}
		if d := peekKey(l, "k"); d.Allowed || d.RetryAfter != 100*time.Millisecond {
			t.Errorf("the queue is full: %+v", d)
		}
		wg.Wait()

		// A caller that gives up gives the place back. The last one is still served.
		takeKey(l, "k")
		takeKey(l, "k")
		ends, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, end)
		if _, err := l.Wait(ends, keyEvent(l, "k"), 1); !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
		if d := peekKey(l, "k"); !d.Allowed || peekKeyN(l, l.Now(), "k", 2).Allowed {
			t.Errorf("after one gave up: %+v", d)
		}
	})
}

func TestWaitDoesNotWaitForABan(t *testing.T) {
	r := limitRule(t, "r", per(1, time.Second))
	r.Ban = &ratelimit.Ban{After: 0, Of: ratelimit.Refusals, Span: time.Second, For: time.Hour}
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	takeKey(l, "k")
	takeKey(l, "k")
	if _, err := l.Wait(t.Context(), keyEvent(l, "k"), 1); !errors.Is(err, ratelimit.ErrBanned) {
		t.Errorf("in a ban: %v", err)
	}
	if d := takeKey(with(t, ratelimit.Sliding, per(0, time.Second)), "k"); d.Err != nil || d.RetryAfter != ratelimit.Never {
		t.Errorf("a limit of 0: %+v", d)
	}
}

// ExampleLimiter_Reserve charges bytes, whose number is known after they were sent.
func ExampleLimiter_Reserve() {
	key, _ := match.NewKey(match.Fold{}, "client")
	limiter, err := ratelimit.New(ratelimit.Rule{
		Name: "bytes", Key: key,
		Limits: []ratelimit.Limit{{N: 1 << 20, Span: time.Minute}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var e match.Event
	e.SetString(match.Client, "192.0.2.1")
	r := limiter.Reserve(&e, 64<<10) // an estimate
	if !r.Decision.Allowed {
		fmt.Println("try again after", r.Decision.RetryAfter)
		return
	}
	r.Settle(10 << 10) // what it was
	fmt.Println(limiter.Peek(&e).Limit-limiter.Peek(&e).Remaining-1, "bytes are charged")
	// Output: 10240 bytes are charged
}

// TestReservationOpen has an open reservation exactly where a rule that matches has the event in flight; decision and
// outcomes are those of Judge.
func TestReservationOpen(t *testing.T) {
	inFlight := limitRule(t, "in-flight", per(2, time.Hour))
	inFlight.Algorithm, inFlight.When = ratelimit.InFlight, match.When{Method: []string{"POST"}}
	set := mustSet(t, limitRule(t, "count", per(9, time.Hour)), inFlight)
	l, other := mustLimiter(t, set, ratelimit.Config{}), mustLimiter(t, set, ratelimit.Config{})
	var get, post match.Event
	get.SetString(match.Client, "192.0.2.1")
	get.SetString(match.Method, "GET")
	post.SetString(match.Client, "192.0.2.1")
	post.SetString(match.Method, "POST")
	for i, c := range []struct {
		e    *match.Event
		held bool
	}{{&get, false}, {&post, true}, {&get, false}, {&post, true}, {&post, false}} {
		r := reserveN(l, at(int64(i)), c.e, 1)
		d, outcomes, held := r.Decision, r.Outcomes, r.Open()
		want, said := other.Judge(at(int64(i)), c.e, 1, nil)
		if d != want || !slices.Equal(outcomes, said) || held != c.held {
			t.Errorf("event %d: %+v, %+v, held %v; Judge: %+v, %+v", i, d, outcomes, held, want, said)
		}
	}
}
