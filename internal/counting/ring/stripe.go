package ring

// A stripe is a ring of words with its generations: the lead, which decides what the
// newest slot is, or a stripe of a striping. It keeps the slots up to its own
// newest.
type stripe struct {
	gen atomicPointer[generation] // nil until the first add
}

// reach moves the newest slot on to slot, unless it is later, and returns the current
// generation and its state.
func (l *stripe) reach(slot int64, shift uint8) (*generation, int64) {
	for {
		e := l.gen.Load()
		if e == nil {
			l.gen.CompareAndSwap(nil, newGeneration(slot, shift))
			continue
		}
		state := e.newest.Load()
		switch step := slot - newestOf(state); {
		case isClosed(state):
			l.succeed(e, state)
		case step <= 0:
			return e, state
		case step > e.far():
			e.close(state, slot)
		default:
			e.advance(state, slot)
		}
	}
}

// current returns the generation, open in that state, or nil before the first.
func (l *stripe) current() (*generation, int64) {
	for {
		e := l.gen.Load()
		if e == nil {
			return nil, 0
		}
		state := e.newest.Load()
		if !isClosed(state) {
			return e, state
		}
		l.succeed(e, state)
	}
}

// succeed puts the next generation in the place of e, which is closed. Everyone who
// finds a closed generation does it; one of them wins. Writers that looked at e before
// it was closed may still add to it: their slots were in its window, and those
// are more than a window older than where the next generation begins.
func (l *stripe) succeed(e *generation, state int64) {
	if l.gen.Load() == e {
		l.gen.CompareAndSwap(e, newGeneration(newestOf(state), e.shift))
	}
}

// help is called after w, the word of a later slot, was found at the position of
// slot, and newest was seen at state before. If newest is still there, a writer is
// between stamping and publishing; help publishes for it, so that the caller need
// not wait.
func (l *stripe) help(e *generation, state, slot int64, w uint64) {
	if e.newest.Load() == state {
		l.reach(e.slotFound(w, slot, state), e.shift)
	}
}

// sum is Ring.Sum in this stripe, for a window of that many slots.
func (l *stripe) sum(first, last, slots int64) (sum uint64, whole bool) {
	e, state := l.current()
	if e == nil {
		return 0, true
	}
	return l.sumIn(e, state, first, last, slots)
}

// sumIn is sum in the generation e, found open in that state.
func (l *stripe) sumIn(e *generation, state, first, last, slots int64) (sum uint64, whole bool) {
	newest := newestOf(state)
	oldest := newest - slots
	whole = first >= oldest || last < first
	first, last = max(first, oldest), min(last, newest)
	if first > last {
		return 0, whole
	}
	// Up to the end of the words, and one turn on from their beginning.
	p, n, stamp := int(first)&(len(e.words)-1), int(last-first)+1, stampOf(first, e.shift)
	right := e.words[p:min(p+n, len(e.words))]
	sum, odd := sumOf(right, stamp)
	if rest := n - len(right); rest > 0 {
		part, o := sumOf(e.words[:rest], stamp+1<<tagShift)
		sum, odd = sum+part, odd || o
	}
	if odd {
		return l.sumOneByOne(e, state, first, last, whole)
	}
	return sum, whole
}

// sumOf adds up words that all have that stamp. Where one has another, or its
// guard set, the result is odd and means nothing.
func sumOf(words []atomicUint64, stamp uint64) (sum uint64, odd bool) {
	differ := uint64(0)
	for len(words) >= 4 { // twice as fast as one at a time
		four := words[:4]
		words = words[4:]
		w, x, y, z := four[0].Load(), four[1].Load(), four[2].Load(), four[3].Load()
		differ |= w ^ stamp | x ^ stamp | y ^ stamp | z ^ stamp
		sum += w&MaxCount + x&MaxCount + y&MaxCount + z&MaxCount
	}
	for i := range words {
		w := words[i].Load()
		differ |= w ^ stamp
		sum += w & MaxCount // below 2^64 with any ring that fits in memory
	}
	return sum, differ>>countBits != 0
}

// sumOneByOne is sumIn where a word is not what it should be.
func (l *stripe) sumOneByOne(e *generation, state, first, last int64, whole bool) (uint64, bool) {
	sum := uint64(0)
	for s := first; s <= last; s++ {
		if w := e.word(s).Load(); (w^stampOf(s, e.shift))>>tagShift == 0 {
			sum += countOf(w)
		} else {
			l.help(e, state, s, w)
			whole = false
		}
	}
	return sum, whole
}
