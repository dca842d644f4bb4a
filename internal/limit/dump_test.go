package limit_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
)

// someConfig returns a Config of a kind.
func someConfig(rnd *rand.Rand, kind limit.Algorithm) limit.Config {
	c := limit.Config{Algorithm: kind, N: rnd.Uint64N(500), Span: time.Duration(1+rnd.IntN(100_000)) * time.Millisecond}
	switch kind {
	case limit.Calendar:
		c.Span, c.Period = 0, limit.Period(1+rnd.IntN(6))
	case limit.GCRA, limit.LeakyBucket:
		c.Burst = rnd.Uint64N(100)
		if c.N > 0 && rnd.IntN(2) == 0 {
			c.AtMost = c.N + rnd.Uint64N(500)
		}
	}
	if rnd.IntN(3) == 0 {
		c.Resolution = time.Duration(1 + rnd.IntN(1e9))
	}
	return c
}

// restored returns a subject with what s holds at t, as read at now.
func restored(t testing.TB, s *subject, at, now int64) *subject {
	state := s.AppendState(nil, s.w, s.b, at)
	r := snapshot.NewReader(state)
	loose, again := subjectOf(s.Counter, keytable.NewBudget(math.MaxInt64/2)), subjectOf(s.Counter, keytable.NewBudget(math.MaxInt64/2))
	if loose.ReadState(r, loose.w, loose.b, at, now); r.Failed() || r.Len() > 0 {
		t.Fatalf("%x is not read: %d bytes left", state, r.Len())
	}
	if !again.Carry(again.w, again.b, &loose.Counter, loose.w, loose.b, min(at, now)) {
		t.Fatal("memory is missing")
	}
	return again
}

// TestRestoredStateContinues charges, refunds and reads a counter of each kind and one that was restored from it, also
// beyond the limit: both return the same.
func TestRestoredStateContinues(t *testing.T) {
	rnd := randtest.New(t)
	rounds := 60
	if longTests() {
		rounds = 10_000
	}
	for kind := limit.Sliding; kind <= limit.InFlight; kind++ {
		for range rounds {
			c := someConfig(rnd, kind)
			s := newSubject(t, c)
			now := rnd.Int64N(4e18) - 2e18
			var charged []int64
			other := s
			span := max(int64(c.Span), 1e9)
			for i := range 150 {
				now += []int64{0, rnd.Int64N(1000), rnd.Int64N(span/60 + 1), rnd.Int64N(span), rnd.Int64N(3 * span)}[rnd.IntN(5)]
				if a, b := s.advance(now), other.advance(now); a != b {
					t.Fatalf("%+v, step %d: %d and %d are used", c, i, a, b)
				}
				cost := rnd.Uint64N(max(c.N/4, 3))
				if a, b := s.wait(now, cost), other.wait(now, cost); a != b || s.reset(now) != other.reset(now) {
					t.Fatalf("%+v, step %d: to wait for %d takes %d and %d", c, i, cost, a, b)
				}
				n := rnd.Uint64N(c.AtMost + 1)
				s.SetN(s.w, now, n)
				s.charge(now, cost)
				if other != s {
					other.SetN(other.w, now, n)
					other.charge(now, cost)
				}
				charged = append(charged, now)
				if at := charged[rnd.IntN(len(charged))]; rnd.IntN(3) == 0 && other != s {
					if a, b := s.refund(now, at, 1), other.refund(now, at, 1); a != b {
						t.Fatalf("%+v, step %d: %d and %d are taken back", c, i, a, b)
					}
				}
				if rnd.IntN(10) == 0 {
					other = restored(t, s, now, now+rnd.Int64N(span))
				}
			}
		}
	}
}

// TestStateAfterClockWasSetBack reads a state at an earlier time: at least as much is used as before, and it leaves as soon
// as if all had been charged at that time.
func TestStateAfterClockWasSetBack(t *testing.T) {
	rnd := randtest.New(t)
	for kind := limit.Sliding; kind <= limit.InFlight; kind++ {
		for range 100 {
			c := someConfig(rnd, kind)
			s, all := newSubject(t, c), newSubject(t, c)
			resolution := max(int64(c.Resolution), 1)
			floor := func(t int64) int64 { return t - t%resolution } // as all times of such a counter are
			now, span := floor(1e18), max(int64(c.Span), 1e9)
			for range 20 {
				now = floor(now + rnd.Int64N(span/10))
				if s.advance(now); s.used(now) < s.Most() {
					s.charge(now, 1)
				}
			}
			used := s.used(now)
			back := floor(now - rnd.Int64N(5*span))
			again := restored(t, s, now, back)
			if got := again.advance(back); got < used {
				t.Fatalf("%+v: %d are used, and %d before", c, got, used)
			}
			all.advance(back)
			all.charge(back, max(used, again.used(back), min(limit.Inline+1, c.N))) // in slots, if it has any
			if again.reset(back) > all.reset(back) {
				t.Fatalf("%+v: it has left after %d, not after %d", c, again.reset(back), all.reset(back))
			}
		}
	}
}

// FuzzReadState reads any bytes: an accepted state is one that the counter can
// hold, and is written as it was read.
func FuzzReadState(f *testing.F) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for kind := range limit.InFlight + 2 {
		s := newSubject(f, stateConfig(kind))
		for i := range int64(50) {
			s.advance(i * 1e7)
			s.charge(i*1e7, rnd.Uint64N(3))
		}
		f.Add(uint8(kind), s.AppendState(nil, s.w, s.b, 49e7))
	}
	f.Fuzz(func(t *testing.T, kind uint8, state []byte) {
		if limit.Algorithm(kind) > limit.InFlight+1 {
			return
		}
		s := newSubject(t, stateConfig(limit.Algorithm(kind)))
		r := snapshot.NewReader(state)
		s.ReadState(r, s.w, s.b, 49e7, 49e7)
		if r.Failed() {
			if used := s.used(49e7); used != 0 {
				t.Errorf("%d are used of nothing", used)
			}
			return
		}
		s.advance(49e7)
		restored(t, s, 49e7, 49e7)
		restored(t, s, 49e7, 0)
	})
}

// stateConfig returns a Config of each algorithm, and behind them a bucket whose N is data.
func stateConfig(kind limit.Algorithm) limit.Config {
	if kind > limit.InFlight {
		return limit.Config{Algorithm: limit.GCRA, N: 150, AtMost: 600, Span: time.Second}
	}
	return limit.Config{Algorithm: kind, N: 150, Span: time.Second, Period: period(kind)}
}

func period(kind limit.Algorithm) limit.Period {
	if kind == limit.Calendar {
		return limit.Minute
	}
	return 0
}
