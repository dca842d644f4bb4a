package ban

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
)

// each calls f for all entries in use. It locks one shard after another; f may remove the
// entry, and must not call other methods of the table.
func (t *Table) each(f func(r ref, e *entry)) {
	for i := range t.shards {
		t.shards[i].each(f)
	}
}

func (s *shard) each(f func(r ref, e *entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.memory.Load()
	for w := range g.words {
		if r := (ref{g: g, word: w}); r.entry().state != unused {
			f(r, r.entry())
		}
	}
}

// A ref refers to an entry, also when its shard has another generation.
type ref struct {
	time int64
	g    *generation
	word uint64 // of g.index
}

func (r ref) number() uint32 { return uint32(r.word) - 1 }

// entry returns the entry as it was in its generation. Its rule and key never change.
func (r ref) entry() *entry { return &r.g.entries[r.number()] }

// compare orders by time, rule and key.
func (r ref) compare(q ref) int {
	if c := cmp.Compare(r.time, q.time); c != 0 {
		return c
	}
	a, b := r.entry(), q.entry()
	return cmp.Or(cmp.Compare(a.rule, b.rule), bytes.Compare(r.g.key(a), q.g.key(b)))
}

// ban returns the ban as it is now.
func (r ref) ban() (b Ban, ok bool) {
	s := r.g.s
	s.mu.Lock()
	defer s.mu.Unlock()
	g, number := s.memory.Load(), r.number()
	if g != r.g {
		if number, ok = g.find(uint32(r.word>>32), r.entry().rule, r.g.key(r.entry())); !ok {
			return b, false
		}
	}
	return g.ban(&g.entries[number]), true
}

// All yields the bans that hold at now, by end, rule and key. No lock is held while the
// loop's body runs: a ban that begins or ends meanwhile may be left out, but each is whole.
// The cost is 24 bytes a ban and a sort.
func (t *Table) All(now int64) iter.Seq[Ban] {
	return func(yield func(Ban) bool) {
		var refs []ref
		t.each(func(r ref, e *entry) {
			if r.time = e.until; now < e.until {
				refs = append(refs, r)
			}
		})
		slices.SortFunc(refs, ref.compare)
		for _, r := range refs {
			if b, ok := r.ban(); ok && now < b.Until && !yield(b) {
				return
			}
		}
	}
}

// Saved yields all bans, those that are remembered included, in no order. No lock is held
// while the loop's body runs. A ban that begins meanwhile may be left out.
func (t *Table) Saved() iter.Seq[Ban] {
	return func(yield func(Ban) bool) {
		var refs []ref
		for i := range t.shards {
			refs = refs[:0]
			t.shards[i].each(func(r ref, _ *entry) { refs = append(refs, r) })
			for _, r := range refs {
				if b, ok := r.ban(); ok && b.Until != noBan && !yield(b) {
					return
				}
			}
		}
	}
}

// Get returns the ban of key under rule that holds at now.
func (t *Table) Get(rule uint32, hash uint64, key []byte, now int64) (b Ban, ok bool) {
	s := t.shard(uint32(hash))
	s.mu.Lock()
	defer s.mu.Unlock()
	number, ok := s.find(rule, hash, key)
	if !ok || s.entry(number).until <= now {
		return b, false
	}
	return s.memory.Load().ban(s.entry(number)), true
}

// ban returns the newest ban of an entry.
//
// REQUIRES: g.s.mu.
func (g *generation) ban(e *entry) Ban {
	b := Ban{
		Rule: e.rule, Key: bytes.Clone(g.key(e)), Since: e.since, Until: e.until,
		Count: uint64(e.count), Memory: e.memory, Source: SourceManual,
	}
	if e.origin.byRule() {
		b.Source = SourceRule
	}
	if _, ok := e.origin.counted(); ok {
		b.Reason, b.counted = e.origin.reason(), e.origin
		return b
	}
	reason, source := g.texts(e)
	if b.Reason = string(reason); len(source) > 0 {
		b.Source = string(source)
	}
	return b
}

// KeepRules removes the bans of all rules but those for which keep returns true.
func (t *Table) KeepRules(keep func(rule uint32) bool) {
	t.each(func(r ref, e *entry) {
		if !keep(e.rule) {
			r.g.s.remove(r.number())
		}
	})
}

// Counts is how many bans a Table has and had.
type Counts struct {
	Len     int            // held or remembered
	Held    map[uint32]int // held, by rule; rules with none are left out
	Refused uint64         // not begun, for lack of memory
	Dropped uint64         // removed after their end while they were remembered, to free memory
}

// Counts returns these numbers at now, or at the latest time that a shard was used at.
// The cost is that of the rules, and of each ban once after it has ended: bans that hold are
// counted as they begin and end.
func (t *Table) Counts(now int64) Counts {
	t.advance(now)
	c := Counts{
		Len: t.Len(), Held: make(map[uint32]int),
		Refused: t.refused.Load(), Dropped: t.dropped.Load(),
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for rule, n := range s.rules {
			c.Held[rule] += n
		}
		s.mu.Unlock()
	}
	return c
}

// advanceBatch is how many entries are moved under one hold of a lock.
const advanceBatch = 256

// advance moves the entries whose bans have ended by now to the others, in all shards. It
// returns how many entries it has looked at.
func (t *Table) advance(now int64) (looked int) {
	for i := range t.shards {
		s := &t.shards[i]
		for more := true; more; {
			s.mu.Lock()
			n := s.advance(now, advanceBatch)
			s.mu.Unlock()
			looked += n
			more = n == advanceBatch
		}
	}
	return looked
}
