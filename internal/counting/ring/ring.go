package ring

import (
	"math/bits"
	"sync/atomic"
)

// A Ring counts in slots of one width and keeps the newest slot and the slots
// before it that a window of some number of slots needs: the window's and the
// partly expired one before them.
//
// No add is lost and none is doubled, with any number of writers and readers:
// stamp and count of a slot share one word, so there is no reset to race with.
// All methods are lock-free: a goroutine that is stopped anywhere in one delays no
// other. An add costs one atomic step; moving on by d slots costs d of
// them, the length of the ring at most. Memory is 8 bytes a word from the first
// add on; a step of more than farTurns turns, after idle time that is 9 hours
// for a window of 1 ms and longer for any other, takes fresh memory once.
//
// Adders that contend get stripes, each with words of its own; see striping. A
// stripe's newest slot is never ahead of the lead's, which is moved first; so what a
// stripe keeps is in the window or older.
//
// The zero Ring is not usable, call Init. A Ring must not be copied after that.
type Ring struct {
	width int64 // of a slot, in nanoseconds
	slots int64 // of the window
	shift uint8 // log2 of the number of words

	stripe                             // the lead: its newest slot is the newest of the ring
	striping   atomicPointer[striping] // nil until adders have contended
	contention contention
	saturated  atomic.Uint64 // adds that did not fit
}

// Init makes r an empty ring for a window of that many slots, each width
// nanoseconds wide. Both must be positive; times must keep a distance of
// twice the window from the ends of int64.
func (r *Ring) Init(width int64, slots int) {
	r.width, r.slots, r.shift = width, int64(slots), uint8(bits.TrailingZeros(uint(Size(slots))))
}

// Slot returns the number of the slot that t lies in.
func (r *Ring) Slot(t int64) int64 {
	if e := r.gen.Load(); e != nil {
		s := newestOf(e.newest.Load())
		if uint64(t-s*r.width) < uint64(r.width) { // spares the division
			return s
		}
	}
	return FloorDiv(t, r.width)
}

// Slots returns the number of slots of the window.
func (r *Ring) Slots() int64 { return r.slots }

// Newest returns the newest slot that was added to. There is none before the
// first add.
func (r *Ring) Newest() (slot int64, ok bool) {
	e := r.gen.Load()
	if e == nil {
		return 0, false
	}
	return newestOf(e.newest.Load()), true
}

// Saturated returns how many adds did not fit into their slot, MaxCount being
// reached.
func (r *Ring) Saturated() uint64 { return r.saturated.Load() }

// AddLive counts n for an event that happens now, and t was now a moment ago.
// It is never refused: it counts in the slot of t or, if the ring has moved on
// since t was taken, in a slot that it has reached since; if the slot of t has
// left the window, in the newest.
func (r *Ring) AddLive(t int64, n uint64) {
	e, s := r.ready(t)
	if e == nil || n > maxUnchecked {
		r.addSlow(FloorDiv(t, r.width), n, true)
		return
	}
	w, contended := e.addUnchecked(s, n)
	if contended || w&guard != 0 {
		r.afterAdd(e, s, w&guard == 0, contended)
	}
}

// ready returns the generation of the caller's stripe and the newest slot, if t lies in
// it and the stripe is there already; else nil.
func (r *Ring) ready(t int64) (*generation, int64) {
	e := r.gen.Load()
	if e == nil {
		return nil, 0
	}
	state := e.newest.Load()
	s := newestOf(state)
	if isClosed(state) || uint64(t-s*r.width) >= uint64(r.width) {
		return nil, 0
	}
	if striping := r.striping.Load(); striping != nil {
		e = striping.pick().gen.Load()
		if e == nil || e.newest.Load() != state {
			return nil, 0
		}
	}
	return e, s
}

// AddAt counts n for an event at t. It reports false and counts nothing if the
// slot of t is older than the window and the partly expired slot before it:
// that slot's count may be gone, or its place taken.
func (r *Ring) AddAt(t int64, n uint64) bool {
	if e, s := r.ready(t); e != nil {
		if _, fits, contended, ok := e.add(s, n); ok {
			if contended || !fits {
				r.afterAdd(e, s, fits, contended)
			}
			return true
		}
	}
	return r.addSlow(FloorDiv(t, r.width), n, false)
}

// addSlow is AddLive or AddAt when slot is not the newest, the stripe is not there yet,
// or n is large.
func (r *Ring) addSlow(slot int64, n uint64, live bool) bool {
	for {
		e, state := r.reach(slot, r.shift)
		at, newest := slot, newestOf(state)
		switch {
		case live && at <= newest-r.slots:
			at = newest
		case at < newest-r.slots:
			return false
		}
		if r.addTo(e, state, at, n) {
			return true
		}
	}
}

// addTo counts n in a slot of the window as the lead's state has it. It reports
// false if a later slot has taken the place; newest has moved past state then.
func (r *Ring) addTo(e *generation, state, slot int64, n uint64) bool {
	l := &r.stripe
	if s := r.striping.Load(); s != nil {
		l = s.pick()
		e, state = l.reach(slot, r.shift)
	}
	if slot <= newestOf(state)-int64(len(e.words)) {
		return false // a stripe that has moved on since
	}
	w, fits, contended, ok := e.add(slot, n)
	if !ok {
		l.help(e, state, slot, w)
		return false
	}
	if contended || !fits {
		r.afterAdd(e, slot, fits, contended)
	}
	return true
}

// afterAdd is what remains to be done when an add in slot of e contended or did not fit.
func (r *Ring) afterAdd(e *generation, slot int64, fits, contended bool) {
	if !fits {
		e.clamp(slot)
		r.saturated.Add(1)
	}
	if contended {
		r.contend(slot)
	}
}

// Sum returns the counts of the slots first to last, both included. It is
// whole unless one of them is older than what the ring keeps; such a slot, its
// count still there or not, adds nothing.
//
// Adds that finished before Sum began are in it; adds that begin after it ended
// are not.
func (r *Ring) Sum(first, last int64) (sum uint64, whole bool) {
	e, state := r.current()
	if e == nil {
		return 0, true
	}
	sum, whole = r.sumIn(e, state, first, last, r.slots)
	if s := r.striping.Load(); s != nil {
		// A stripe may be behind, and still have what the window has not.
		first = max(first, newestOf(state)-r.slots)
		for i := range s.used() {
			part, all := s.stripes[i].sum(first, last, r.slots)
			sum, whole = sum+part, whole && all
		}
	}
	return sum, whole
}
