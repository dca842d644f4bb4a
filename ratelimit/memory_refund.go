package ratelimit

import (
	"context"
	"math"

	"github.com/lately-go/lately/internal/keytable"

	"github.com/lately-go/lately/internal/store"
)

// Refund implements [store.Store]. What is counted in a sketch stays there.
func (m *memory) Refund(_ context.Context, r *adjustment) error {
	r.Taken = 0
	rs := m.rules.Load()
	if rs.set != r.Set {
		return store.ErrStale
	}
	if !rs.rules[r.Rule].refund(r, m.stored(r.Key)) {
		return store.ErrStale
	}
	return nil
}

// refund gives back what r says. It reports false if the table has moved, and has
// done nothing.
func (mr *memoryRule) refund(r *adjustment, stored []byte) bool {
	rs := mr.records
	if len(rs.limits) == 0 {
		return true
	}
	record, _, state := rs.lockStored(stored)
	switch state {
	case keytable.Moved:
		return false
	case keytable.Absent:
		return true // forgotten, or in a sketch
	}
	defer record.Unlock()
	w := record.Words()
	now := max(r.Now, keytable.Time(w[wordNewest]))
	w[wordNewest] = keytable.Stamp(now)
	r.Now = now
	if record.Flag() { // what was cut would be given back as well
		return true
	}
	taken := uint64(math.MaxUint64)
	for i := range rs.judging(now) {
		m := &rs.limits[i]
		m.Advance(w[m.at:], m.blocks, now)
		taken = min(taken, m.RefundOldest(w[m.at:], m.blocks, now, r.N))
	}
	r.Taken = taken
	return true
}
