package ratelimit

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"github.com/lately-go/lately/internal/keytable"
)

// A banRoom is what the bans of a banTable are kept in: so many of them, in
// memory taken from a budget. A table has two: one that all bans share, and one
// that only bans added by hand may use.
type banRoom struct {
	most    int64
	n       atomic.Int64
	entries banSlab
	blobs   [blobSizes]banSlab // keys and texts that do not fit an entry, by size
}

// blobSizes is how many sizes of blobs there are: 32 bytes, twice that, and so
// on to maxBlob.
const (
	blobSizes = 6
	blobWords = 4
	maxBlob   = 8 * blobWords << (blobSizes - 1)
)

func (r *banRoom) init(most int, budget *keytable.Budget) {
	bits := uint8(chunkBits)
	if most < smallRoom {
		bits = smallChunkBits
	}
	r.most = int64(most)
	r.entries.init(entryWords, bits, budget)
	for i := range r.blobs {
		r.blobs[i].init(blobWords<<i, bits, budget)
	}
}

// take takes the place of one ban, and reports whether there was one.
func (r *banRoom) take() bool {
	if r.n.Add(1) <= r.most {
		return true
	}
	r.n.Add(-1)
	return false
}

// give gives it back.
func (r *banRoom) give() { r.n.Add(-1) }

// keep copies b into a blob, and returns the blob's place in the room: its
// number under its size. ok is false if there is no memory for it.
//
//	| size, 3 bits | number, 32 bits |
func (r *banRoom) keep(b []byte) (place uint64, ok bool) {
	size := 0
	for len(b) > 8*blobWords<<size {
		size++
	}
	n, ok := r.blobs[size].alloc()
	if !ok {
		return 0, false
	}
	words := r.blobs[size].at(n)
	for i := range words {
		if len(b) == 0 {
			break
		}
		var w [8]byte
		b = b[copy(w[:], b):]
		words[i].Store(binary.LittleEndian.Uint64(w[:]))
	}
	return uint64(size)<<32 | uint64(n), true
}

// blob returns the words of the blob at place.
func (r *banRoom) blob(place uint64) []atomic.Uint64 {
	return r.blobs[place>>32&7].at(uint32(place))
}

// drop gives the blob at place back.
func (r *banRoom) drop(place uint64) { r.blobs[place>>32&7].release(uint32(place)) }

// A banSlab holds blocks of words, known by small numbers. Unlike a keytable.Slab,
// its words may be read by those who do not own the block, and who find out
// afterwards that it was no longer what they looked for; so they are atomic.
// The memory that it has taken from the budget it keeps, and uses again.
type banSlab struct {
	words  uint32 // of a block
	bits   uint8  // log2 of the words that are allocated at once
	budget *keytable.Budget
	chunks atomic.Pointer[[][]atomic.Uint64] // replaced, never changed, when it grows

	mu   sync.Mutex
	next uint32 // blocks that were ever in use
	free uint32 // 0, or one more than a free block, whose last word is this of the next
}

// A chunk is 8 KiB, or in a small room one of the largest blobs. Both are sizes
// that the allocator rounds to nothing else and puts on a cache line.
const (
	chunkBits      = 10
	smallChunkBits = 7
	smallRoom      = 4096 // bans
)

func (s *banSlab) init(words uint32, bits uint8, budget *keytable.Budget) {
	s.words, s.bits, s.budget = words, bits, budget
	s.chunks.Store(new([][]atomic.Uint64))
}

// alloc returns the number of a block whose words may be anything. ok is false
// if the budget does not allow another.
func (s *banSlab) alloc() (n uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.free != 0 {
		n = s.free - 1
		s.free = uint32(s.at(n)[s.words-1].Load())
		return n, true
	}
	if s.next%(1<<s.bits/s.words) == 0 && !s.grow() {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// grow adds a chunk, and charges with it what it adds to the list of chunks,
// which doubles as it grows.
//
// REQUIRES: s.mu.
func (s *banSlab) grow() bool {
	if !s.budget.Take(8<<s.bits+2*24, 0) {
		return false
	}
	chunks := append(*s.chunks.Load(), make([]atomic.Uint64, 1<<s.bits))
	s.chunks.Store(&chunks)
	return true
}

// release gives the block n back.
func (s *banSlab) release(n uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at(n)[s.words-1].Store(uint64(s.free))
	s.free = n + 1
}

// at returns the words of the block n.
func (s *banSlab) at(n uint32) []atomic.Uint64 {
	word := uint64(n) * uint64(s.words)
	chunk, at := (*s.chunks.Load())[word>>s.bits], uint32(word)&(1<<s.bits-1)
	return chunk[at : at+s.words : at+s.words]
}
