package lately

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/ring"
)

// The ring of slots of a Sums. A cell has no stamp, since all its 64 bits hold
// the amount. Instead, newest says which slots are in the ring, and a position is
// cleared before newest is moved to the slot that takes it. Only the holder of the
// mutex clears and moves. So:
//
//   - An add that happens now needs no lock. If it is delayed, after it has read
//     newest, until its position has been cleared, it counts in the later slot
//     there, which the window reached while the add was running; or it was
//     cleared together with a slot that had left the window. Both are correct
//     results of the same add a moment later or earlier.
//   - An add with the time of an event must not count in a later slot, so it
//     holds the mutex.
//   - A read during which the window moved on is repeated with the mutex held.

// liveCell returns the cell for an event that happens now in sum i.
func (s *Sums) liveCell(i int, now int64) *atomic.Uint64 {
	cells, slot := s.sums[i], s.newest.Load() // panics here if i is out of range, before anything has moved
	if slot == noSlot || uint64(now-slot*s.width) >= uint64(s.width) {
		slot = s.liveSlot(now)
	}
	return &cells[slot&s.mask]
}

// liveSlot is liveCell if now is not in the newest slot: it moves the window if
// needed and returns the slot of now, or the newest slot if the slot of now has
// left the window.
func (s *Sums) liveSlot(now int64) int64 {
	slot := ring.FloorDiv(now, s.width)
	newest := s.newest.Load()
	if slot > newest {
		s.mu.Lock()
		s.advance(slot)
		newest = s.newest.Load()
		s.mu.Unlock()
	}
	if slot <= newest-s.slots {
		return newest
	}
	return slot
}

// eventCell returns the cell for an event that happened at t in sum i, or false
// if it is refused.
//
// REQUIRES: s.mu, until the cell has been added to.
func (s *Sums) eventCell(i int, t int64) (*atomic.Uint64, bool) {
	cells := s.sums[i]
	slot, newest := ring.FloorDiv(t, s.width), s.newest.Load()
	switch {
	case newest != noSlot && s.guard.refuses(t, (newest+1)*s.width, s.window.Ahead, s.window.Span):
		return nil, false
	case slot < newest-s.slots:
		s.late.Add(1)
		return nil, false
	}
	s.advance(slot)
	return &cells[slot&s.mask], true
}

// advance moves the window to slot, if that is ahead.
//
// REQUIRES: s.mu.
func (s *Sums) advance(slot int64) {
	newest := s.newest.Load()
	if slot <= newest {
		return
	}
	s.seq.Add(1)
	for n := max(newest, slot-s.mask-1) + 1; n <= slot; n++ {
		for _, cells := range s.sums {
			cells[n&s.mask].Store(0)
		}
	}
	s.newest.Store(slot)
	s.seq.Add(1)
}

// slotRange is what a read adds up: the slots first to last, and the slot before
// first if it is cut by the edge of the window.
type slotRange struct {
	first, last int64
	cut         bool
}

// slotsOf returns the slots of the last span at m that are kept.
func (s *Sums) slotsOf(m moment, span time.Duration) slotRange {
	t, newest := s.end(m), s.newest.Load()
	last := newest
	if newest == noSlot || uint64(t-newest*s.width) >= uint64(s.width) {
		last = ring.FloorDiv(t, s.width)
	}
	first, cut := last-s.slots+1, t != last*s.width+s.width-1
	if span != s.window.Span {
		first, cut = ring.Oldest(t, int64(span), s.width)
	}
	oldest := newest - s.slots // that is kept
	cut = cut && oldest <= first-1 && first-1 <= newest
	return slotRange{first: max(first, oldest), last: min(last, newest), cut: cut}
}

// end returns the time that a read at m is about: for a live one, now or the start of
// the newest slot if that is later.
func (s *Sums) end(m moment) int64 {
	if newest := s.newest.Load(); m.live && newest != noSlot {
		return max(m.t, newest*s.width)
	}
	return m.t
}

func (s *Sums) eachSlot(m moment, i int, yield func(time.Time, int64) bool) {
	last := ring.FloorDiv(s.end(m), s.width)
	for slot := last - s.slots + 1; slot <= last; slot++ {
		sum := int64(0)
		s.view(func() {
			newest := s.newest.Load()
			sum = s.add(i, max(slot, newest-s.slots), min(slot, newest))
		})
		if !yield(time.Unix(0, slot*s.width).UTC(), sum) {
			return
		}
	}
}

func (s *Sums) sum(m moment, span time.Duration, i int) (sum int64) {
	s.view(func() {
		r := s.slotsOf(m, span)
		sum = s.add(i, r.first, r.last)
	})
	return sum
}

func (s *Sums) bounds(m moment, i int) (lo, hi int64) {
	s.view(func() {
		r := s.slotsOf(m, s.window.Span)
		lo = s.add(i, r.first, r.last)
		hi = lo
		if r.cut {
			hi = s.add(i, r.first-1, r.last)
		}
	})
	return min(lo, hi), max(lo, hi)
}

func (s *Sums) appendSums(m moment, dst []int64) []int64 {
	before := len(dst)
	s.view(func() {
		r := s.slotsOf(m, s.window.Span)
		dst = dst[:before]
		for i := range s.sums {
			dst = append(dst, s.add(i, r.first, r.last))
		}
	})
	return dst
}

// add adds up sum i of the slots first to last, in 128 bits, and returns the nearest
// int64.
func (s *Sums) add(i int, first, last int64) int64 {
	cells := s.sums[i]
	mask := uint64(len(cells) - 1)
	upper, lower, carry := int64(0), uint64(0), uint64(0)
	for slot := first; slot <= last; slot++ {
		n := slotSum(int64(cells[uint64(slot)&mask].Load()))
		lower, carry = bits.Add64(lower, uint64(n), 0)
		upper += n>>63 + int64(carry)
	}
	switch {
	case upper == int64(lower)>>63:
		return int64(lower)
	case upper < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}
