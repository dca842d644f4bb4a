package limit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/snapshot"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// TestManyInTheNewestSlot counts more in a slot than the ring holds beside its counts, takes some of it back, and moves to
// other slots, with counts of all widths. Counting in one step by CountNewest, where possible, gives the same.
func TestManyInTheNewestSlot(t *testing.T) {
	rnd := randtest.New(t)
	quick := 0
	for round := range 60 {
		c := limit.Config{Algorithm: limit.Sliding, N: []uint64{200, 60_000, 1 << 31}[round%3], Span: time.Second}
		s := newSubject(t, c)
		want := windowtest.New(c)
		var charged windowtest.Charges
		now := rnd.Int64N(1e12)
		for range 300 {
			if rnd.IntN(8) == 0 {
				now += rnd.Int64N([]int64{3 * int64(c.Span), int64(c.Span), int64(c.Span) / 20, int64(c.Span) / 100}[rnd.IntN(4)])
			}
			used := s.advance(now)
			cost := min([]uint64{1, 1, 2, 100, 8190, 8191, 8192, 20_000}[rnd.IntN(8)], c.N-min(used, c.N))
			if i := rnd.IntN(len(charged) + 4); i < len(charged) {
				was := charged[i]
				charged = append(charged[:i], charged[i+1:]...)
				taken := s.refund(now, was.At, was.N)
				if want.Refund(now, was.At, taken); was.At == now && taken != was.N {
					t.Fatalf("%+v: %d taken back of a cost of %d", c, taken, was.N)
				}
			} else if cost > 0 {
				charged.Add(now, cost)
				want.Charge(now, cost)
				if _, ok := s.CountNewest(s.w, now, cost); ok {
					quick++
				} else {
					s.charge(now, cost)
				}
			}
			checkCounts(t, c, s, now, want.Used(now))
		}
	}
	if quick == 0 {
		t.Error("CountNewest counted nothing")
	}
}

// TestFullNewestSlot fills a count of 8 bits: it stays full, and gives nothing back.
func TestFullNewestSlot(t *testing.T) {
	const full = 1<<8 - 1
	for _, costs := range [][]uint64{{250, 4, 1}, {254, 1}, {250, 10, 1}, {1, 254, 254}, {300}} {
		s := newSubject(t, limit.Config{Algorithm: limit.Sliding, N: 200, Span: time.Second})
		s.charge(0, 100) // a slot before the one that gets full
		now := int64(100 * time.Millisecond)
		s.advance(now)
		for _, cost := range costs {
			if _, ok := s.CountNewest(s.w, now, cost); !ok {
				s.charge(now, cost)
			}
		}
		if used, taken := s.advance(now), s.refund(now, now, 1); used != 100+full || taken != 0 {
			t.Errorf("after costs of %v: %d used, %d taken back; want %d and 0", costs, used, taken, 100+full)
		}
	}
}

// checkCounts fails unless s, a copy and a snapshot of it have used in the window, at now and in their slots.
func checkCounts(t *testing.T, c limit.Config, s *subject, now int64, used uint64) {
	t.Helper()
	read := newSubject(t, c)
	r := snapshot.NewReader(s.AppendState(nil, s.w, s.b, now))
	if read.ReadState(r, read.w, read.b, now, now); r.Failed() {
		t.Fatalf("%+v at %d: the snapshot cannot be read", c, now)
	}
	for what, of := range map[string]*subject{"counter": s, "copy": s.copy(), "snapshot": read} {
		if got := of.advance(now); got != used {
			t.Fatalf("%+v at %d: %s has %d, want %d", c, now, what, got, used)
		}
		var sum uint64
		for _, n := range of.Each(of.w, of.b, now) {
			sum += n
		}
		if c.Algorithm == limit.Sliding && sum != used || sum < used {
			t.Fatalf("%+v at %d: the slots of the %s have %d, want %d", c, now, what, sum, used)
		}
	}
}
