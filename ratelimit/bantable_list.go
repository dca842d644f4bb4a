package ratelimit

import (
	"bytes"
	"cmp"
	"iter"
	"maps"
	"slices"
)

// each yields the bans that hold at now, the one that ends first first, and
// those that end together by rule and key. It locks one shard at a time and
// none while the loop's body runs: what changes meanwhile may be in it or not,
// but each ban is whole. The cost is 24 bytes a ban and a sort.
func (t *banTable) each(now int64) iter.Seq[heldBan] {
	return func(yield func(heldBan) bool) {
		refs := t.refs(now)
		slices.SortFunc(refs, func(a, b banRef) int { return cmp.Compare(a.until, b.until) })
		for len(refs) > 0 {
			n := 1
			for n < len(refs) && refs[n].until == refs[0].until {
				n++
			}
			together := t.fetch(refs[:n], now)
			slices.SortFunc(together, func(a, b heldBan) int {
				return cmp.Or(cmp.Compare(a.rule, b.rule), bytes.Compare(a.key, b.key))
			})
			for _, h := range together {
				if !yield(h) {
					return
				}
			}
			refs = refs[n:]
		}
	}
}

// A banRef is where a ban was.
type banRef struct {
	until  int64
	ident  uint64 // of its entry
	number uint32
	shard  uint32
}

// refs returns where the bans are that hold at now.
func (t *banTable) refs(now int64) []banRef {
	var refs []banRef
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for number := range s.all() {
			if e := t.entry(number); now < e.until() {
				refs = append(refs, banRef{e.until(), e[entryIdent].Load(), number, uint32(i)})
			}
		}
		s.mu.Unlock()
	}
	return refs
}

// fetch returns those of the bans that are still there.
func (t *banTable) fetch(refs []banRef, now int64) []heldBan {
	bans := make([]heldBan, 0, len(refs))
	for _, ref := range refs {
		s := &t.shards[ref.shard]
		s.mu.Lock()
		if e := t.entry(ref.number); e[entryIdent].Load() == ref.ident && now < e.until() {
			bans = append(bans, t.held(e))
		}
		s.mu.Unlock()
	}
	return bans
}

// held returns the ban of an entry.
//
// REQUIRES: the lock of its shard.
func (t *banTable) held(e *banEntry) heldBan {
	h := heldBan{
		rule: e.rule(), key: t.keyOf(nil, e), since: e.since(), until: e.until(), count: e.count(),
		reason: e.cause().reason(), source: sourceRule,
	}
	if e.cause().manual() {
		h.source = sourceManual
	}
	if place, reason, source := e.cause().text(); reason+source > 0 {
		text := string(t.appendBlob(nil, place, reason+source))
		h.reason = text[:reason]
		if source > 0 {
			h.source = text[reason:]
		}
	}
	return h
}

// banCounts is how many bans a table has, and had.
type banCounts struct {
	known   int            // held or remembered
	held    map[uint32]int // held, by rule; rules with none are not in it
	begun   uint64         // begun by rules
	refused uint64         // not begun for want of room
	dropped uint64         // forgotten early, after their end, for want of room
}

// counts returns these numbers at now. The cost is a look at every entry whose ban is
// over, with its shard locked: those that hold are counted as they come and go.
func (t *banTable) counts(now int64) banCounts {
	c := banCounts{held: make(map[uint32]int), begun: t.begun.Load(), refused: t.refused.Load(), dropped: t.dropped.Load()}
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		c.known += s.entries()
		for rule, n := range s.rules {
			c.held[rule] += n
		}
		for i := range s.heaps {
			s.heaps[i].over(t, now, 0, func(e *banEntry) { c.held[e.rule()]-- })
		}
		s.mu.Unlock()
	}
	maps.DeleteFunc(c.held, func(_ uint32, n int) bool { return n == 0 })
	return c
}

// removeIf removes the entries for which gone returns true: those of rules that
// no longer exist, and those that are no longer remembered. It returns how many.
// A shard is locked while its entries are looked at.
func (t *banTable) removeIf(gone func(e *banEntry) bool) int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for _, number := range slices.Collect(s.all()) {
			if gone(t.entry(number)) {
				s.remove(number)
				n++
			}
		}
		s.mu.Unlock()
	}
	return n
}

// keepRules removes the bans of all rules but those for which keep returns
// true.
func (t *banTable) keepRules(keep func(rule uint32) bool) int {
	return t.removeIf(func(e *banEntry) bool { return !keep(e.rule()) })
}

// expire removes the bans that are over and no longer remembered at now.
func (t *banTable) expire(now int64) int {
	return t.removeIf(func(e *banEntry) bool { return e.forgotten(now) })
}
