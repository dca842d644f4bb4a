package lately

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/ring"
)

// MaxSums is the largest number of sums of a [Sums] or [FloatSums].
const MaxSums = 1024

// noSlot is the newest slot of a sumRing that nothing was added to. It is below
// every slot: a slot is at least 10 ns wide.
const noSlot = math.MinInt64 / 2

// A sumRing is the ring of slots under Sums and FloatSums, which differ in what
// a cell holds and in how it is added to.
//
// A cell has no stamp, since its 64 bits are all taken. Instead, newest says
// which slots are in the ring, and a position is cleared before newest is moved
// on to the slot that takes it. Only the holder of mu clears and moves. So:
//
//   - An add that happens now needs no lock. If it is held up after it has
//     looked at newest, until its position has been cleared, it counts in the
//     later slot there, which the window reached while the add was going on; or
//     it was cleared away, with a slot that had left the window. Both are what
//     the same add, a moment later or sooner, would have come to.
//   - An add with a time of its own must not count in a later slot, so it
//     holds mu.
//   - A read looks afterwards how far clearing has come, and if it has reached
//     a slot that was read, reads again with mu held.
type sumRing struct {
	window Window
	clock  liveClock
	names  []string

	width, slots int64
	size, mask   int64 // of a ring: a power of two, at least slots+2, so that moving on by one slot disturbs no read
	words        int64 // of a cell
	sums         [][]atomic.Uint64

	newest atomic.Int64 // the newest slot, or noSlot
	next   atomic.Int64 // newest or, while the window moves on, where to: set before anything is cleared

	mu    sync.Mutex // guards the clearing of cells, the writing of newest and next, and what follows
	guard aheadGuard

	late, future, saturated atomic.Uint64
}

func (r *sumRing) init(w Window, words int64, names []string) error {
	w, err := w.checked()
	if err != nil {
		return err
	}
	if err := checkNames(names); err != nil {
		return err
	}
	r.window, r.clock, r.names = w, newLiveClock(), append([]string(nil), names...)
	r.width, r.slots, r.words = int64(w.Slot), int64(w.Span/w.Slot), words
	r.size = int64(ring.Size(int(r.slots) + 1))
	r.mask = r.size - 1
	r.sums = make([][]atomic.Uint64, len(names))
	for i := range r.sums {
		r.sums[i] = make([]atomic.Uint64, r.size*words)
	}
	r.newest.Store(noSlot)
	r.next.Store(noSlot)
	r.guard = aheadGuard{ahead: int64(w.Ahead), span: int64(w.Span)}
	return nil
}

func checkNames(names []string) error {
	if len(names) == 0 || len(names) > MaxSums {
		return fmt.Errorf("lately: names: %d given, must be from 1 to %d, one for each sum", len(names), MaxSums)
	}
	for i, name := range names {
		if name == "" {
			return fmt.Errorf("lately: names: the one at index %d is empty, each sum needs a name", i)
		}
		for j, other := range names[:i] {
			if other == name {
				return fmt.Errorf("lately: names: %q is at index %d and at index %d, each sum needs a name of its own", name, j, i)
			}
		}
	}
	return nil
}

// index returns the index of the sum of that name.
func (r *sumRing) index(name string) (i int, ok bool) {
	for i, n := range r.names {
		if n == name {
			return i, true
		}
	}
	return 0, false
}

// liveCell returns the cell for an event that happens now in sum i.
func (r *sumRing) liveCell(i int, now int64) []atomic.Uint64 {
	cells, slot := r.sums[i], r.newest.Load() // panics here if i is out of range, with nothing moved
	if slot == noSlot || uint64(now-slot*r.width) >= uint64(r.width) {
		slot = r.liveSlot(now)
	}
	return cells[(slot&r.mask)*r.words:]
}

// liveSlot is liveCell for when now is not in the newest slot: the slot of now,
// moved on to if needed, or the newest if the slot of now has left the window.
func (r *sumRing) liveSlot(now int64) int64 {
	slot := ring.Floor(now, r.width)
	newest := r.newest.Load()
	if slot > newest {
		r.mu.Lock()
		r.advance(slot)
		newest = r.newest.Load()
		r.mu.Unlock()
	}
	if slot <= newest-r.slots {
		return newest
	}
	return slot
}

// eventCell returns the cell for an event that happened at t in sum i, or false
// if it is refused.
//
// REQUIRES: r.mu, until the cell has been added to.
func (r *sumRing) eventCell(i int, t int64) ([]atomic.Uint64, bool) {
	cells := r.sums[i]
	slot, newest := ring.Floor(t, r.width), r.newest.Load()
	switch {
	case newest != noSlot && r.guard.refuses(t, (newest+1)*r.width):
		r.future.Add(1)
		return nil, false
	case slot < newest-r.slots:
		r.late.Add(1)
		return nil, false
	}
	r.advance(slot)
	return cells[(slot&r.mask)*r.words:], true
}

// advance moves the window on to slot, if that is ahead.
//
// REQUIRES: r.mu.
func (r *sumRing) advance(slot int64) {
	newest := r.newest.Load()
	if slot <= newest {
		return
	}
	r.next.Store(slot)
	for s := max(newest, slot-r.size) + 1; s <= slot; s++ {
		at := (s & r.mask) * r.words
		for _, cells := range r.sums {
			for w := range r.words {
				cells[at+w].Store(0)
			}
		}
	}
	r.newest.Store(slot)
}

// A sumView is what a read adds up: the slots first to last, and the slot
// before first if it is cut by the edge of the window.
type sumView struct {
	first, last int64
	cut         bool
	r           *sumRing
}

// view calls read with the last span at t, or at the newest slot if live and
// that is later; and perhaps a second time. Only the last call counts.
func (r *sumRing) view(t, span int64, live bool, read func(sumView)) {
	if r.tryView(t, span, live, read) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tryView(t, span, live, read)
}

// tryView reports whether what read has read was in place to the end. With r.mu
// held it was.
func (r *sumRing) tryView(t, span int64, live bool, read func(sumView)) bool {
	newest := r.newest.Load()
	if live && newest != noSlot {
		t = max(t, newest*r.width)
	}
	last := newest
	if newest == noSlot || uint64(t-newest*r.width) >= uint64(r.width) {
		last = ring.Floor(t, r.width)
	}
	first, cut := last-r.slots+1, t != last*r.width+r.width-1
	if span != int64(r.window.Span) {
		first, cut = ring.Oldest(t, span, r.width)
	}
	oldest := newest - r.slots // that is kept
	cut = cut && oldest <= first-1 && first-1 <= newest
	v := sumView{first: max(first, oldest), last: min(last, newest), cut: cut, r: r}
	read(v)
	return v.first-1 > r.next.Load()-r.size || !cut && v.first > r.next.Load()-r.size
}

// cells returns the words of sum i, which word in them a slot begins with.
func (v sumView) cells(i int) []atomic.Uint64 { return v.r.sums[i] }

func (v sumView) at(slot int64) int64 { return (slot & v.r.mask) * v.r.words }

// viewSlot calls read, as view does, with one slot, or with none if that slot is
// not kept.
func (r *sumRing) viewSlot(slot int64, read func(sumView)) {
	if r.tryViewSlot(slot, read) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tryViewSlot(slot, read)
}

func (r *sumRing) tryViewSlot(slot int64, read func(sumView)) bool {
	newest := r.newest.Load()
	if slot < newest-r.slots || slot > newest {
		read(sumView{first: 1, last: 0, r: r})
		return true
	}
	read(sumView{first: slot, last: slot, r: r})
	return slot > r.next.Load()-r.size
}

// eachSlot calls yield with the start and the number of each slot of the window
// that ends at t, oldest first.
func (r *sumRing) eachSlot(t int64, yield func(time.Time, int64) bool) {
	last := ring.Floor(t, r.width)
	for s := last - r.slots + 1; s <= last; s++ {
		if !yield(time.Unix(0, s*r.width).UTC(), s) {
			return
		}
	}
}

// notBehind is the time that a live read is about: now, or the start of the
// newest slot if that is later.
func (r *sumRing) notBehind(now int64) int64 {
	if newest := r.newest.Load(); newest != noSlot {
		return max(now, newest*r.width)
	}
	return now
}

func (r *sumRing) checkSpan(span time.Duration) error {
	r.clock.mustBeMade()
	if span <= 0 || span > r.window.Span {
		return fmt.Errorf("lately: span %v: must be positive and at most the window's %v", span, r.window.Span)
	}
	return nil
}
