package limit_test

import (
	"slices"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// TestSpillAndBack has more times in a window than fit in a record, lets
// them leave, and starts again: few times count to the nanosecond, many until their
// slot has left, and a block is held only while slots count.
func TestSpillAndBack(t *testing.T) {
	const span = int64(time.Minute)
	s := newSubject(t, limit.Config{Algorithm: limit.Sliding, N: 150, Span: time.Duration(span)})
	for round := range int64(3) {
		base := round * 10 * span
		for i := range int64(limit.Inline) {
			if !s.take(base+i, 1) || s.reset(base+i) != span || limit.HasBlock(s.w) {
				t.Fatalf("round %d: time %d counts for %d, in a block: %t", round, i, s.reset(base+i), limit.HasBlock(s.w))
			}
		}
		if used := s.advance(base + span); used != limit.Inline-1 {
			t.Fatalf("round %d: %d used when the first of %d times has left", round, used, limit.Inline)
		}
		at := base + span
		if !s.take(at, 2) || !limit.HasBlock(s.w) {
			t.Fatalf("round %d: %d used, in a block: %t", round, s.used(at), limit.HasBlock(s.w))
		}
		if reset := s.reset(at); reset != span+int64(time.Second)-1 {
			t.Fatalf("round %d: all has left after %d", round, reset)
		}
		// The slot of the first times leaves a second after them, the last at the end.
		for _, c := range []struct {
			after int64
			used  uint64
		}{{int64(time.Second) - 2, limit.Inline + 1}, {int64(time.Second) - 1, 2}, {span + int64(time.Second) - 2, 2}, {span + int64(time.Second) - 1, 0}} {
			if used := s.advance(at + c.after); used != c.used {
				t.Fatalf("round %d: %d used after %d, want %d", round, used, c.after, c.used)
			}
		}
		if limit.HasBlock(s.w) {
			t.Fatalf("round %d: nothing is used, and there is a block", round)
		}
	}
}

// TestWaitAfterRefunds charges and takes back at random, and checks the wait each time: a nanosecond earlier more is used,
// and then no more.
func TestWaitAfterRefunds(t *testing.T) {
	rnd := randtest.New(t)
	for range 40 {
		for _, c := range []limit.Config{
			{Algorithm: limit.Sliding, N: 129 + rnd.Uint64N(300), Span: time.Second},
			{Algorithm: limit.Sliding, N: 130, Span: 997 * time.Millisecond},
			{Algorithm: limit.Exact, N: 1 + rnd.Uint64N(100), Span: time.Second},
		} {
			s := newSubject(t, c)
			var charged windowtest.Charges
			now := rnd.Int64N(1e12)
			for range 60 {
				now += rnd.Int64N(int64(c.Span) / 20)
				s.advance(now)
				cost := 1 + rnd.Uint64N(4)
				switch {
				case rnd.IntN(3) > 0:
					if s.take(now, cost) {
						charged.Add(now, cost)
					}
				case rnd.IntN(2) == 0:
					s.RefundOldest(s.w, s.b, now, cost)
				case len(charged) > 0:
					i := rnd.IntN(len(charged))
					s.refund(now, charged[i].At, charged[i].N)
					charged = slices.Delete(charged, i, i+1)
				}
				used := s.used(now)
				for _, most := range []uint64{0, used / 2, max(used, 1) - 1} {
					if used <= most {
						continue
					}
					wait := int64(s.Wait(s.w, s.b, now, s.Most(), s.Most()-most))
					before, after := s.copy().advance(now+wait-1), s.copy().advance(now+wait)
					if before <= most || after > most {
						t.Fatalf("%+v at %d: %d used; %d or less after %d, but there are %d, and %d before", c, now, used, most, wait, after, before)
					}
				}
			}
		}
	}
}

// TestRefundOfLocalCharges takes back an event that left the window before slots began to count, while others in its slot
// are counted: they stay.
func TestRefundOfLocalCharges(t *testing.T) {
	const span, slot = int64(time.Minute), int64(time.Second)
	s := newSubject(t, limit.Config{Algorithm: limit.Sliding, N: 150, Span: time.Duration(span)})
	for _, at := range []int64{0, slot / 2, slot/2 + 1} {
		s.take(at, 1)
	}
	for range limit.Inline {
		s.take(span+1, 1)
	}
	now := span + 2
	if used := s.advance(now); used != limit.Inline+2 || !limit.HasBlock(s.w) {
		t.Fatalf("%d used, in slots: %t", used, limit.HasBlock(s.w))
	}
	if taken := s.refund(now, 0, 1); taken != 0 || s.used(now) != limit.Inline+2 {
		t.Errorf("%d taken back of what is in no window any more; %d used", taken, s.used(now))
	}
	now += slot / 4
	again := restored(t, s, now, now)
	for _, s := range []*subject{s, again} {
		s.advance(now + slot/4)
		if taken := s.refund(now+slot/4, 1, 1); taken != 0 {
			t.Errorf("%d taken back of what is in no window any more", taken)
		}
		if taken := s.refund(now+slot/4, slot/2, 1); taken != 1 || s.used(now+slot/4) != limit.Inline+1 {
			t.Errorf("%d taken back of what counts with its slot; %d used", taken, s.used(now+slot/4))
		}
	}
}

// TestSpillWithoutMemory counts without memory for blocks, against the definition: up to Inline times are exact, more count
// in two slots of a span each until both have left, and nothing is lost.
func TestSpillWithoutMemory(t *testing.T) {
	rnd, refused, coarse := randtest.New(t), 0, 0
	for range 60 {
		c := limit.Config{Algorithm: limit.Sliding, N: 129 + rnd.Uint64N(300), Span: 997 * time.Millisecond}
		if rnd.IntN(3) == 0 {
			c.Resolution = []time.Duration{time.Millisecond, 7 * time.Millisecond, 2 * time.Second}[rnd.IntN(3)]
		}
		resolution := max(int64(c.Resolution), 1)
		m := must.Get(limit.New(c))(t)
		s := subjectOf(m, keytable.NewBudget(0))
		model := windowtest.New(c)
		model.Width = int64(c.Span)
		var charged windowtest.Charges
		arrivals(rnd, int64(c.Span), resolution, 400, func(now int64) bool {
			used := s.advance(now)
			if want := model.Used(now); used != want {
				t.Fatalf("%+v at %d: %d used, want %d", c, now, used, want)
			}
			if used > limit.Inline {
				coarse++
			}
			cost := 1 + rnd.Uint64N([]uint64{4, c.N / 4}[rnd.IntN(2)])
			if !s.Reserve(s.w, s.b, cost) || !s.Reserve(s.w, s.b.View(), cost) {
				t.Fatal("no memory")
			}
			if s.take(now, cost) {
				model.Charge(now, cost)
				charged.Add(now, cost)
			} else {
				refused++
			}
			if i := len(charged) - 1 - rnd.IntN(5); i >= 0 && rnd.IntN(4) == 0 {
				before, taken := s.used(now), s.refund(now, charged[i].At, charged[i].N)
				if model.Refund(now, charged[i].At, charged[i].N); s.used(now) != model.Used(now) || before-s.used(now) != taken {
					t.Fatalf("%+v at %d: %d taken back, %d used, want %d", c, now, taken, s.used(now), model.Used(now))
				}
				charged = slices.Delete(charged, i, i+1)
			}
			if rnd.IntN(10) == 0 {
				again, r := subjectOf(m, keytable.NewBudget(0)), snapshot.NewReader(s.AppendState(nil, s.w, s.b, now))
				if again.ReadState(r, again.w, again.b, now, now); r.Failed() || r.Len() > 0 {
					t.Fatalf("%+v at %d: what was written is not read", c, now)
				}
				s = again
			}
			for _, most := range []uint64{0, s.used(now) / 2} {
				if s.used(now) <= most {
					continue
				}
				at := now + int64(s.Wait(s.w, s.b, now, s.Most(), s.Most()-most))
				if before, after := model.Used(at-resolution), model.Used(at); before <= most && resolution == 1 || after > most {
					t.Fatalf("%+v at %d: %d or less at %d, but there are %d, and %d before", c, now, most, at, after, before)
				}
			}
			return true
		})
	}
	if refused < 300 || coarse < 1000 {
		t.Errorf("%d refused, %d judged coarsely: the test has no teeth", refused, coarse)
	}
}

// TestCoarseGivesBackTheOldest refunds charges without their times, the older slot
// first, and refunds no count that was cut.
func TestCoarseGivesBackTheOldest(t *testing.T) {
	m := must.Get(limit.New(limit.Config{Algorithm: limit.Sliding, N: 150, Span: time.Second}))(t)
	const second = int64(time.Second)
	s := subjectOf(m, keytable.NewBudget(0))
	s.advance(second - 1)
	s.charge(second-1, 10)
	s.advance(second)
	s.charge(second, 5)
	if n := s.RefundOldest(s.w, s.b, second, 12); n != 12 || s.used(second) != 3 || s.advance(2*second-1) != 3 {
		t.Errorf("%d taken back, %d used", n, s.used(second))
	}
	if n := s.RefundOldest(s.w, s.b, 2*second-1, 12); n != 3 || s.used(2*second-1) != 0 {
		t.Errorf("%d taken back, %d used", n, s.used(2*second-1))
	}
	s.charge(2*second-1, 1<<33)
	if n := s.RefundOldest(s.w, s.b, 2*second-1, 1); n != 0 || s.refund(2*second-1, 2*second-1, 1) != 0 {
		t.Errorf("%d taken back of a count that was cut", n)
	}
}
