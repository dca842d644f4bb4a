package ban

import (
	"math"
	"sync"
	"sync/atomic"
)

// A shard is the part of a Table that one lock protects. Readers do not take it.
type shard struct {
	index atomic.Pointer[index] // nil without entries; replaced when it grows
	_     [64]byte              // what follows is written more often

	mu    sync.Mutex
	t     *Table
	slots []uint32       // of both heaps: numbers of entries
	held  heap           // the entries whose bans hold at now
	ended heap           // the others
	rules map[uint32]int // entries of held, by rule
	now   int64          // the latest time that the shard was used at

	_ [64]byte
}

func (s *shard) init(t *Table) {
	s.t, s.rules, s.now = t, make(map[uint32]int), math.MinInt64
	s.held.s, s.ended.s, s.ended.ended = s, s, true
	s.held.noteNext()
	s.ended.noteNext()
}

// entries returns the number of entries.
func (s *shard) entries() int { return s.held.n + s.ended.n }

// fewEntries is how many entries an operation moves or removes for others.
const fewEntries = 4

// advance moves entries whose bans have ended by now to the others, and removes entries
// that are not remembered any more, at most so many of each. It returns how many entries it has
// looked at.
//
// REQUIRES: s.mu.
func (s *shard) advance(now int64, most int) (looked int) {
	s.now = max(s.now, now)
	for range most {
		if s.held.n == 0 {
			break
		}
		looked++
		number := *s.held.at(0)
		if s.t.entry(number).until() > s.now {
			break
		}
		s.place(number)
	}
	return looked
}

// expire removes entries that are not remembered any more at now, at most so many.
//
// REQUIRES: s.mu.
func (s *shard) expire(now int64, most int) {
	if s.t.keep {
		return
	}
	for range most {
		if s.ended.next.Load() >= now {
			return
		}
		s.remove(*s.ended.at(0))
	}
}

// place moves an entry to its place in the heap that it belongs to, after its times have
// changed.
//
// REQUIRES: s.mu.
func (s *shard) place(number uint32) {
	e := s.t.entry(number)
	from, to := &s.held, &s.held
	ended, at := e.place()
	if ended {
		from = &s.ended
	}
	if e.until() <= s.now {
		to = &s.ended
	}
	if from == to {
		to.fix(at)
		return
	}
	from.remove(at)
	to.add(number)
	if ended {
		s.rules[e.rule()]++
	} else {
		s.uncount(e.rule())
	}
}

func (s *shard) uncount(rule uint32) {
	if s.rules[rule]--; s.rules[rule] == 0 {
		delete(s.rules, rule)
	}
}

// find returns the number of the entry of a key.
//
// REQUIRES: s.mu.
func (s *shard) find(rule uint32, hash uint64, key []byte) (number uint32, ok bool) {
	ix := s.index.Load()
	if ix == nil {
		return 0, false
	}
	number, _, ok = s.t.search(ix, rule, hash, key)
	return number, ok
}

// insert adds an entry for a key that has none. Its ban has ended at now. ok is false if
// there is no memory; manual is whether the reserve may be used.
//
// REQUIRES: s.mu.
func (s *shard) insert(manual bool, rule uint32, hash uint64, key []byte, now int64) (number uint32, ok bool) {
	t := s.t
	if number, ok = t.entries.alloc(manual); !ok {
		return 0, false
	}
	if !s.growIndex(manual) {
		t.entries.release(number)
		return 0, false
	}
	a, b, ok := t.storeKey(key, manual)
	if !ok {
		t.entries.release(number)
		return 0, false
	}
	t.entry(number).begin(rule, hash, a, b, now)
	s.ended.add(number)
	s.index.Load().link(tagOf(hash, rule)|uint64(number+1), uint32(hash), rule)
	return number, true
}

// remove removes an entry, and reports whether it was one of the reserve.
//
// REQUIRES: s.mu.
func (s *shard) remove(number uint32) (reserve bool) {
	t, ix := s.t, s.index.Load()
	e := t.entry(number)
	ix.unlink(number, e.hashLow(), e.rule())
	if ended, at := e.place(); ended {
		s.ended.remove(at)
	} else {
		s.held.remove(at)
		s.uncount(e.rule())
	}
	e.end()
	if a, b := e[entryKey].Load(), e[entryKey+1].Load(); b>>56 == longKey {
		t.texts.release(a & (1<<placeBits - 1))
	}
	t.releaseText(e.origin())
	if s.entries() == 0 {
		s.index.Store(nil)
		s.slots = nil
		ix.paid.Give(indexBytes(len(ix.lines)))
	}
	return t.entries.release(number)
}

// growIndex grows the index if another entry needs that. It reports whether there is a
// place for one.
func (s *shard) growIndex(manual bool) bool {
	ix := s.index.Load()
	if ix == nil {
		return s.rebuild(manual, firstLines)
	}
	lines, n := len(ix.lines), s.entries()
	switch {
	case 2*n < fullLine*lines:
		return true
	case s.rebuild(manual, 2*lines):
		return true
	case manual:
		return 2*n < brimLine*lines
	}
	return 2*n < crowdedLine*lines
}

// rebuild replaces the index by one of that many lines. Searches that are under way in the
// old one find there what was true when they began.
func (s *shard) rebuild(manual bool, lines int) bool {
	bytes := indexBytes(lines)
	paid := s.t.entries.shared.budget
	if !paid.Take(bytes, 0) {
		paid = s.t.entries.reserve.budget
		if !manual || !paid.Take(bytes, 0) {
			return false
		}
	}
	ix := &index{lines: make([]line, lines), mask: uint32(lines - 1), paid: paid}
	if old := s.index.Load(); old != nil {
		for i := range old.lines {
			for at := 1; at < len(old.lines[i]); at++ {
				if w := old.lines[i][at].Load(); w != 0 {
					e := s.t.entry(uint32(w) - 1)
					ix.link(w, e.hashLow(), e.rule())
				}
			}
		}
		old.paid.Give(indexBytes(len(old.lines)))
	}
	slots := make([]uint32, lines*lineEntries)
	copy(slots, s.slots[:s.held.n])
	copy(slots[len(slots)-s.ended.n:], s.slots[len(s.slots)-s.ended.n:])
	s.slots = slots
	s.index.Store(ix)
	return true
}
