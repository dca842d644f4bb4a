package ban

import (
	"bytes"
	"cmp"
	"iter"
	"slices"
)

// scan yields the entries that are in use, with their numbers. It takes no lock: an entry
// that is added or removed meanwhile may be left out, and one that changes may be seen as
// it was or as it is. If the ident of an entry is the same after other words were read,
// they belong to one key.
//
// Bans that begin one after another tend to have neighbouring entries; so it visits chunks
// that are far apart, for which a list of the newest changes less often.
func (t *Table) scan() iter.Seq2[uint32, *entry] {
	const stride = 0x9e3779b1 // odd
	return func(yield func(uint32, *entry) bool) {
		chunks := *t.entries.chunks.Load()
		perChunk := uint32(1) << t.entries.bits / entryWords
		wrap := uint32(1)
		for int(wrap) < len(chunks) {
			wrap *= 2
		}
		for i := range wrap {
			c := i * stride % wrap
			if int(c) >= len(chunks) {
				continue
			}
			for j := range perChunk {
				e := (*entry)(chunks[c][j*entryWords:])
				if inUse(e.ident()) && !yield(c*perChunk+j, e) {
					return
				}
			}
		}
	}
}

// A ref is an entry as it was seen without a lock.
type ref struct {
	time   int64
	ident  uint64
	number uint32
}

// lock locks the shard of an entry, if it is still that of the ref's key; ok is false if
// it is not, and nothing is locked then.
func (t *Table) lock(r ref) (s *shard, e *entry, ok bool) {
	e = t.entry(r.number)
	s = t.shard(e.hashLow())
	s.mu.Lock()
	// An entry with that ident now had it when its hash was read. It may have ended
	// before, after scan had looked.
	if !inUse(r.ident) || e.ident() != r.ident {
		s.mu.Unlock()
		return nil, nil, false
	}
	return s, e, true
}

// All yields the bans that hold at now, by end, rule and key. No lock is held while the
// loop's body runs: a ban that begins or ends meanwhile may be left out, but each is whole.
// The cost is 24 bytes a ban and a sort.
func (t *Table) All(now int64) iter.Seq[Ban] {
	return func(yield func(Ban) bool) {
		var refs []ref
		for number, e := range t.scan() {
			ident := e.ident()
			if until := e.until(); now < until {
				refs = append(refs, ref{until, ident, number})
			}
		}
		slices.SortFunc(refs, func(a, b ref) int { return cmp.Compare(a.time, b.time) })
		for len(refs) > 0 {
			n := 1
			for n < len(refs) && refs[n].time == refs[0].time {
				n++
			}
			together := t.fetch(refs[:n], now)
			slices.SortFunc(together, func(a, b Ban) int {
				return cmp.Or(cmp.Compare(a.Rule, b.Rule), bytes.Compare(a.Key, b.Key))
			})
			for _, b := range together {
				if !yield(b) {
					return
				}
			}
			refs = refs[n:]
		}
	}
}

// fetch returns those of the bans that still hold at now.
func (t *Table) fetch(refs []ref, now int64) (bans []Ban) {
	for _, r := range refs {
		if s, e, ok := t.lock(r); ok {
			if now < e.until() {
				bans = append(bans, t.ban(e))
			}
			s.mu.Unlock()
		}
	}
	return bans
}

// Get returns the ban of key under rule that holds at now.
func (t *Table) Get(rule uint32, hash uint64, key []byte, now int64) (b Ban, ok bool) {
	s := t.shard(uint32(hash))
	s.mu.Lock()
	defer s.mu.Unlock()
	number, ok := s.find(rule, hash, key)
	if !ok || t.entry(number).until() <= now {
		return b, false
	}
	return t.ban(t.entry(number)), true
}

// ban returns the newest ban of an entry.
//
// REQUIRES: the lock of its shard.
func (t *Table) ban(e *entry) Ban {
	o := e.origin()
	b := Ban{
		Rule: e.rule(), Key: t.appendKey(nil, e[entryKey].Load(), e[entryKey+1].Load()),
		Since: e.since(), Until: e.until(), Count: e.count(), Reason: o.reason(), Source: SourceRule,
	}
	if o.manual() {
		b.Source = SourceManual
	}
	if place, reason, source := o.text(); reason+source > 0 {
		text := string(t.texts.append(nil, place, reason+source))
		b.Reason = text[:reason]
		if source > 0 {
			b.Source = text[reason:]
		}
	}
	return b
}

// KeepRules removes the bans of all rules but those for which keep returns true, and
// returns how many.
func (t *Table) KeepRules(keep func(rule uint32) bool) (removed int) {
	for number, e := range t.scan() {
		ident := e.ident()
		if keep(uint32(ident)) {
			continue
		}
		if s, _, ok := t.lock(ref{ident: ident, number: number}); ok {
			s.remove(number)
			s.mu.Unlock()
			removed++
		}
	}
	return removed
}

// Counts is how many bans a Table has and had.
type Counts struct {
	Len     int            // held or remembered
	Held    map[uint32]int // held, by rule; rules with none are left out
	Begun   uint64         // begun by rules
	Refused uint64         // not begun, for lack of memory
	Dropped uint64         // removed after their end while they were remembered, to free memory
}

// Counts returns these numbers at now, or at the latest time that the table was used at.
// The cost is that of the rules, and of each ban once after it has ended: bans that hold are
// counted as they begin and end.
func (t *Table) Counts(now int64) Counts {
	t.advance(now)
	c := Counts{
		Len: t.Len(), Held: make(map[uint32]int),
		Begun: t.begun.Load(), Refused: t.refused.Load(), Dropped: t.dropped.Load(),
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
		s.mu.Lock()
		now = max(now, s.now)
		s.mu.Unlock()
	}
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
