package access

import (
	"cmp"
	"sync/atomic"
)

// A Budget bounds the memory of requests and replies in transit, over all connections
// of all listeners: requests that have not been received completely, and replies that
// have not been read. Small buffers, which each connection has anyway, are not charged.
//
// It is safe for concurrent use. Make one with [NewBudget]. It satisfies resp.Budget.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// DefaultBudget is the size of a Budget that is not given one: 64 MiB.
const DefaultBudget = 64 << 20

// NewBudget returns a Budget of limit bytes; 0 means DefaultBudget.
func NewBudget(limit int64) *Budget { return &Budget{limit: cmp.Or(limit, DefaultBudget)} }

// Take takes n bytes, and reports whether there were so many left.
func (b *Budget) Take(n int) bool {
	if b.used.Add(int64(n)) <= b.limit {
		return true
	}
	b.used.Add(-int64(n))
	return false
}

// Give gives n bytes back.
func (b *Budget) Give(n int) { b.used.Add(-int64(n)) }

// Scarce reports whether more than half of b is taken. Then memory that would only
// improve speed is not given out.
func (b *Budget) Scarce() bool { return b.used.Load() > b.limit/2 }

// Stats returns the size of b and how much of it is taken.
func (b *Budget) Stats() (limit, used int64) { return b.limit, b.used.Load() }
