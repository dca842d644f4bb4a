package ban

import (
	"sync/atomic"
	"time"
)

// Counts is how many bans a Table has and had.
type Counts struct {
	Len     int            // held or remembered
	Held    map[uint32]int // held, by rule; rules with none are left out; must not be changed
	Refused uint64         // not begun, for lack of memory
	Dropped uint64         // removed after their end while they were remembered, to free memory
}

// heldBans is how many bans of each rule held at a time.
type heldBans struct {
	at    int64
	rules map[uint32]int
}

// Counting the bans that hold costs some 100 ns for each ban. If there are many, they are
// counted again only after countEvery for each.
const (
	manyBans   = 10_000
	countEvery = 10 * time.Microsecond
)

// Counts returns these numbers at now. It looks at all bans, but if there are more than 10,000,
// only once in 10 µs for each: Held may be that old.
func (t *Table) Counts(now int64) Counts {
	c := Counts{Len: t.Len(), Held: t.heldAt(now), Refused: t.refused.Load()}
	for in := range t.tables {
		c.Dropped += in.Stats().Evicted
	}
	return c
}

func (t *Table) heldAt(now int64) map[uint32]int {
	if last, n := t.held.Load(), t.Len(); last != nil && n > manyBans && uint64(now-last.at) < uint64(n)*uint64(countEvery) {
		return last.rules
	}
	h := &heldBans{at: now, rules: make(map[uint32]int)}
	for in := range t.tables {
		for _, r := range in.All() {
			if e := entry(r.Words()); now < e.until() {
				h.rules[e.rule()]++
			}
		}
	}
	t.held.Store(h)
	return h.rules
}

// Of returns how many bans of a rule hold or are remembered, now and later.
func (t *Table) Of(rule uint32) *atomic.Int64 {
	n, ok := t.rules.Load(rule)
	if !ok {
		n, _ = t.rules.LoadOrStore(rule, new(atomic.Int64))
	}
	return n.(*atomic.Int64)
}
