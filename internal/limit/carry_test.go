package limit_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// TestCarry changes N, the span and the algorithm of a limit in use, and goes on. From then on the used amount follows the
// definition of carrying. (A bucket of TwoBucket that is about to leave may count more. When a Fixed window ends depends on
// its first event, which the others do not keep.)
func TestCarry(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 3
	if longTests() {
		rounds = 200
	}
	ns := []uint64{1, 3, 128, 129, 300}
	spans := []time.Duration{time.Second, 900 * time.Millisecond, 2 * time.Second, time.Minute}
	for range rounds {
		for _, from := range allKinds(ns[rnd.IntN(5)], spans[rnd.IntN(4)]) {
			for _, to := range allKinds(ns[rnd.IntN(5)], spans[rnd.IntN(4)]) {
				if (from.Algorithm == limit.InFlight) == (to.Algorithm == limit.InFlight) {
					checkCarry(t, rnd, from, to)
				}
			}
		}
	}
}

func checkCarry(t *testing.T, rnd *rand.Rand, from, to limit.Config) {
	t.Helper()
	s, model := newSubject(t, from), windowtest.New(from)
	i, changeAt := 0, 50+rnd.IntN(100)
	arrivals(rnd, max(int64(from.Span), int64(time.Second)), 1, 400, func(now int64) bool {
		if i++; i == changeAt {
			s.advance(now)
			old, before := s, model
			s, model = newSubject(t, to), windowtest.New(to)
			if !s.Carry(s.w, s.b, &old.Counter, old.w, old.b, now) {
				t.Fatalf("%+v to %+v: no memory", from, to)
			}
			model.Carry(before, now)
		}
		got, want := min(s.advance(now), s.Most()), min(model.Used(now), s.Most())
		if i >= changeAt && to.Algorithm == limit.Fixed && from.Algorithm != limit.Fixed {
			return false
		}
		if got < want || got > want && from.Algorithm != limit.TwoBucket {
			t.Fatalf("%+v to %+v: %d used at %d, want %d", from, to, got, now, want)
		}
		if cost := 1 + rnd.Uint64N(3); s.take(now, cost) {
			model.Charge(now, cost)
		}
		return true
	})
}

// TestCarryKeeps has the changes that lose nothing: another N, or another counter that keeps the same.
func TestCarryKeeps(t *testing.T) {
	for _, c := range []struct{ from, to limit.Config }{
		{limit.Config{Algorithm: limit.Sliding, N: 150}, limit.Config{Algorithm: limit.Sliding, N: 1000}},
		{limit.Config{Algorithm: limit.Sliding, N: 100_000}, limit.Config{Algorithm: limit.Sliding, N: 200}},
		{limit.Config{Algorithm: limit.Exact, N: 100}, limit.Config{Algorithm: limit.Exact, N: 101}},
		{limit.Config{Algorithm: limit.Exact, N: 100}, limit.Config{Algorithm: limit.Sliding, N: 99}},
		{limit.Config{Algorithm: limit.TwoBucket, N: 100}, limit.Config{Algorithm: limit.TwoBucket, N: 90}},
		{limit.Config{Algorithm: limit.Fixed, N: 100}, limit.Config{Algorithm: limit.Fixed, N: 5}},
		{limit.Config{Algorithm: limit.Calendar, N: 100, Period: limit.Hour}, limit.Config{Algorithm: limit.Calendar, N: 80, Period: limit.Hour}},
		{limit.Config{Algorithm: limit.GCRA, N: 60}, limit.Config{Algorithm: limit.GCRA, N: 60, Burst: 60}},
	} {
		if c.from.Algorithm != limit.Calendar {
			c.from.Span, c.to.Span = time.Minute, time.Minute
		}
		old, twin, dst := newSubject(t, c.from), newSubject(t, c.to), newSubject(t, c.to)
		now := int64(1e18)
		for range 30 {
			old.advance(now)
			old.charge(now, 1)
			twin.advance(now)
			twin.charge(now, 1)
			now += int64(time.Second)
		}
		old.advance(now)
		if !dst.Carry(dst.w, dst.b, &old.Counter, old.w, old.b, now) {
			t.Fatal("no memory")
		}
		for range 120 {
			now += int64(700 * time.Millisecond)
			if got, want := dst.advance(now), twin.advance(now); got != want {
				t.Fatalf("%+v to %+v: %d used, want %d", c.from, c.to, got, want)
			}
		}
	}
}

func TestCarryWithoutMemory(t *testing.T) {
	old := newSubject(t, limit.Config{Algorithm: limit.Exact, N: 50, Span: time.Minute})
	for i := range int64(50) {
		old.take(i, 1)
	}
	m := must.Get(limit.New(limit.Config{Algorithm: limit.Exact, N: 60, Span: time.Minute}))(t)
	dst := subjectOf(m, keytable.NewBudget(0))
	if dst.Carry(dst.w, dst.b, &old.Counter, old.w, old.b, 50) || dst.advance(50) != 0 {
		t.Errorf("50 times are carried into no memory, %d used", dst.advance(50))
	}
	if !dst.Reserve(dst.w, dst.b, 3) || dst.Reserve(dst.w, dst.b, 4) || dst.Reserve(dst.w, dst.b, math.MaxUint64) {
		t.Error("times are reserved other than those that lie in the record")
	}
}

// TestEach checks that Each yields the held events, oldest first, no later than
// now.
func TestEach(t *testing.T) {
	rnd := randtest.New(t)
	for _, n := range []uint64{5, 150, 1000} {
		for _, c := range allKinds(n, time.Second) {
			s := newSubject(t, c)
			model := windowtest.New(c)
			slotted := c.Algorithm == limit.TwoBucket
			arrivals(rnd, int64(time.Second), 1, 2000, func(now int64) bool {
				if s.take(now, 1) {
					model.Charge(now, 1)
				}
				sum, last := uint64(0), int64(math.MinInt64)
				for at, count := range s.Each(s.w, s.b, now) {
					if at < last || at > now || count == 0 {
						t.Fatalf("%+v at %d: %d at %d, after one at %d", c, now, count, at, last)
					}
					sum, last = sum+count, at
				}
				if used := s.used(now); sum < used || !slotted && sum != used {
					t.Fatalf("%+v at %d: %d held, %d used", c, now, sum, used)
				}
				for range s.Each(s.w, s.b, now) {
					break
				}
				return true
			})
		}
	}
}
