package shard

import (
	"sync"
	"sync/atomic"
)

// A Slab holds blocks of a fixed number of words, known by small numbers. It
// takes its memory from a [Budget] and keeps it; blocks given back are used
// again. Its methods are safe for concurrent use, and At is a load: who owns a
// block's number owns its words.
type Slab struct {
	words  int
	chunk  uint32 // blocks that are allocated at once
	budget *Budget
	chunks atomic.Pointer[[][]uint64] // replaced, never changed, when it grows

	mu   sync.Mutex
	next uint32
	free []uint32
}

// slabBytes is how much is allocated at once, or one block if that is more.
const slabBytes = 4 << 10

// NewSlab returns an empty Slab of blocks of that many words.
func NewSlab(words int, budget *Budget) *Slab {
	s := &Slab{words: words, chunk: uint32(max(slabBytes/(8*words), 1)), budget: budget}
	s.chunks.Store(new([][]uint64))
	return s
}

// Alloc returns the number of a block of zeros. ok is false if the budget does
// not allow another.
func (s *Slab) Alloc() (n uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
		clear(s.At(n))
		return n, true
	}
	if s.next%s.chunk == 0 && !s.grow() {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// grow adds a chunk. What the lists of chunks and of free blocks take is
// charged with it: they double as they grow.
//
// REQUIRES: s.mu.
func (s *Slab) grow() bool {
	lists := 3*24 + int64(s.chunk)*4*2
	size := int(s.chunk) * s.words
	reserve := atMost(int64(size) * 8)
	if !s.budget.Take(reserve+lists, 0) {
		return false
	}
	chunk := rounded[uint64](size)
	s.budget.Give(reserve - int64(cap(chunk))*8)
	chunks := append(*s.chunks.Load(), chunk)
	s.chunks.Store(&chunks)
	return true
}

// Free gives the block n back.
func (s *Slab) Free(n uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free = append(s.free, n)
}

// At returns the words of the block n.
func (s *Slab) At(n uint32) []uint64 {
	chunk := (*s.chunks.Load())[n/s.chunk]
	at := int(n%s.chunk) * s.words
	return chunk[at : at+s.words : at+s.words]
}

// Len returns the number of blocks in use.
func (s *Slab) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.next) - len(s.free)
}
