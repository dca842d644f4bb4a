package limit_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// TestRefund refunds charges, at any later time. The amount used afterwards follows the definition for the remaining
// events; with buckets it is no less, and no more than before.
func TestRefund(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 10
	if longTests() {
		rounds = 400
	}
	for range rounds {
		n := []uint64{1, 2, 5, 128, 129, 300}[rnd.IntN(6)]
		span := []time.Duration{time.Millisecond, time.Second, time.Minute}[rnd.IntN(3)]
		for _, c := range allKinds(n, span) {
			checkRefunds(t, rnd, c)
		}
	}
}

func checkRefunds(t *testing.T, rnd *rand.Rand, c limit.Config) {
	t.Helper()
	s := newSubject(t, c)
	model := windowtest.New(c)
	level := c.Algorithm == limit.GCRA || c.Algorithm == limit.LeakyBucket
	span, back := max(int64(c.Span), 1e6), 0
	var charged windowtest.Charges
	arrivals(rnd, span, 1, 200, func(now int64) bool {
		cost := 1 + rnd.Uint64N(min(s.Most(), 4))
		if s.take(now, cost) {
			model.Charge(now, cost)
			charged.Add(now, cost)
		}
		for range rnd.IntN(3) {
			if len(charged) == 0 {
				break
			}
			// Mostly a young charge; all of it, or a part.
			i := max(len(charged)-1-rnd.IntN(1+rnd.IntN(20)), 0)
			r, part := charged[i], uint64(0)
			if part = rnd.Uint64N(r.N + 1); rnd.IntN(3) > 0 {
				part = r.N
			}
			before := s.used(now)
			got := s.refund(now, r.At, part)
			after := s.used(now)
			charged[i].N -= part
			charged = slices.DeleteFunc(charged, func(c windowtest.Charge) bool { return c.N == 0 })
			model.Refund(now, r.At, part)
			want, where := model.Used(now), fmt.Sprintf("%+v: refund at %d of %d from %d", c, now, part, r.At)
			switch {
			case got > part || after > before || before-after > part:
				t.Fatalf("%s: takes back %d, %d used, before %d", where, got, after, before)
			case after < want:
				t.Fatalf("%s: %d used, want %d: a credit", where, after, want)
			case after != want, !level && got > before-after && c.Algorithm != limit.TwoBucket, level && now == r.At && got != part:
				t.Fatalf("%s: takes back %d, %d used, before %d, want %d", where, got, after, before, want)
			}
			if got > 0 {
				back++
			}
		}
		return true
	})
	if back == 0 {
		t.Errorf("%+v: nothing was ever taken back: the test has no teeth", c)
	}
}

// TestRefundGivesNoCredit charges any costs, also far beyond the limit, and takes some of it back, again and again. The
// charges that were not taken back must count: the used amount is never less than their amount by the definition, or the
// maximum of the counter.
func TestRefundGivesNoCredit(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 15
	if longTests() {
		rounds = 1000
	}
	for range rounds {
		n := []uint64{1, 2, 5, 128, 129, 300}[rnd.IntN(6)]
		for _, c := range allKinds(n, time.Second) {
			if credit := findCredit(t, rnd, c, (*subject).refund); credit != "" {
				t.Fatalf("%+v: %s", c, credit)
			}
		}
	}
}

// TestRefundOfABusyBucket takes back from buckets that hold several times N and never run empty: the level is the earlier
// one, less the refund and the amount that cannot have drained since.
func TestRefundOfABusyBucket(t *testing.T) {
	rnd := randtest.New(t)
	back := 0
	for range 300 {
		n := 1 + rnd.Uint64N(12)
		c := limit.Config{Algorithm: limit.GCRA, N: n, Burst: n + rnd.Uint64N(4*n), Span: []time.Duration{time.Second, 7 * time.Second}[rnd.IntN(2)]}
		s := newSubject(t, c)
		model := windowtest.New(c)
		var charged windowtest.Charges
		now := int64(0)
		for range 200 {
			now += rnd.Int64N(2 * int64(c.Span) / int64(n))
			if cost := 1 + rnd.Uint64N(c.Burst); s.take(now, cost) {
				model.Charge(now, cost)
				charged.Add(now, cost)
			}
			if rnd.IntN(4) == 0 && len(charged) > 0 {
				i := max(len(charged)-1-rnd.IntN(8), 0)
				r := charged[i]
				charged = slices.Delete(charged, i, i+1)
				before := model.Used(now)
				s.refund(now, r.At, r.N)
				if model.Refund(now, r.At, r.N); model.Used(now) < before && now-r.At > int64(c.Span) {
					back++
				}
			}
			if used, want := s.used(now), model.Used(now); used != want {
				t.Fatalf("%+v: at %d, %d used, want %d", c, now, used, want)
			}
		}
	}
	if back == 0 {
		t.Error("nothing was taken back of what is older than the span: the test has no teeth")
	}
}

// TestCreditIsCaught is the control: a log that does not record that it has dropped times which still count, and a bucket
// that does not record that it has drained.
func TestCreditIsCaught(t *testing.T) {
	rnd := randtest.New(t)
	lossy := func(s *subject, _, at int64, cost uint64) uint64 { return uint64(s.b.Remove(s.w, at, int(cost))) }
	tight := func(s *subject, _, at int64, cost uint64) uint64 { return s.refund(at, at, cost) }
	for _, c := range []struct {
		limit.Config
		refund func(*subject, int64, int64, uint64) uint64
	}{
		{limit.Config{Algorithm: limit.Exact, N: 5, Span: time.Second}, lossy},
		{limit.Config{Algorithm: limit.GCRA, N: 5, Span: time.Second}, tight},
	} {
		caught := ""
		for i := 0; caught == "" && i < 500; i++ {
			caught = findCredit(t, rnd, c.Config, c.refund)
		}
		if caught == "" {
			t.Errorf("%v: a refund that makes credit is not noticed", c.Algorithm)
		}
	}
}

func findCredit(t *testing.T, rnd *rand.Rand, c limit.Config, refund func(*subject, int64, int64, uint64) uint64) (credit string) {
	t.Helper()
	s := newSubject(t, c)
	model := windowtest.New(c)
	var charged windowtest.Charges
	arrivals(rnd, int64(time.Second), 1, 100, func(now int64) bool {
		s.advance(now)
		if rnd.IntN(2) == 0 || len(charged) == 0 {
			cost := 1 + rnd.Uint64N(1+rnd.Uint64N(3*c.N))
			s.charge(now, cost)
			model.Charge(now, cost)
			charged.Add(now, cost)
		} else {
			i := max(len(charged)-1-rnd.IntN(1+rnd.IntN(10)), 0)
			r := charged[i]
			refund(s, now, r.At, r.N)
			if charged = slices.Delete(charged, i, i+1); c.Algorithm == limit.GCRA || c.Algorithm == limit.LeakyBucket {
				model = windowtest.New(c) // as if r had never been
				for _, r := range charged {
					model.Charge(r.At, r.N)
				}
			} else {
				model.Refund(now, r.At, r.N)
			}
		}
		// An amount beyond the limit refuses just the same.
		if used, want := s.used(now), model.Used(now); used < min(want, s.Most()) {
			credit = fmt.Sprintf("at %d, %d used, want %d", now, used, want)
		}
		return credit == ""
	})
	return credit
}

// TestInFlight has calls that end, and calls that never do.
func TestInFlight(t *testing.T) {
	s := newSubject(t, limit.Config{Algorithm: limit.InFlight, N: 5, Span: time.Minute})
	const second = int64(time.Second)
	for i := range int64(5) {
		if !s.take(i*second, 1) {
			t.Fatalf("call %d is refused", i)
		}
	}
	if s.take(5*second, 1) {
		t.Error("a sixth call is allowed")
	}
	if wait := s.wait(5*second, 2); wait != 56*second {
		t.Errorf("the wait for two is %d", wait)
	}
	if s.refund(5*second, 2*second, 1) != 1 || s.refund(5*second, 2*second, 1) != 0 {
		t.Error("call 2 does not end once")
	}
	if !s.take(5*second, 1) || s.take(5*second, 1) {
		t.Error("the end of one call does not allow one more")
	}
	if used := s.advance(61 * second); used != 3 {
		t.Errorf("%d under way when calls 0 and 1 are given up, want 3", used)
	}
}
