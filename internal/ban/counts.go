package ban

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Counts is how many bans a Table has and had.
type Counts struct {
	Len     int            // held or remembered
	Held    map[uint32]int // held, by rule; rules with none are left out
	Refused uint64         // not begun, for lack of memory
	Dropped uint64         // removed after their end while they were remembered, to free memory
}

// counts counts bans as they begin. Those that end are found later, by looking at all.
type counts struct {
	rules  sync.Map     // the *ruleCounts of each rule
	next   atomic.Int64 // no ban that is counted as held ends before
	looked atomic.Int64 // when all were looked at
}

type ruleCounts struct {
	bans atomic.Int64 // held or remembered
	held atomic.Int64
}

func (c *counts) of(rule uint32) *ruleCounts {
	n, ok := c.rules.Load(rule)
	if !ok {
		n, _ = c.rules.LoadOrStore(rule, new(ruleCounts))
	}
	return n.(*ruleCounts)
}

// Of returns how many bans of a rule hold or are remembered, now and later.
func (t *Table) Of(rule uint32) *atomic.Int64 { return &t.counts.of(rule).bans }

// count counts the ban of e, whose end has changed.
func (t *Table) count(e entry, now int64) {
	if e.until() <= now {
		return
	}
	if !e.held() {
		e[4] |= heldBit
		t.counts.of(e.rule()).held.Add(1)
	}
	t.counts.endsAt(e.until())
}

// endsAt notes that a ban that is counted as held ends then.
func (c *counts) endsAt(until int64) {
	for was := c.next.Load(); until < was && !c.next.CompareAndSwap(was, until); {
		was = c.next.Load()
	}
}

// uncount counts e as gone.
func (t *Table) uncount(e entry) {
	n := t.counts.of(e.rule())
	n.bans.Add(-1)
	if e.held() {
		n.held.Add(-1)
	}
}

// A look at all bans costs some 100 ns for each of them. If there are many, the next one is
// after lookEvery for each.
const (
	manyBans  = 10_000
	lookEvery = 10 * time.Microsecond
)

// Counts returns these numbers at now, or at the latest time of an earlier call. It looks at
// all bans if one has ended since the last call; if there are more than 10,000, it does so
// only after 10 µs for each, and bans that have ended since are counted as held.
func (t *Table) Counts(now int64) Counts {
	c := Counts{Len: t.Len(), Held: make(map[uint32]int), Refused: t.refused.Load()}
	wait := int64(0)
	if c.Len > manyBans {
		wait = int64(c.Len) * int64(lookEvery)
	}
	if now >= t.counts.next.Load() && now-wait >= t.counts.looked.Load() {
		t.counts.looked.Store(now)
		t.countEnded(now)
	}
	t.counts.rules.Range(func(rule, n any) bool {
		if held := n.(*ruleCounts).held.Load(); held > 0 {
			c.Held[rule.(uint32)] = int(held)
		}
		return true
	})
	for in := range t.tables {
		c.Dropped += in.Stats().Evicted
	}
	return c
}

// countEnded finds the bans that have ended.
func (t *Table) countEnded(now int64) {
	t.counts.next.Store(math.MaxInt64)
	for _, r := range t.records {
		switch e := entry(r.Words()); {
		case !e.held():
		case now < e.until():
			t.counts.endsAt(e.until())
		default:
			e[4] &^= heldBit
			t.counts.of(e.rule()).held.Add(-1)
		}
	}
}
