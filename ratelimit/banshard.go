package ratelimit

import (
	"iter"
	"sync"
	"sync/atomic"
)

// A banShard is the part of a banTable under one lock. Readers do not take it.
type banShard struct {
	index atomic.Pointer[banIndex] // nil without entries; replaced when it grows
	_     [64]byte                 // what follows is written more often

	mu    sync.Mutex
	t     *banTable
	heaps [2]banHeap     // the entries of each room
	rules map[uint32]int // entries of each rule, held or remembered

	_ [64]byte
}

// entries returns how many there are.
func (s *banShard) entries() int { return len(s.heaps[0].numbers) + len(s.heaps[handRoom].numbers) }

// all yields the numbers of the entries.
//
// REQUIRES: s.mu.
func (s *banShard) all() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i := range s.heaps {
			for _, number := range s.heaps[i].numbers {
				if !yield(number) {
					return
				}
			}
		}
	}
}

// find returns the number of the entry of a key.
//
// REQUIRES: s.mu.
func (s *banShard) find(rule uint32, hash uint64, key []byte) (number uint32, ok bool) {
	ix := s.index.Load()
	if ix == nil {
		return 0, false
	}
	number, _, ok = s.t.search(ix, rule, hash, key)
	return number, ok
}

// insert adds an entry of a key that has none, in the room of that number. Its
// ban is over since now. It comes last in the heap, and its place there is to
// be settled. ok is false if there is no room.
//
// REQUIRES: s.mu.
func (s *banShard) insert(room int, rule uint32, hash uint64, key []byte, now int64) (number uint32, ok bool) {
	r := &s.t.rooms[room]
	if !r.take() {
		return 0, false
	}
	if !s.indexRoom(room) {
		r.give()
		return 0, false
	}
	n, ok := r.entries.alloc()
	if !ok {
		r.give()
		return 0, false
	}
	a, b, ok := s.t.keepKey(room, key)
	if !ok {
		r.entries.release(n)
		r.give()
		return 0, false
	}
	number = uint32(room)<<31 | n
	e := s.t.entry(number)
	e.begin(rule, hash, a, b, now)
	s.heaps[room].add(s.t, number)
	if s.rules == nil {
		s.rules = make(map[uint32]int)
	}
	s.rules[rule]++
	s.index.Load().link(tagOf(hash, rule)|uint64(number+1), uint32(hash), rule)
	return number, true
}

// remove removes an entry.
//
// REQUIRES: s.mu.
func (s *banShard) remove(number uint32) {
	ix, e := s.index.Load(), s.t.entry(number)
	ix.unlink(number, e.hashLow(), e.rule())
	if s.rules[e.rule()]--; s.rules[e.rule()] == 0 {
		delete(s.rules, e.rule())
	}
	e.end()
	s.heaps[number>>31].remove(s.t, e.heapAt())
	s.t.release(number)
	if s.entries() == 0 {
		s.index.Store(nil)
		s.heaps[0].numbers, s.heaps[handRoom].numbers = nil, nil
		ix.paid.Give(indexBytes(len(ix.lines)))
	}
}

// indexRoom sees to it that the index takes another entry, and reports whether
// it could.
func (s *banShard) indexRoom(room int) bool {
	ix := s.index.Load()
	if ix == nil {
		return s.rebuild(room, firstLines)
	}
	lines, n := len(ix.lines), s.entries()
	switch {
	case 2*n < fullLine*lines:
		return true
	case s.rebuild(room, 2*lines):
		return true
	case room == handRoom:
		return 2*n < brimLine*lines
	}
	return 2*n < crowdedLine*lines
}

// rebuild replaces the index by one of that many lines. Searches that go on in
// the old one find there what was true when they began.
func (s *banShard) rebuild(room, lines int) bool {
	bytes := indexBytes(lines)
	paid := s.t.rooms[0].entries.budget
	if !paid.Take(bytes, 0) {
		paid = s.t.rooms[room].entries.budget
		if room != handRoom || !paid.Take(bytes, 0) {
			return false
		}
	}
	ix := &banIndex{lines: make([]banLine, lines), mask: uint32(lines - 1), paid: paid}
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
	s.heaps[0].room(lines * crowdedLine / 2)
	s.index.Store(ix)
	return true
}

// sweep moves the hands on by a few entries, and removes those of them that are
// over and no longer remembered.
//
// REQUIRES: s.mu.
func (s *banShard) sweep(now int64) {
	if s.t.keep {
		return
	}
	for _, room := range [...]int{0, 0, handRoom} {
		if n, ok := s.heaps[room].turn(); ok && s.t.entry(n).forgotten(now) {
			s.remove(n)
		}
	}
}

// settle puts an entry in its place in the heap after its until has changed.
//
// REQUIRES: s.mu.
func (s *banShard) settle(number uint32) {
	s.heaps[number>>31].settle(s.t, s.t.entry(number).heapAt())
}
