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
// Adders that get in each other's way are spread over lanes, each with words of
// its own; see spread. A lane's newest slot is never ahead of the lead's, which
// is moved first; so what a lane keeps is in the window or older.
//
// The zero Ring is not usable, call Init. A Ring must not be copied after that.
type Ring struct {
	width int64 // of a slot, in nanoseconds
	slots int64 // of the window
	shift uint8 // log2 of the number of words

	lane                            // the lead: its newest slot is that of the ring
	spread    atomicPointer[spread] // nil until adders have met
	crowd     crowd
	saturated atomic.Uint64 // adds that did not fit
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
	return FloorDiv(t, r.width)
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
//
// due says that about paceEvery have been counted in this slot and lane since it
// last said so; see AddBrisk.
func (r *Ring) AddLive(t int64, n uint64) (due bool) {
	e, s := r.ready(t)
	if e == nil || n > maxBlind {
		r.addLiveSlow(t, n)
		return true
	}
	w, met := e.blind(s, n)
	if met || w&guard != 0 {
		r.aftermath(e, s, w, met)
	}
	return (w^(w-n))&^(paceEvery-1) != 0
}

// paceEvery is how many events are counted by a clock that lags before it is
// compared with a precise one.
const paceEvery = 16

// AddBrisk is AddLive, at a time that may lag, for a lane that is brisk: it has
// counted so fast of late that a look at the clock now and then bounds the lag.
// If it is not, or t is not in the newest slot, AddBrisk does nothing and
// reports ok false; the caller then reads a precise clock, and calls AddLive.
// Each time that due is true, of either, it calls Pace.
func (r *Ring) AddBrisk(t int64, n uint64) (ok, due bool) {
	e, s := r.ready(t)
	if e == nil || !e.brisk.Load() || n > maxBlind {
		return false, false
	}
	w, met := e.blind(s, n)
	if met || w&guard != 0 {
		r.aftermath(e, s, w, met)
	}
	return true, (w^(w-n))&^(paceEvery-1) != 0
}

// Pace tells the caller's lane the precise time. It is brisk from now on if it
// was last told so less than limit nanoseconds ago, until its slot is over.
func (r *Ring) Pace(now, limit int64) {
	l := &r.lane
	if s := r.spread.Load(); s != nil {
		l = s.pick()
	}
	e := l.era.Load()
	if e == nil {
		return
	}
	took := now - e.mark.Load()
	e.mark.Store(now)
	if brisk := 0 <= took && took < limit; brisk != e.brisk.Load() {
		e.brisk.Store(brisk)
	}
}

// ready returns the era of the caller's lane and the newest slot, if t lies in
// it and the lane is there already; else nil.
func (r *Ring) ready(t int64) (*era, int64) {
	e := r.era.Load()
	if e == nil {
		return nil, 0
	}
	state := e.newest.Load()
	s := newestOf(state)
	if isClosed(state) || uint64(t-s*r.width) >= uint64(r.width) {
		return nil, 0
	}
	if spread := r.spread.Load(); spread != nil {
		e = spread.pick().era.Load()
		if e == nil || e.newest.Load() != state {
			return nil, 0
		}
	}
	return e, s
}

// aftermath is what remains to be done when a blind add in slot has met another
// or did not fit.
func (r *Ring) aftermath(e *era, slot int64, w uint64, met bool) {
	if w&guard != 0 {
		e.clamp(slot)
		r.saturated.Add(1)
	}
	if met {
		r.meet(slot)
	}
}

// addLiveSlow is AddLive when t is not in the newest slot, the lane is not
// there yet, or n is large.
func (r *Ring) addLiveSlow(t int64, n uint64) {
	slot := FloorDiv(t, r.width)
	for {
		e, state := r.reach(slot, r.shift)
		at, newest := slot, newestOf(state)
		if at <= newest-r.slots {
			at = newest
		}
		if r.addTo(e, state, at, n) {
			return
		}
	}
}

// AddAt counts n for an event at t. It reports false and counts nothing if the
// slot of t is older than the window and the partly expired slot before it:
// that slot's count may be gone, or its place taken.
func (r *Ring) AddAt(t int64, n uint64) bool {
	if e, s := r.ready(t); e != nil {
		if _, fits, met, ok := e.add(s, n); ok {
			if met || !fits {
				r.afterAdd(s, fits, met)
			}
			return true
		}
	}
	return r.addAtSlow(FloorDiv(t, r.width), n)
}

// addAtSlow is AddAt for a slot that may not be the newest.
func (r *Ring) addAtSlow(slot int64, n uint64) bool {
	for {
		e, state := r.reach(slot, r.shift)
		if slot < newestOf(state)-r.slots {
			return false
		}
		if r.addTo(e, state, slot, n) {
			return true
		}
	}
}

// addTo counts n in a slot of the window as the lead's state has it. It reports
// false if a later slot has taken the place; newest has moved past state then.
func (r *Ring) addTo(e *era, state, slot int64, n uint64) bool {
	l := &r.lane
	if s := r.spread.Load(); s != nil {
		l = s.pick()
		e, state = l.reach(slot, r.shift)
	}
	if slot <= newestOf(state)-int64(len(e.words)) {
		return false // a lane that has moved on since
	}
	w, fits, met, ok := e.add(slot, n)
	if !ok {
		l.help(e, state, slot, w)
		return false
	}
	if met || !fits {
		r.afterAdd(slot, fits, met)
	}
	return true
}

// afterAdd is what remains to be done when an add in slot has met another or
// did not fit.
func (r *Ring) afterAdd(slot int64, fits, met bool) {
	if !fits {
		r.saturated.Add(1)
	}
	if met {
		r.meet(slot)
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
	if s := r.spread.Load(); s != nil {
		// A lane may be behind, and still have what the window has not.
		first = max(first, newestOf(state)-r.slots)
		for i := range s.used() {
			part, all := s.lanes[i].sum(first, last, r.slots)
			sum, whole = sum+part, whole && all
		}
	}
	return sum, whole
}
