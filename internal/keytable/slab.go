package keytable

import (
	"sync"
	"sync/atomic"
)

// A Slab holds blocks of a fixed number of words, known by small numbers. It
// takes its memory from a [Budget] by the chunk, and gives a chunk back when none
// of its blocks is in use. Its methods are safe for concurrent use, and At is a
// load: who owns a block's number owns its words.
type Slab struct {
	words  int
	chunk  uint32 // blocks that are allocated at once
	budget *Budget

	chunks atomic.Pointer[[][]uint64] // replaced when it grows; nil in the place of one given back

	mu    sync.Mutex
	state []slabChunk // of each of chunks
	open  []uint32    // those that are listed
	gaps  []uint32    // those that were given back
	n     int         // blocks in use
}

// A slabChunk says which blocks of a chunk are in use.
type slabChunk struct {
	used   uint32
	free   uint32 // a free block's number + 1, in whose first word the next one's is; 0: none
	listed bool   // among the open ones: it has a free block, or had one
}

// slabBytes is how much is allocated at once, or one block if that is more.
const slabBytes = 4 << 10

// slabLists is what a place in the lists of chunks takes: they double as they
// grow. It is charged with the first chunk there, and not given back.
const slabLists = 3 * (24 + 12 + 4 + 4)

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
	for last := len(s.open) - 1; last >= 0; last-- {
		c := &s.state[s.open[last]]
		if c.free != 0 {
			return s.take(c), true
		}
		c.listed = false
		s.open = s.open[:last]
	}
	i, ok := s.grow()
	if !ok {
		return 0, false
	}
	return s.take(&s.state[i]), true
}

// take returns a free block of c, all zeros.
//
// REQUIRES: s.mu.
func (s *Slab) take(c *slabChunk) uint32 {
	n := c.free - 1
	c.free = uint32(s.At(n)[0])
	clear(s.At(n))
	c.used++
	s.n++
	return n
}

// grow adds a chunk, all of it free, in the place of one that was given back if
// there is any.
//
// REQUIRES: s.mu.
func (s *Slab) grow() (i uint32, ok bool) {
	lists, size := int64(slabLists), int(s.chunk)*s.words
	if len(s.gaps) > 0 {
		lists = 0
	}
	reserve := atMost(int64(size) * 8)
	if !s.budget.Take(reserve+lists, 0) {
		return 0, false
	}
	chunk := rounded[uint64](size)
	s.budget.Give(reserve - int64(cap(chunk))*8)
	i = s.put(chunk)
	first := i * s.chunk
	for b := range s.chunk - 1 {
		s.At(first + b)[0] = uint64(first + b + 2)
	}
	if !s.state[i].listed {
		s.open = append(s.open, i)
	}
	s.state[i] = slabChunk{free: first + 1, listed: true}
	return i, true
}

// put gives chunk a place. One that was given back is nobody's, so it is changed
// where it is.
//
// REQUIRES: s.mu.
func (s *Slab) put(chunk []uint64) uint32 {
	chunks := *s.chunks.Load()
	if last := len(s.gaps) - 1; last >= 0 {
		i := s.gaps[last]
		s.gaps = s.gaps[:last]
		chunks[i] = chunk
		return i
	}
	s.state = append(s.state, slabChunk{})
	chunks = append(chunks, chunk)
	s.chunks.Store(&chunks)
	return uint32(len(chunks) - 1)
}

// Free gives the block n back.
func (s *Slab) Free(n uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := n / s.chunk
	c := &s.state[i]
	s.n--
	if c.used--; c.used == 0 {
		s.drop(i)
		return
	}
	s.At(n)[0] = uint64(c.free)
	c.free = n + 1
	if !c.listed {
		c.listed = true
		s.open = append(s.open, i)
	}
}

// drop gives the chunk i back, of which no block is in use.
//
// REQUIRES: s.mu.
func (s *Slab) drop(i uint32) {
	chunks := *s.chunks.Load()
	bytes := int64(cap(chunks[i])) * 8
	chunks[i], s.state[i].free = nil, 0
	s.gaps = append(s.gaps, i)
	s.budget.Give(bytes)
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
	return s.n
}
