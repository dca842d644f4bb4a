package ban

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"

	"github.com/lately-go/lately/internal/keytable"
)

// A slab allocates blocks of a number of words, identified by small numbers. Readers may
// read a block that was released, and detect it afterwards; so the words are atomic.
// Memory is taken from budgets chunk by chunk, reused, and not returned.
type slab struct {
	words  uint32                            // of a block
	bits   uint8                             // log2 of the words of a chunk
	chunks atomic.Pointer[[][]atomic.Uint64] // replaced, never changed, when it grows

	mu      sync.Mutex
	shared  pool   // for all bans
	reserve pool   // for manual bans that find nothing in shared
	of      []bool // by chunk: whether it belongs to the reserve
}

// A pool is a part of the blocks of a slab.
type pool struct {
	budget     *keytable.Budget
	most, used uint32
	next, end  uint32 // blocks of its newest chunk that were never used
	free       uint32 // 0, or one more than a free block, whose last word is this of the next
}

// A chunk is 8 KiB, or in a small table one of the largest blocks. Both are sizes that the
// allocator does not round up and aligns to a cache line.
const (
	chunkBits      = 10
	smallChunkBits = 7
	smallTable     = 4096 // bans
)

func (s *slab) init(words uint32, bits uint8, shared, reserve pool) {
	s.words, s.bits, s.shared, s.reserve = words, bits, shared, reserve
	s.chunks.Store(new([][]atomic.Uint64))
}

// alloc returns the number of a block with arbitrary contents. ok is false if no block is
// left; manual is whether it may be one of the reserve.
func (s *slab) alloc(manual bool) (n uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok = s.allocIn(&s.shared, false); !ok && manual {
		n, ok = s.allocIn(&s.reserve, true)
	}
	return n, ok
}

func (s *slab) allocIn(p *pool, reserve bool) (n uint32, ok bool) {
	switch {
	case p.used >= p.most:
		return 0, false
	case p.free != 0:
		n = p.free - 1
		p.free = uint32(s.at(n)[s.words-1].Load())
	case p.next < p.end || s.grow(p, reserve):
		n = p.next
		p.next++
	default:
		return 0, false
	}
	p.used++
	return n, true
}

// grow adds a chunk, and charges it with its part of the list of chunks, which doubles as
// it grows.
func (s *slab) grow(p *pool, reserve bool) bool {
	if !p.budget.Take(8<<s.bits+2*24, 0) {
		return false
	}
	chunks := append(*s.chunks.Load(), make([]atomic.Uint64, 1<<s.bits))
	s.chunks.Store(&chunks)
	s.of = append(s.of, reserve)
	blocks := uint32(1) << s.bits / s.words
	p.end = uint32(len(chunks)) * blocks
	p.next = p.end - blocks
	return true
}

// release frees the block n, and reports whether it is one of the reserve.
func (s *slab) release(n uint32) (reserve bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.shared
	if reserve = s.of[uint64(n)*uint64(s.words)>>s.bits]; reserve {
		p = &s.reserve
	}
	s.at(n)[s.words-1].Store(uint64(p.free))
	p.free = n + 1
	p.used--
	return reserve
}

// used returns the number of blocks in use.
func (s *slab) used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.shared.used) + int(s.reserve.used)
}

// at returns the words of the block n.
func (s *slab) at(n uint32) []atomic.Uint64 {
	word := uint64(n) * uint64(s.words)
	chunk, at := (*s.chunks.Load())[word>>s.bits], uint32(word)&(1<<s.bits-1)
	return chunk[at : at+s.words : at+s.words]
}

// texts stores keys and texts that do not fit an entry, in blocks of 32 bytes, twice that,
// and so on up to 1 KiB. A place is that of a block:
//
//	| size, 3 bits | number, 32 bits |
type texts [6]slab

const smallestText = 4 // words

func (x *texts) init(bits uint8, shared, reserve *keytable.Budget) {
	for i := range x {
		x[i].init(smallestText<<i, bits, pool{budget: shared, most: math.MaxUint32}, pool{budget: reserve, most: math.MaxUint32})
	}
}

// add stores b, of at most 1 KiB. ok is false if there is no memory.
func (x *texts) add(b []byte, manual bool) (place uint64, ok bool) {
	size := 0
	for len(b) > 8*smallestText<<size {
		size++
	}
	n, ok := x[size].alloc(manual)
	if !ok {
		return 0, false
	}
	words := x[size].at(n)
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

func (x *texts) words(place uint64) []atomic.Uint64 { return x[place>>32&7].at(uint32(place)) }

func (x *texts) release(place uint64) { x[place>>32&7].release(uint32(place)) }

// append appends the n bytes at place.
func (x *texts) append(dst []byte, place uint64, n int) []byte {
	end := len(dst) + n
	words := x.words(place)
	for i := 0; len(dst) < end; i++ {
		dst = binary.LittleEndian.AppendUint64(dst, words[i].Load())
	}
	return dst[:end]
}

// equal compares a key with the one as long at place.
func (x *texts) equal(place uint64, key []byte) bool {
	words := x.words(place)
	for ; len(key) >= 8; key, words = key[8:], words[1:] {
		if words[0].Load() != binary.LittleEndian.Uint64(key) {
			return false
		}
	}
	var tail [8]byte
	return copy(tail[:], key) == 0 || words[0].Load() == binary.LittleEndian.Uint64(tail[:])
}
