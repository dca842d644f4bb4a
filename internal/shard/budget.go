package shard

import "sync/atomic"

// A Budget is a number of bytes that several owners of memory share. It is
// taken from before memory is allocated and given back after it was let go of,
// so that what is in use never exceeds it. Its methods are safe for concurrent
// use.
type Budget struct {
	limit int64
	used  atomic.Int64
	kept  atomic.Int64 // of used, by those for whom others leave some
}

// NewBudget returns a Budget of that many bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Take takes n bytes if they are there and leave at least keep for those who take
// with TakeKept, what these have taken included, and reports whether it did.
func (b *Budget) Take(n, keep int64) bool {
	for {
		used := b.used.Load()
		if n > b.limit-used-max(keep-b.kept.Load(), 0) {
			return false
		}
		if b.used.CompareAndSwap(used, used+n) {
			return true
		}
	}
}

// TakeKept is Take for those for whom others leave some.
func (b *Budget) TakeKept(n int64) bool {
	if !b.Take(n, 0) {
		return false
	}
	b.kept.Add(n)
	return true
}

// Give gives n bytes back.
func (b *Budget) Give(n int64) { b.used.Add(-n) }

// GiveKept gives n bytes back that were taken with TakeKept.
func (b *Budget) GiveKept(n int64) {
	b.kept.Add(-n)
	b.used.Add(-n)
}

// Used returns the bytes taken.
func (b *Budget) Used() int64 { return b.used.Load() }

// Limit returns what b was made with.
func (b *Budget) Limit() int64 { return b.limit }

// atMost bounds what the allocator makes of n bytes: it rounds small objects up
// to a size class, by less than a fifth or 16 bytes, and those above 32 KiB to
// pages of 8 KiB.
func atMost(n int64) int64 {
	if n > 32<<10 {
		return n + 8<<10
	}
	return n + n/5 + 16
}

// rounded returns a slice of n zeros or some more: as many as the allocator
// would give the room to anyway.
func rounded[T uint64 | uint32 | byte](n int) []T {
	s := append([]T(nil), make([]T, n)...)
	return s[:cap(s)]
}
