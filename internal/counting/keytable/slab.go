package keytable

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A Slab holds blocks of a fixed number of words, known by small numbers. Its
// methods are safe for concurrent use, and At is a load: the owner of a block's
// number owns its words.
//
// Memory is allocated by the chunk: the first chunks are small, so that a table of
// few keys stays small, and the others large, so that the list of them stays in the
// cache. A block is taken from the first chunk that has one. A chunk without blocks
// in use is given back to the budget, unless it is the last one, and gather moves
// blocks together so that there are such chunks.
type Slab struct {
	words        int
	budget       *Budget
	small, large uint8                      // log2 of the blocks in a small and in a large chunk
	few          uint32                     // blocks in small chunks
	chunks       atomic.Pointer[[][]uint64] // replaced when it grows; nil in the place of one given back

	_ [64]byte // keeps what changes off the line of what is read with each event

	loose atomic.Bool // so many blocks are free that gather is worth while

	mu     sync.Mutex
	state  []slabChunk // of each of chunks
	open   []uint64    // a bit for each of chunks: it has a free block
	low    int         // no earlier word of open has a bit
	gaps   []uint32    // chunks that were given back
	used   uint32      // blocks in use
	blocks uint32      // in all chunks
}

// A slabChunk says which blocks of a chunk are in use.
type slabChunk struct {
	used uint32
	next uint32 // blocks that were ever handed out since it was allocated
	free uint32 // a free block's number + 1, in whose first word the next one's is; 0: none
}

const (
	maxBlocks   = 1 << 27 // of one Slab
	smallChunks = 16
	smallWords  = 4 << 10 / 8 // or one block if that is more
	largeWords  = 64 << 10 / 8
	chunkShare  = 128 // of the budget, a large chunk has no more than one part in so many
)

// slabLists is what a chunk takes in the lists of chunks: they double as they grow.
// It is charged with the first chunk there, and not given back.
const slabLists = 3 * (24 + 12 + 4 + 1)

// NewSlab returns an empty Slab of blocks of that many words, which takes its memory
// from budget with [Budget.TakeKept].
func NewSlab(words int, budget *Budget) *Slab {
	s := new(Slab)
	s.init(words, budget)
	return s
}

func (s *Slab) init(words int, budget *Budget) {
	s.words, s.budget = words, budget
	for words<<(s.small+1) <= smallWords {
		s.small++
	}
	large := max(smallWords, min(largeWords, budget.Limit()/chunkShare/8))
	for int64(words)<<(s.large+1) <= large {
		s.large++
	}
	s.few = smallChunks << s.small
	s.chunks.Store(new([][]uint64))
}

// place returns the chunk of block n and its place in it.
func (s *Slab) place(n uint32) (chunk, place uint32) {
	if n < s.few {
		return n >> s.small, n & (1<<s.small - 1)
	}
	n -= s.few
	return smallChunks + n>>s.large, n & (1<<s.large - 1)
}

// At returns the words of the block n.
func (s *Slab) At(n uint32) []uint64 {
	chunk, place := s.place(n)
	at := int(place) * s.words
	return (*s.chunks.Load())[chunk][at : at+s.words : at+s.words]
}

// first returns the first block of a chunk, and how many it has.
func (s *Slab) first(chunk uint32) (n, size uint32) {
	if chunk < smallChunks {
		return chunk << s.small, 1 << s.small
	}
	return s.few + (chunk-smallChunks)<<s.large, 1 << s.large
}

// bytes returns how many bytes a chunk takes.
func (s *Slab) bytes(chunk uint32) int64 {
	_, size := s.first(chunk)
	return Allocated(8 * int64(size) * int64(s.words))
}

// Alloc returns the number of a block, whose words are anything. ok is false if
// the budget does not allow another.
func (s *Slab) Alloc() (n uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	chunk, ok := s.lowest()
	if !ok {
		if chunk, ok = s.grow(); !ok {
			return 0, false
		}
	}
	return s.takeFrom(chunk), true
}

// lowest returns the first chunk that has a free block.
//
// REQUIRES: s.mu.
func (s *Slab) lowest() (chunk uint32, ok bool) {
	for ; s.low < len(s.open); s.low++ {
		if bit := s.open[s.low]; bit != 0 {
			return uint32(s.low*64 + bits.TrailingZeros64(bit)), true
		}
	}
	return 0, false
}

// takeFrom takes a block of a chunk that has a free one.
//
// REQUIRES: s.mu.
func (s *Slab) takeFrom(chunk uint32) (n uint32) {
	in := &s.state[chunk]
	first, size := s.first(chunk)
	if in.free != 0 {
		n = in.free - 1
		in.free = uint32(s.At(n)[0])
	} else {
		n = first + in.next
		in.next++
	}
	s.used++
	if in.used++; in.used == size {
		s.open[chunk/64] &^= 1 << (chunk % 64)
	}
	s.noteLoose()
	return n
}

// noteLoose sets s.loose if an eighth of the blocks is free, and several chunks of
// them.
//
// REQUIRES: s.mu.
func (s *Slab) noteLoose() {
	free := s.blocks - s.used
	if loose := free > 2<<s.large && free > s.blocks/8; loose != s.loose.Load() {
		s.loose.Store(loose)
	}
}

// grow adds a chunk, in the place of one that was given back if there is any.
//
// REQUIRES: s.mu.
func (s *Slab) grow() (chunk uint32, ok bool) {
	chunks, lists := *s.chunks.Load(), int64(0)
	if last := len(s.gaps) - 1; last >= 0 {
		chunk = s.gaps[last]
	} else {
		chunk, lists = uint32(len(chunks)), slabLists
	}
	first, size := s.first(chunk)
	if first+size > maxBlocks {
		return 0, false
	}
	if !s.budget.TakeKept(s.bytes(chunk) + lists) {
		return 0, false
	}
	memory := make([]uint64, int(size)*s.words)
	if lists == 0 {
		s.gaps = s.gaps[:len(s.gaps)-1]
		chunks[chunk] = memory // nobody reads it
	} else {
		chunks = append(chunks, memory)
		s.chunks.Store(&chunks)
		s.state = append(s.state, slabChunk{})
		if chunk%64 == 0 {
			s.open = append(s.open, 0)
		}
	}
	s.setOpen(chunk)
	s.blocks += size
	return chunk, true
}

func (s *Slab) setOpen(chunk uint32) {
	s.open[chunk/64] |= 1 << (chunk % 64)
	s.low = min(s.low, int(chunk/64))
}

// Free gives the block n back.
func (s *Slab) Free(n uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free(n)
}

// free is Free.
//
// REQUIRES: s.mu.
func (s *Slab) free(n uint32) {
	chunk, _ := s.place(n)
	in := &s.state[chunk]
	s.At(n)[0] = uint64(in.free)
	in.free = n + 1
	s.used--
	in.used--
	s.setOpen(chunk)
	if _, size := s.first(chunk); in.used == 0 && s.blocks-s.used > size {
		s.drop(chunk)
	}
	s.noteLoose()
}

// drop gives a chunk that has no block in use back to the budget.
//
// REQUIRES: s.mu.
func (s *Slab) drop(chunk uint32) {
	(*s.chunks.Load())[chunk], s.state[chunk] = nil, slabChunk{}
	s.open[chunk/64] &^= 1 << (chunk % 64)
	s.gaps = append(s.gaps, chunk)
	_, size := s.first(chunk)
	s.blocks -= size
	s.budget.GiveKept(s.bytes(chunk))
}

// gather moves the block n, which the caller owns, to an earlier chunk if there is
// a free block, and returns its number.
func (s *Slab) gather(n uint32) uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, _ := s.place(n)
	to, ok := s.lowest()
	if !ok || to >= from {
		return n
	}
	m := s.takeFrom(to)
	copy(s.At(m), s.At(n))
	s.free(n)
	return m
}

// Len returns the number of blocks in use.
func (s *Slab) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.used)
}

// Release gives all memory back to the budget. No block may be used any more.
func (s *Slab) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, chunk := range *s.chunks.Load() {
		if s.budget.GiveKept(slabLists); chunk != nil {
			s.budget.GiveKept(s.bytes(uint32(i)))
		}
	}
	s.chunks.Store(new([][]uint64))
	s.state, s.open, s.gaps, s.low, s.used, s.blocks = nil, nil, nil, 0, 0, 0
}
