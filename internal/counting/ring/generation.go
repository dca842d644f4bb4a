package ring

// A generation is a ring of words for as long as its newest slot moves on in steps
// that a tag can tell apart. A longer step closes it and begins another generation
// in fresh memory, so that no old word can be taken for a new one.
//
// Invariant, for newest = N and while open: the word at the position of slot s,
// N-len(words) < s <= N, belongs to s or to a later slot, at most farTurns past
// N. The slots of a word only ever grow.
type generation struct {
	// newest packs the number of the newest slot, shifted left by one, and a
	// low bit that means "closed". Open, it only grows, and it takes a value
	// after all words have been stamped for it: a goroutine that sees N finds the
	// slots up to N in place. Closed, it holds the slot that the next generation begins with
	// and never changes again, so everyone can finish what the closer began.
	newest atomicInt64

	words []atomicUint64 // len is 1<<shift
	shift uint8

	_ [24]byte // a cache line in all: generations of other stripes lie beside it
}

// minWords keeps the words of two stripes off one cache line.
const minWords = 8

// newGeneration returns an open generation whose newest slot is slot, all counts 0. It is
// not shared yet, so the order of the stores does not matter.
func newGeneration(slot int64, shift uint8) *generation {
	size := 1 << shift
	e := &generation{words: make([]atomicUint64, max(size, minWords))[:size:size], shift: shift}
	for s := slot - int64(len(e.words)) + 1; s <= slot; s++ {
		e.word(s).Store(stampOf(s, shift))
	}
	e.newest.Store(open(slot))
	return e
}

func open(slot int64) int64      { return slot << 1 }
func closed(slot int64) int64    { return slot<<1 | 1 }
func isClosed(state int64) bool  { return state&1 != 0 }
func newestOf(state int64) int64 { return state >> 1 }

// word returns the word at the position of slot.
func (e *generation) word(slot int64) *atomicUint64 {
	return &e.words[uint64(slot)&uint64(len(e.words)-1)]
}

// far is the longest step, in slots, that newest may make in this generation.
func (e *generation) far() int64 { return farTurns << e.shift }

// addUnchecked adds n, at most maxUnchecked, to whatever slot is at the position of
// slot: to slot itself, or to the later one that has taken its place since the caller
// looked. It returns the word that followed, and whether somebody else changed it at
// the same moment. If the guard is set in it, the caller must clamp.
//
// REQUIRES: newest has been seen at slot. So the word can't be an older one.
func (e *generation) addUnchecked(slot int64, n uint64) (w uint64, contended bool) {
	p := e.word(slot)
	before := p.Load() // free if the line is in the cache, and detects if it is not
	w = p.Add(n)
	return w, w != before+n
}

// clamp brings the word at the position of slot back to MaxCount if its guard is set.
func (e *generation) clamp(slot int64) {
	p := e.word(slot)
	for {
		w := p.Load()
		if w&guard == 0 || p.CompareAndSwap(w, w&^lowMask|MaxCount) {
			return
		}
	}
}

// add counts n in slot and nowhere else. If a later slot has taken its place it
// changes nothing and returns the word it found, and ok is false. contended means that
// somebody else changed the word at the same moment.
//
// REQUIRES: newest has been seen at or after slot, by less than len(words).
func (e *generation) add(slot int64, n uint64) (found uint64, fits, contended, ok bool) {
	p, stamp := e.word(slot), stampOf(slot, e.shift)
	for {
		w := p.Load()
		if (w^stamp)>>tagShift != 0 {
			return w, false, contended, false
		}
		room := MaxCount - countOf(w)
		if p.CompareAndSwap(w, stamp|(MaxCount-room+min(n, room))) {
			return w, n <= room, contended, true
		}
		contended = true
	}
}

// advance moves newest from state, which must be open, to slot: it stamps the
// words of the slots between, as many as there are words at most, and then
// publishes. It gives up as soon as newest no longer equals state;
// somebody else has made progress then.
//
// REQUIRES: 0 < slot - newestOf(state) <= far().
func (e *generation) advance(state, slot int64) {
	for s := max(newestOf(state), slot-int64(len(e.words))) + 1; s <= slot; s++ {
		if !e.stamp(state, s) {
			return
		}
	}
	e.newest.CompareAndSwap(state, open(slot))
}

// close ends the generation in favor of one that begins with slot. If newest is no
// longer state it does nothing: slot may be in reach by now, and what has been
// added since belong to the window that ends there.
//
// REQUIRES: slot - newestOf(state) > far().
func (e *generation) close(state, slot int64) { e.newest.CompareAndSwap(state, closed(slot)) }

// stamp makes the word of slot belong to slot, or leaves it to a later one. It
// reports false, and may have done nothing, if newest is no longer state.
//
// The count that it clears belongs to slot-len(words), or an older slot, which is
// outside the window that ends at slot. The word is judged by state, so state
// is verified after the word was loaded; the swap then fails if the word has
// changed since. What a late stamper can still do wrong needs the very same
// word to come back, which takes 2^27 turns of the ring: the exclusion named in
// docs/dev/proofs.md.
func (e *generation) stamp(state, slot int64) bool {
	p := e.word(slot)
	for {
		w := p.Load()
		if e.newest.Load() != state {
			return false
		}
		if e.slotFound(w, slot, state) >= slot || p.CompareAndSwap(w, stampOf(slot, e.shift)) {
			return true
		}
	}
}

// slotFound returns the slot that the word w, found at the position of slot,
// belongs to, given that newest was state when w was loaded.
func (e *generation) slotFound(w uint64, slot, state int64) int64 {
	size := int64(len(e.words))
	newest := newestOf(state)
	at := newest - (newest-slot)&(size-1) // the slot at this position in (newest-size, newest]
	return slotOf(w, at, e.shift)
}
