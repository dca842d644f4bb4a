package keytable

import (
	"slices"
	"sync/atomic"
)

// A Budget is a number of bytes that several owners of memory share. It is
// taken from before memory is allocated and given back after it was let go of,
// so that what is in use never exceeds it. Its methods are safe for concurrent
// use.
type Budget struct {
	limit int64
	used  atomic.Int64
	kept  atomic.Int64 // of used, taken with TakeKept
}

// NewBudget returns a Budget of that many bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Take takes n bytes if they are free, and reports whether it did. It leaves keep bytes
// to TakeKept, less what was taken with that already.
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

// TakeKept is Take, but takes the bytes too that other calls of Take leave.
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

// The allocator rounds objects of up to largestSize bytes up to a size class, by
// less than a fifth or 16 bytes, and larger ones to a multiple of allocPage.
const (
	allocPage   = 8 << 10
	largestSize = 32 << 10
)

// sizeClasses are some of the allocator's, close enough together to choose sizes
// by. A test compares them with the allocator.
var sizeClasses = [...]uint16{
	32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 448, 512, 640, 768, 896,
	1024, 1280, 1536, 1792, 2048, 2304, 2688, 3072, 3456, 4096, 4864, 5376, 6144, 6784, 8192,
	9472, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 20480, 21760, 24576, 27264, 28672, 32768,
}

// Allocated bounds what the allocator makes of n bytes. It is 0 for 0.
func Allocated(n int64) int64 {
	switch {
	case n <= 0:
		return 0
	case n > largestSize:
		return (n + allocPage - 1) / allocPage * allocPage
	}
	i, _ := slices.BinarySearch(sizeClasses[:], uint16(n))
	return int64(sizeClasses[i])
}
