package hotkey

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"github.com/lately-go/lately/internal/keytable"
)

// A table is what a Detector keeps of the keys of one rule: the end of the last
// hold, as a keytable.Stamp and 0 if the key was never hot, and a log of the
// last times. A key has one time at least, its newest.
type table struct {
	*keytable.Table
	budget *keytable.Budget
	log    *keytable.Blocks
	span   int64

	newest atomic.Int64  // about the newest time at which a key was added
	lost   atomic.Uint64 // times that were dropped within the span
}

const (
	wordUntil = 0
	wordLog   = 1
	keyWords  = 2

	// inlineTimes is how many times lie in a record, which then has 64 bytes.
	inlineTimes = 3

	// logShare is which share of the budget is kept for longer logs, if a rule needs
	// them.
	logShare = 2

	// sweepEvery is how many times without memory move the sweep on, which looks at
	// some hundred keys.
	sweepEvery = 256

	unbounded = 1 << 62 // the limit of NoBudget
)

// newTable returns the empty table of r. Tables of one seed agree on hashes.
func newTable(seed maphash.Seed, r *Rule, budget *keytable.Budget, reserve int64) (*table, error) {
	t := &table{budget: budget, span: int64(r.Span)}
	t.newest.Store(-1 << 63)
	// The event that makes a key hot need not be in the log before.
	t.log = keytable.NewBlocks(max(int(r.Threshold)-1, 1), inlineTimes, budget)
	var err error
	t.Table, err = keytable.New(seed, keytable.Config{
		Words: wordLog + t.log.Words(), KeyWords: keyWords, Budget: budget, Reserve: reserve, Policy: t,
		Gather: func(r keytable.Record) { t.log.Gather(r.Words()[wordLog:]) },
	})
	if err != nil {
		return nil, fmt.Errorf("hotkey: %w", err)
	}
	return t, nil
}

// add returns the locked record of key at now, which it adds if there is none. ok is
// false if there is no memory for it.
func (t *table) add(hash uint64, key string, now int64) (r keytable.Record, ok bool) {
	r, state := t.LockOrAddAt(t.Prefetch(hash), hash, key)
	if state == keytable.Found {
		return r, true
	}
	if now > t.newest.Load() {
		t.newest.Store(now)
	}
	if state == keytable.Absent {
		r, state = t.Add(hash, key)
	}
	return r, state != keytable.NoMemory
}

// Base has nothing to do: the times in records are absolute.
func (t *table) Base(*[keytable.MaxBases]int64) {}

// Rebase has nothing to do either.
func (t *table) Rebase(keytable.Record, *[keytable.MaxBases]int64) {}

// Expired reports whether the key has no event in the span and was never hot. Without
// a budget it is kept, so that an event that is even earlier counts at its newest.
func (t *table) Expired(r keytable.Record) bool {
	w := r.Words()
	return w[wordUntil] == 0 && t.budget.Limit() != unbounded && t.log.Newest(w[wordLog:]) <= t.newest.Load()-t.span
}

// Weight orders keys by whether they are hot, how many times they have in their
// logs, and then by their newest time.
func (t *table) Weight(r keytable.Record) uint64 {
	const (
		hot       = 1 << 62
		timeBits  = 40
		timeShift = 64 - timeBits
	)
	w, now := r.Words(), t.newest.Load()
	newest := t.log.Newest(w[wordLog:])
	weight := keytable.Stamp(newest) >> timeShift
	if newest > now-t.span {
		weight |= uint64(t.log.Len(w[wordLog:])) << timeBits
	}
	if now < keytable.Time(w[wordUntil]) {
		weight |= hot
	}
	return weight
}

// Drop gives the block of r's log back.
func (t *table) Drop(r keytable.Record) { t.log.Clear(r.Words()[wordLog:]) }
