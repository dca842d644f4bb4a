package limit_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// TestAgainstModels takes events and compares each decision, and the used amount, the wait and the reset after it, with the
// definition of the kind.
func TestAgainstModels(t *testing.T) {
	rnd := randtest.New(t)
	rounds, refused := 6, 0
	if longTests() {
		rounds = 300
	}
	for range rounds {
		for _, span := range []time.Duration{time.Millisecond, 7 * time.Millisecond, 997 * time.Millisecond, time.Second, time.Hour} {
			n := []uint64{1, 2, 3, 7, 60, 64, 65, 100, 254, 255, 1000}[rnd.IntN(11)]
			for _, c := range allKinds(n, span) {
				if c.Algorithm == limit.Calendar {
					c.Period, c.Zone = limit.Period(1+rnd.IntN(6)), zones(t)[rnd.IntN(len(zoneNames))]
				}
				if rnd.IntN(2) == 0 {
					c.Resolution = []time.Duration{7, time.Microsecond, time.Millisecond, span / 60, span/60 + 1, span / 7, span, 2 * span}[rnd.IntN(8)]
				}
				refused += checkAgainstModel(t, rnd, c)
			}
		}
	}
	if refused < 1000 {
		t.Errorf("only %d refused: the test has no teeth", refused)
	}
}

func checkAgainstModel(t *testing.T, rnd *rand.Rand, c limit.Config) (refused int) {
	t.Helper()
	s := newSubject(t, c)
	model := windowtest.New(c)
	span, events := int64(c.Span), 300
	if c.Algorithm == limit.Calendar {
		span = int64(30 * time.Hour)
		if c.Period <= limit.Minute {
			span = int64(time.Minute)
		}
	}
	most := s.Most()
	arrivals(rnd, span, max(int64(c.Resolution), 1), events, func(now int64) bool {
		cost := uint64(rnd.Int64N(int64(min(most, 9)))) + 1
		if rnd.IntN(10) == 0 {
			cost = most/2 + 1
		}
		where := fmt.Sprintf("%+v at %d, cost %d", c, now, cost)
		before := model.Used(now)
		if got := s.advance(now); got != before {
			t.Fatalf("%s: %d used, want %d", where, got, before)
		}
		allowed := before+cost <= most
		checkWait(t, where, s, model, now, cost)
		if got := s.take(now, cost); got != allowed {
			t.Fatalf("%s: allowed: %t, %d of %d used", where, got, before, most)
		}
		if allowed {
			model.Charge(now, cost)
		} else {
			refused++
		}
		if got, want := s.used(now), model.Used(now); got != want {
			t.Fatalf("%s: %d used afterwards, want %d", where, got, want)
		}
		checkReset(t, where, s, model, now)
		return true
	})
	return refused
}

func checkWait(t *testing.T, where string, s *subject, model *windowtest.Limit, now int64, cost uint64) {
	t.Helper()
	most, wait := s.Most(), s.wait(now, cost)
	switch {
	case cost > most:
		if wait != int64(limit.Never) {
			t.Fatalf("%s: the wait is %d for what never fits", where, wait)
		}
	case wait < 0 || wait == 0 && model.Used(now)+cost > most:
		t.Fatalf("%s: the wait is %d, %d of %d used", where, wait, model.Used(now), most)
	case wait > 0 && (model.Used(now+wait)+cost > most || model.Used(now+wait-1)+cost <= most):
		t.Fatalf("%s: after the wait of %d, %d of %d used; a nanosecond before it %d", where, wait, model.Used(now+wait), most, model.Used(now+wait-1))
	}
}

func checkReset(t *testing.T, where string, s *subject, model *windowtest.Limit, now int64) {
	t.Helper()
	reset := s.reset(now)
	if model.Used(now+reset) != 0 || reset > 0 && model.Used(now+reset-1) == 0 || reset < 0 {
		t.Fatalf("%s: after the reset of %d, %d used", where, reset, model.Used(now+reset))
	}
}

// TestNothingIsUsedByZeroWords reads every kind of counter with words that are all zero, at any time.
func TestNothingIsUsedByZeroWords(t *testing.T) {
	for _, now := range []int64{-7e18, -1, 0, 1, 1e9, 1.8e18, 7e18} {
		for _, n := range []uint64{0, 1, 60, 100, 150, 60_000} {
			for _, c := range allKinds(n, time.Minute) {
				if n == 0 {
					c.Burst = 0
				}
				s := newSubject(t, c)
				if s.advance(now) != 0 || s.used(now) != 0 || s.reset(now) != 0 || s.refund(now, now, 1) != 0 || s.Delay(s.w, s.b, now) != 0 {
					t.Errorf("%+v at %d: zero words are not an empty window", c, now)
				}
				for range s.Each(s.w, s.b, now) {
					t.Errorf("%+v at %d: zero words hold something", c, now)
				}
				if allowed := s.take(now, 1); allowed != (n > 0) {
					t.Errorf("%+v at %d: the first event is allowed: %t", c, now, allowed)
				}
				if wait := s.wait(now, 1); n == 0 && wait != int64(limit.Never) || s.wait(now, 0) != 0 {
					t.Errorf("%+v at %d: the wait is %d", c, now, wait)
				}
				s.Clear(s.w, s.b)
				if s.advance(now) != 0 {
					t.Errorf("%+v: something is left after Clear", c)
				}
			}
		}
	}
}

// TestLowerLimit requests the wait under an n below the counter's, as for a limit that follows the traffic.
func TestLowerLimit(t *testing.T) {
	rnd := randtest.New(t)
	for _, c := range allKinds(150, time.Second) {
		s := newSubject(t, c)
		if s.Most() != 150 {
			continue // the burst does not change
		}
		model := windowtest.New(c)
		now := int64(1e12)
		for range 140 {
			now += rnd.Int64N(1e6)
			s.take(now, 1)
			model.Charge(now, 1)
		}
		for _, n := range []uint64{0, 1, 50, 139, 140, 141, 150} {
			wait := int64(s.Wait(s.w, s.b, now, n, 1))
			switch {
			case n == 0 && c.Algorithm != limit.GCRA:
				if wait != int64(limit.Never) {
					t.Errorf("%v: the wait for 1 of 0 is %d", c.Algorithm, wait)
				}
			case c.Algorithm == limit.GCRA:
				if wait != 0 {
					t.Errorf("gcra: the wait under a lower n is %d; it goes by its burst", wait)
				}
			case model.Used(now+wait) >= n, wait > 0 && model.Used(now+wait-1) < n:
				t.Errorf("%v: the wait for 1 under %d is %d, then %d are used", c.Algorithm, n, wait, model.Used(now+wait))
			}
		}
	}
}

// TestLeakyBucketDelay delays allowed events to their turn: turns are in order, at the pace of the limit to the nanosecond,
// and never more than N of them in any window.
func TestLeakyBucketDelay(t *testing.T) {
	rnd := randtest.New(t)
	for _, n := range []uint64{1, 3, 7, 60, 999} {
		const span = time.Second
		s := newSubject(t, limit.Config{Algorithm: limit.LeakyBucket, N: n, Span: span, Burst: 2*n + 1})
		var turns []int64
		queued := 0
		arrivals(rnd, int64(span), 1, 30_000, func(now int64) bool {
			if !s.take(now, 1) {
				return true
			}
			turn := now + int64(s.Delay(s.w, s.b, now))
			if turn > now {
				queued++
			}
			k := len(turns)
			if turns = append(turns, turn); k > 0 && turn-turns[k-1] < int64(span)/int64(n) {
				t.Fatalf("n %d: turns %d and %d", n, turns[k-1], turn)
			}
			if k >= int(n) && turn-turns[k-int(n)] < int64(span) {
				t.Fatalf("n %d: %d turns in %d ns", n, n+1, turn-turns[k-int(n)])
			}
			return true
		})
		if queued < 1000 {
			t.Errorf("n %d: only %d had to wait: the test has no teeth", n, queued)
		}
		s.Clear(s.w, s.b)
		s.take(0, 3)
		if got, want := s.Delay(s.w, s.b, 0), time.Duration((2*int64(span)+int64(n)-1)/int64(n)); got != want {
			t.Errorf("n %d: the third unit waits %v, want %v", n, got, want)
		}
	}
}

// TestLevelsDoNotDrift runs buckets whose pace is not a whole number of nanoseconds at their limit: after any number of
// spans exactly the available amount has been allowed. (With a burst of 1 each event finds the bucket empty, and loses the
// fraction of a nanosecond until it comes.)
func TestLevelsDoNotDrift(t *testing.T) {
	for _, n := range []uint64{3, 7, 999_983, 1_000_003} {
		for _, kind := range []limit.Algorithm{limit.GCRA, limit.LeakyBucket} {
			s := newSubject(t, limit.Config{Algorithm: kind, N: n, Span: time.Second, Burst: 2})
			s.take(0, 1)
			allowed := uint64(0)
			for now := int64(0); allowed < 50_000; now += s.wait(now, 1) {
				if s.take(now, 1) {
					if want := int64((allowed*1e9 + n - 1) / n); now != want {
						t.Fatalf("%v, %d per second: allowed event %d is at %d, want %d", kind, n, allowed, now, want)
					}
					allowed++
				}
			}
		}
	}
}
