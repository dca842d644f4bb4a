package ban

import (
	"math"
	"sync"
	"sync/atomic"
)

// A shard is the part of a Table that one lock protects. Readers do not take it.
type shard struct {
	memory atomic.Pointer[generation] // nil without entries
	_      [64]byte                   // what follows is written more often

	mu    sync.Mutex
	t     *Table
	held  heap           // the entries whose bans hold at now
	ended heap           // the others
	rules map[uint32]int // entries of held, by rule
	now   int64          // the latest time that the shard was used at

	bytes, reserved int64 // of memory, and how many of them are of the reserve

	_ [64]byte
}

func (s *shard) init(t *Table) {
	s.t, s.rules, s.now = t, make(map[uint32]int), math.MinInt64
	s.held.state, s.ended.state = held, ended
	s.held.noteNext()
	s.ended.noteNext()
}

// entries returns the number of entries in use.
func (s *shard) entries() int { return s.held.n + s.ended.n }

func (s *shard) entry(number uint32) *entry { return &s.memory.Load().entries[number] }

// find returns the number of the entry of a key, which may be unused.
//
// REQUIRES: s.mu.
func (s *shard) find(rule uint32, hash uint64, key []byte) (number uint32, ok bool) {
	if g := s.memory.Load(); g != nil {
		return g.find(tagOf(uint32(hash), rule), rule, key)
	}
	return 0, false
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
		if s.held.n == 0 {
			break
		}
		looked++
		if s.held.next.Load() > s.now {
			break
		}
		s.place(*s.held.at(0))
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
	e := s.entry(number)
	to := &s.held
	if e.until <= s.now {
		to = &s.ended
	}
	if e.state == to.state {
		to.fix(int(e.place))
		return
	}
	s.unplace(e)
	to.add(number)
	if to.state == held {
		s.rules[e.rule]++
	}
}

// unplace removes an entry from its heap.
//
// REQUIRES: s.mu.
func (s *shard) unplace(e *entry) {
	switch e.state {
	case held:
		s.held.remove(int(e.place))
		if s.rules[e.rule]--; s.rules[e.rule] == 0 {
			delete(s.rules, e.rule)
		}
	case ended:
		s.ended.remove(int(e.place))
	}
}

// remove makes an entry unused.
//
// REQUIRES: s.mu.
func (s *shard) remove(number uint32) {
	e := s.entry(number)
	s.unplace(e)
	e.clear()
	s.t.pool(e.reserve).places.Give(1)
	if s.entries() == 0 {
		s.pay(0, false)
		s.memory.Store(nil)
	}
}

// dropEnded removes the entry that expires first of those whose bans have ended at now, and
// reports whether there was one.
//
// REQUIRES: s.mu.
func (s *shard) dropEnded(now int64) bool {
	if s.ended.n == 0 {
		return false
	}
	number := *s.ended.at(0)
	if s.entry(number).until > now {
		return false // the time went back since it was moved
	}
	if s.ended.next.Load() >= now {
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
	if g != nil && len(g.entries)-g.entriesUsed >= entries && len(g.text)-g.textUsed >= text {
		return true
	}
	n := s.entries()
	return s.rebuild(n/4+16, text, false) || s.rebuild(n/16+1, text, false) || s.rebuild(1, text, manual)
}

// rebuild copies the entries in use to a new generation with space for more, and text of
// that many bytes and of the others at the average. It reports whether there was memory.
//
// REQUIRES: s.mu.
func (s *shard) rebuild(more, text int, manual bool) bool {
	n, old := s.entries(), s.memory.Load()
	if texts := s.textBytes(); texts+text > 0 {
		text += texts + more*(texts/max(n, 1)+16)
	}
	if uint64(text) > math.MaxUint32 || !s.pay(generationBytes(n+more, text), manual) {
		return false
	}
	g := newGeneration(s, n+more, text)
	s.held.g, s.ended.g = g, g
	if old != nil {
		for w := range old.words {
			s.copyEntry(g, old, uint32(w>>32), &old.entries[uint32(w)-1])
		}
	}
	s.memory.Store(g)
	return true
}

// copyEntry copies e, which is in old and may be unused, to g.
//
// REQUIRES: s.mu.
func (s *shard) copyEntry(g, old *generation, tag uint32, e *entry) {
	if e.state == unused {
		return
	}
	number := g.add(tag, e.rule, old.key(e))
	to := &g.entries[number]
	key := to.key
	*to = *e
	to.key = key
	if reason, source := old.texts(e); len(reason)+len(source) > 0 {
		to.origin = textOrigin(e.origin.byRule(), g.addText(reason), len(reason), len(source))
		g.addText(source)
	}
	if to.state == held {
		*s.held.at(int(to.place)) = number
	} else {
		*s.ended.at(int(to.place)) = number
	}
}

// textBytes returns how much of the text is in use.
//
// REQUIRES: s.mu.
func (s *shard) textBytes() (n int) {
	g := s.memory.Load()
	if g == nil || g.textUsed == 0 {
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
