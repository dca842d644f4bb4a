package ring

import "sync/atomic"

// A Ring counts in slots of one width and keeps the newest slot and the slots
// before it that a window of some number of slots needs: the window's and the
// partly expired one before them.
//
// No add is lost and none is doubled, with any number of writers and readers:
// stamp and count of a slot share one word, so there is no reset to race with.
// All methods are lock-free: a goroutine that is stopped anywhere in one holds
// nobody up. An add costs one atomic step; moving on by d slots costs d of
// them, the length of the ring at most. Memory is 8 bytes a word from the first
// add on; a step of more than farTurns turns, after idle time that is 9 hours
// for a window of 1 ms and longer for any other, takes fresh memory once.
//
// The zero Ring is not usable, call Init. A Ring must not be copied after that.
type Ring struct {
	width int64 // of a slot, in nanoseconds
	slots int64 // of the window
	shift uint8 // log2 of the number of words

	era       atomic.Pointer[era] // nil until the first add
	saturated atomic.Uint64       // adds that did not fit
}

// Init makes r an empty ring for a window of that many slots, each width
// nanoseconds wide. Both must be positive; times must keep a distance of
// twice the window from the ends of int64.
func (r *Ring) Init(width int64, slots int) {
	r.width, r.slots = width, int64(slots)
	r.shift = 0
	for 1<<r.shift < Size(slots) {
		r.shift++
	}
}

// Slot returns the number of the slot that t lies in.
func (r *Ring) Slot(t int64) int64 {
	if e := r.era.Load(); e != nil {
		s := newestOf(e.newest.Load())
		if uint64(t-s*r.width) < uint64(r.width) { // spares the division
			return s
		}
	}
	return Floor(t, r.width)
}

// Slots returns the number of slots of the window.
func (r *Ring) Slots() int64 { return r.slots }

// Newest returns the newest slot that was added to. There is none before the
// first add.
func (r *Ring) Newest() (slot int64, ok bool) {
	e := r.era.Load()
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
	e := r.era.Load()
	if e == nil || n > maxBlind {
		r.addLiveSlow(t, n)
		return
	}
	state := e.newest.Load()
	s := newestOf(state)
	if isClosed(state) || uint64(t-s*r.width) >= uint64(r.width) {
		r.addLiveSlow(t, n)
		return
	}
	if !e.blind(s, n) {
		r.saturated.Add(1)
	}
}

// addLiveSlow is AddLive when t is not in the newest slot or n is large.
func (r *Ring) addLiveSlow(t int64, n uint64) {
	slot := Floor(t, r.width)
	for {
		e, state := r.reach(slot)
		at, newest := slot, newestOf(state)
		if at <= newest-r.slots {
			at = newest
		}
		if r.addTo(e, state, at, n) {
			return
		}
	}
}

// AddAt counts n in slot. It reports false and counts nothing if slot is older
// than the window and the partly expired slot before it: that slot's count may
// be gone, or its place taken.
func (r *Ring) AddAt(slot int64, n uint64) bool {
	for {
		e, state := r.reach(slot)
		if slot < newestOf(state)-r.slots {
			return false
		}
		if r.addTo(e, state, slot, n) {
			return true
		}
	}
}

// addTo counts n in a slot of the window as state has it. It reports false if
// a later slot has taken the place; newest has moved past state then.
func (r *Ring) addTo(e *era, state, slot int64, n uint64) bool {
	w, fits, ok := e.add(slot, n)
	if !ok {
		r.help(e, state, slot, w)
		return false
	}
	if !fits {
		r.saturated.Add(1)
	}
	return true
}

// Sum returns the counts of the slots first to last, both included. It is
// whole unless one of them is older than what the ring keeps; such a slot, its
// count still there or not, adds nothing.
//
// Adds that finished before Sum began are in it; adds that begin after it ended
// are not.
func (r *Ring) Sum(first, last int64) (sum uint64, whole bool) {
	for {
		e := r.era.Load()
		if e == nil {
			return 0, true
		}
		state := e.newest.Load()
		if !isClosed(state) {
			return r.sum(e, state, first, last)
		}
		r.succeed(e, state)
	}
}

// sum is Sum in the era e, found open in that state. Position and stamp go up
// together: one step right is one slot on, past the end of the words one turn.
func (r *Ring) sum(e *era, state, first, last int64) (sum uint64, whole bool) {
	newest := newestOf(state)
	oldest := newest - r.slots
	whole = first >= oldest || last < first
	first, last = max(first, oldest), min(last, newest)
	if first > last {
		return 0, whole
	}
	words, stamp := e.words, stampOf(first, e.shift)
	p := int(first) & (len(words) - 1)
	for s := first; s <= last; s++ {
		if w := words[p].Load(); (w^stamp)>>tagShift == 0 {
			sum += countOf(w) // below 2^64 with any ring that fits in memory
		} else {
			r.help(e, state, s, w)
			whole = false
		}
		if p++; p == len(words) {
			p, stamp = 0, stamp+1<<tagShift
		}
	}
	return sum, whole
}

// reach returns the current era, and its state, once its newest slot is at or
// after slot, and sees to it that it is.
func (r *Ring) reach(slot int64) (*era, int64) {
	for {
		e := r.era.Load()
		if e == nil {
			r.era.CompareAndSwap(nil, newEra(slot, r.shift))
			continue
		}
		state := e.newest.Load()
		switch step := slot - newestOf(state); {
		case isClosed(state):
			r.succeed(e, state)
		case step <= 0:
			return e, state
		case step > e.far():
			e.close(state, slot)
		default:
			e.advance(state, slot)
		}
	}
}

// succeed puts the next era in the place of e, which is closed. Everyone who
// meets a closed era does it; one of them wins. Writers that looked at e before
// it was closed may still add to it: their slots were in its window, and those
// are more than a window older than where the next era begins.
func (r *Ring) succeed(e *era, state int64) {
	if r.era.Load() == e {
		r.era.CompareAndSwap(e, newEra(newestOf(state), r.shift))
	}
}

// help is called by who has found w, the word of a later slot, at the position
// of slot, after newest was seen at state. If newest is still there, a writer
// is between stamping and publishing; help publishes in its stead, so that the
// caller need not wait for it.
func (r *Ring) help(e *era, state, slot int64, w uint64) {
	if e.newest.Load() == state {
		r.reach(e.slotFound(w, slot, state))
	}
}
