package window

import (
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

const maxSums = 1024

// Sums adds up several signed amounts in one [Window], for example the money
// that came in and the money that went out in the last hour. Amounts are int64
// in the smallest unit of the caller, such as cents, so nothing is rounded:
//
//	const in, out = 0, 1
//	flow, err := window.NewSums(window.Last(time.Hour), 2)
//	...
//	flow.Add(in, 19_99)
//	sums := flow.AppendSums(nil)
//	net := sums[in] - sums[out]
//
// The sums that [Sums.AppendSums] returns are of the same window.
//
// Like [Counter] it is exact: every add that is not refused counts in precisely
// one slot of its sum for as long as that slot is in the window. Because amounts
// have a sign, [Sums.Bounds] bounds the true sum only if all its amounts have
// the same sign; count inflow and outflow in two sums, as above, and both have
// bounds. The sum of a slot stays from -(2^62-1) to 2^62-1, see [Stats]; a read
// adds up slots in 128 bits and returns the nearest int64.
//
// A mutex guards the sums. An add with the current time costs a clock reading and about
// twelve nanoseconds; an add in a new slot also clears the slots since. A read takes about a
// nanosecond per slot. Nothing allocates after NewSums. Memory is 8 bytes per sum and slot,
// for the number of slots plus 1, rounded up to a power of two. There is no goroutine and no
// timer.
//
// All methods are safe for concurrent use, and a read is of one moment. An index out of
// range panics, as with a slice. The zero Sums is not usable: it panics; call [NewSums].
// A Sums must not be copied.
type Sums struct {
	window Window
	clock  liveClock

	mu      sync.Mutex
	amounts amounts

	guard           aheadGuard // with the mutex held
	late, saturated atomic.Uint64
}

// NewSums returns n sums over the window w, all 0. n is from 1 to 1024; the
// indexes of the sums are 0 to n-1. The error names the bad value.
func NewSums(w Window, n int) (*Sums, error) {
	w, err := w.checked()
	if err != nil {
		return nil, err
	}
	if n < 1 || n > maxSums {
		return nil, fmt.Errorf("window: %d sums: must be from 1 to %d", n, maxSums)
	}
	s := &Sums{window: w, clock: newLiveClock(), amounts: newAmounts(w, n)}
	s.guard.init()
	return s, nil
}

// Window returns the window of s, with its Slot set.
func (s *Sums) Window() Window { return s.window }

// Add adds n to sum i now. It is never refused. If the goroutine is delayed, or
// events are ahead of the clock, it counts in the slot that [Counter.Add]
// describes.
func (s *Sums) Add(i int, n int64) { s.addLive(s.clock.now(), i, n) }

func (s *Sums) addLive(now int64, i int, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := s.amounts.slot(now)
	if slot <= s.amounts.newest-s.amounts.slots { // the slot of now has left the window
		slot = s.amounts.newest
	}
	if !s.amounts.add(i, slot, n) {
		s.saturated.Add(1)
	}
}

// AddAt adds n to sum i at the time t, in any order of times. It reports whether
// n was added. If not, it was refused: as late, because t is in a slot that is
// older than the window of the newest event, or as future, see [Window.Ahead].
//
// AddAt(t, i, 0) adds nothing, but moves the window to t.
func (s *Sums) AddAt(t time.Time, i int, n int64) bool {
	ns := s.clock.nanos(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &s.amounts
	slot := a.slot(ns)
	switch {
	case a.newest != noSlot && s.guard.refuses(ns, a.end(), s.window.Ahead, s.window.Span):
		return false
	case !a.keeps(slot):
		s.late.Add(1)
		return false
	}
	if !a.add(i, slot, n) {
		s.saturated.Add(1)
	}
	return true
}

// Sum returns sum i of the window that ends now, without the oldest slot, which
// has partly expired.
func (s *Sums) Sum(i int) int64 { return s.sum(live(s.clock.now()), i) }

// SumAt returns sum i of the window that ends at t. For a t before the newest
// event it adds up the part of the window that is still kept; see
// [Counter.SumAt].
func (s *Sums) SumAt(t time.Time, i int) int64 { return s.sum(s.clock.at(t), i) }

// Bounds returns bounds of the true sum i of the window that ends now, if all
// its amounts have the same sign: the sums of the slots wholly inside the window
// without and with the oldest slot, which is partly inside. lo is the smaller of
// the two. With amounts of both signs in the oldest slot the true sum may be
// outside.
func (s *Sums) Bounds(i int) (lo, hi int64) { return s.bounds(live(s.clock.now()), i) }

// BoundsAt is Bounds for the window that ends at t.
func (s *Sums) BoundsAt(t time.Time, i int) (lo, hi int64) { return s.bounds(s.clock.at(t), i) }

// AppendSums appends all sums of the window that ends now to dst, in the order
// of their indexes, and returns it. All are of one moment. If dst has enough
// capacity, it does not allocate.
func (s *Sums) AppendSums(dst []int64) []int64 { return s.appendSums(live(s.clock.now()), dst) }

// AppendSumsAt is AppendSums for the window that ends at t.
func (s *Sums) AppendSumsAt(t time.Time, dst []int64) []int64 {
	return s.appendSums(s.clock.at(t), dst)
}

// Slots returns an iterator over the slots that Sum(i) adds up, oldest first and
// with the empty ones: the start of each, in UTC, and its sum. Each slot is read
// when the iterator reaches it, and is empty if it has left the window by then.
func (s *Sums) Slots(i int) iter.Seq2[time.Time, int64] {
	return func(yield func(time.Time, int64) bool) { s.eachSlot(live(s.clock.now()), i, yield) }
}

// SlotsAt is Slots for the slots that SumAt(t, i) adds up.
func (s *Sums) SlotsAt(t time.Time, i int) iter.Seq2[time.Time, int64] {
	return func(yield func(time.Time, int64) bool) { s.eachSlot(s.clock.at(t), i, yield) }
}

// Stats returns the numbers of calls that were refused or did not fit since s
// was made.
func (s *Sums) Stats() Stats {
	return Stats{Late: s.late.Load(), Future: s.guard.future.Load(), Saturated: s.saturated.Load()}
}

// end returns the time that a read at m is about: for a live one, now or the start of
// the newest slot if that is later.
//
// REQUIRES: s.mu.
func (s *Sums) end(m moment) int64 {
	if a := &s.amounts; m.live && a.newest != noSlot {
		return max(m.t, a.newest*a.width)
	}
	return m.t
}

func (s *Sums) sum(m moment, i int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.amounts.sum(i, s.amounts.in(s.end(m), int64(s.window.Span)))
}

func (s *Sums) bounds(m moment, i int) (lo, hi int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lo, hi = s.amounts.bounds(i, s.amounts.in(s.end(m), int64(s.window.Span)))
	return min(lo, hi), max(lo, hi)
}

func (s *Sums) appendSums(m moment, dst []int64) []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.amounts.in(s.end(m), int64(s.window.Span))
	for i := range s.amounts.sums {
		dst = append(dst, s.amounts.sum(i, r))
	}
	return dst
}

func (s *Sums) eachSlot(m moment, i int, yield func(time.Time, int64) bool) {
	s.mu.Lock()
	r := s.amounts.in(s.end(m), int64(s.window.Span))
	s.mu.Unlock()
	for slot := r.first; slot <= r.last; slot++ {
		s.mu.Lock()
		sum := s.amounts.sum(i, slotRange{first: slot, last: slot})
		s.mu.Unlock()
		if !yield(time.Unix(0, slot*int64(s.window.Slot)).UTC(), sum) {
			return
		}
	}
}
