package ban

import (
	"math"
	"sync"
	"sync/atomic"
)

// A shard is the part of a Table that one lock protects. Readers do not take it.
type shard struct {
	memory atomic.Pointer[generation]
	_      [64]byte // what follows is written more often

	mu    sync.Mutex
	t     *Table
	rules map[uint32]int // bans that hold at now, by rule
	now   int64          // the latest time that the shard was used at
	end   atomic.Int64   // when the first of the bans that hold ends; MaxInt64 if none does
	gone  atomic.Int64   // when the first of the others expires; MaxInt64 if there is none

	bytes, reserved int64 // of memory, and how many of them are of the reserve

	_ [64]byte
}

func (s *shard) init(t *Table) {
	s.t, s.rules, s.now = t, make(map[uint32]int), math.MinInt64
	s.memory.Store(t.empty)
	s.note()
}

func (s *shard) entry(number uint32) *entry { return &s.memory.Load().entries[number] }

// find returns the number of the entry of a key, which may be unused.
//
// REQUIRES: s.mu.
func (s *shard) find(rule uint32, hash uint64, key []byte) (number uint32, ok bool) {
	return s.memory.Load().find(tagOf(uint32(hash), rule), rule, key)
}

// fewEntries is how many entries an operation moves or removes for others.
const fewEntries = 4

// advance moves entries whose bans have ended by now to the others, at most so many. It
// returns how many entries it has looked at.
//
// REQUIRES: s.mu.
func (s *shard) advance(now int64, most int) (looked int) {
	s.now = max(s.now, now)
	for range most {
		number, ok := s.memory.Load().held.First()
		if !ok {
			break
		}
		looked++
		if s.end.Load() > s.now {
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
		number, ok := s.memory.Load().ended.First()
		if !ok || s.gone.Load() >= now {
			return
		}
		s.remove(number)
	}
}

// place moves an entry to its place in the heap that it belongs to, after its times have
// changed.
//
// REQUIRES: s.mu.
func (s *shard) place(number uint32) {
	g := s.memory.Load()
	e, to := &g.entries[number], held
	if e.until <= s.now {
		to = ended
	}
	if e.state == to {
		g.heap(to).Fix(int(e.place))
	} else {
		s.unplace(e)
		e.state = to
		g.heap(to).Push(number)
		if to == held {
			s.rules[e.rule]++
		}
	}
	s.note()
}

// unplace removes an entry from its heap, if it is in one.
//
// REQUIRES: s.mu.
func (s *shard) unplace(e *entry) {
	if e.state == unused {
		return
	}
	s.memory.Load().heap(e.state).Remove(int(e.place))
	if e.state == held {
		if s.rules[e.rule]--; s.rules[e.rule] == 0 {
			delete(s.rules, e.rule)
		}
	}
}

// note notes when the first entries of the heaps are due, for those who do not lock.
//
// REQUIRES: s.mu.
func (s *shard) note() {
	g, end, gone := s.memory.Load(), int64(math.MaxInt64), int64(math.MaxInt64)
	if number, ok := g.held.First(); ok {
		end = g.entries[number].until
	}
	if number, ok := g.ended.First(); ok {
		gone = g.entries[number].expires()
	}
	s.end.Store(end)
	s.gone.Store(gone)
}

// remove makes an entry unused.
//
// REQUIRES: s.mu.
func (s *shard) remove(number uint32) {
	e := s.entry(number)
	s.unplace(e)
	e.clear()
	s.t.pool(e.reserve).places.Give(1)
	if s.memory.Load().inUse() == 0 {
		s.pay(0, false)
		s.memory.Store(s.t.empty)
	}
	s.note()
}

// dropEnded removes the entry that expires first of those whose bans have ended at now, and
// reports whether there was one.
//
// REQUIRES: s.mu.
func (s *shard) dropEnded(now int64) bool {
	number, ok := s.memory.Load().ended.First()
	if !ok || s.entry(number).until > now {
		return false // none, or the time went back since it was moved
	}
	if s.gone.Load() >= now {
		s.t.dropped.Add(1)
	}
	s.remove(number)
	return true
}

// fit makes space for that many entries and bytes of text, in a new generation if the
// present one has none. ok is false if there is no memory; manual is whether the reserve
// may be used.
//
// REQUIRES: s.mu.
func (s *shard) fit(entries, text int, manual bool) (ok bool) {
	g := s.memory.Load()
	if len(g.entries)-g.entriesUsed >= entries && len(g.text)-g.textUsed >= text {
		return true
	}
	n := g.inUse()
	return s.rebuild(n/4+16, text, false) || s.rebuild(n/16+1, text, false) || s.rebuild(1, text, manual)
}

// rebuild copies the entries in use to a new generation with space for more, and text of
// that many bytes and of the others at the average. It reports whether there was memory.
//
// REQUIRES: s.mu.
func (s *shard) rebuild(more, text int, manual bool) bool {
	old := s.memory.Load()
	n := old.inUse()
	if texts := old.textBytes(); texts+text > 0 {
		text += texts + more*(texts/max(n, 1)+16)
	}
	if uint64(text) > math.MaxUint32 || !s.pay(generationBytes(n+more, text), manual) {
		return false
	}
	g := newGeneration(s, n+more, text)
	for w := range old.words {
		if e := &old.entries[uint32(w)-1]; e.state != unused {
			g.copyEntry(old, uint32(w>>32), e)
		}
	}
	s.memory.Store(g)
	return true
}

// copyEntry copies e, which is in old, to g.
//
// REQUIRES: g.s.mu.
func (g *generation) copyEntry(old *generation, tag uint32, e *entry) {
	number := g.add(tag, e.rule, old.key(e))
	to := &g.entries[number]
	key := to.key
	*to = *e
	to.key = key
	if reason, source := old.texts(e); len(reason)+len(source) > 0 {
		to.origin = textOrigin(e.origin.byRule(), g.addText(reason), len(reason), len(source))
		g.addText(source)
	}
	g.heap(to.state).Push(number)
}

// textBytes returns how much of the text is in use.
//
// REQUIRES: g.s.mu.
func (g *generation) textBytes() (n int) {
	if g.textUsed == 0 {
		return 0
	}
	for i := range g.entries[:g.entriesUsed] {
		if e := &g.entries[i]; e.state != unused {
			reason, source := g.texts(e)
			n += keyText(g.key(e)) + len(reason) + len(source)
		}
	}
	return n
}

// pay takes from the budget, or gives back, what makes it that many bytes for this shard.
//
// REQUIRES: s.mu.
func (s *shard) pay(bytes int64, manual bool) bool {
	shared, reserve := s.t.shared.budget, s.t.reserve.budget
	more := bytes - s.bytes
	switch {
	case more <= 0:
		back := min(-more, s.reserved)
		s.reserved -= back
		reserve.Give(back)
		shared.Give(-more - back)
	case shared.Take(more, 0):
	case manual && reserve.Take(more, 0):
		s.reserved += more
	default:
		return false
	}
	s.bytes = bytes
	return true
}
