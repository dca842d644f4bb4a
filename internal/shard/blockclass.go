package shard

import (
	"sync"
	"sync/atomic"
)

// A blockClass holds blocks of one size for [Blocks], known by small numbers.
// Its methods are safe for concurrent use, and at is a load: who owns a block's
// number owns its words.
//
// The first chunks of memory are small, so that a table of few keys stays small,
// and the others large, so that the list of them stays in the cache.
type blockClass struct {
	words        int
	budget       *Budget
	small, large uint8                      // log2 of the blocks in a small and in a large chunk
	few          uint32                     // blocks in small chunks
	chunks       atomic.Pointer[[][]uint64] // replaced, never changed, when it grows

	_ [64]byte // keeps what changes off the line of what is read with each event

	mu   sync.Mutex
	next uint32 // blocks ever handed out
	used uint32 // blocks in use
	free uint32 // a free block's number + 1, in whose first word the next one's is; 0: none
}

const (
	maxBlocks   = 1 << 27 // of one class
	smallChunks = 16
	smallWords  = 4 << 10 / 8 // or one block if that is more
	largeWords  = 64 << 10 / 8
)

func (c *blockClass) init(words int, budget *Budget) {
	c.words, c.budget = words, budget
	for words<<(c.small+1) <= smallWords {
		c.small++
	}
	for words<<(c.large+1) <= largeWords {
		c.large++
	}
	c.few = smallChunks << c.small
	c.chunks.Store(new([][]uint64))
}

// place returns the chunk of block n and its place in it.
func (c *blockClass) place(n uint32) (chunk, place uint32) {
	if n < c.few {
		return n >> c.small, n & (1<<c.small - 1)
	}
	n -= c.few
	return smallChunks + n>>c.large, n & (1<<c.large - 1)
}

// at returns the words of block n.
func (c *blockClass) at(n uint32) []uint64 {
	chunk, place := c.place(n)
	at := int(place) * c.words
	return (*c.chunks.Load())[chunk][at : at+c.words : at+c.words]
}

// take returns the number of a block, whose words are anything. ok is false if
// the budget does not allow another.
func (c *blockClass) take() (n uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.free != 0 {
		n = c.free - 1
		c.free = uint32(c.at(n)[0])
		c.used++
		return n, true
	}
	if c.next == maxBlocks {
		return 0, false
	}
	if chunk, _ := c.place(c.next); int(chunk) == len(*c.chunks.Load()) && !c.grow() {
		return 0, false
	}
	c.next++
	c.used++
	return c.next - 1, true
}

// grow adds a chunk. What the list of chunks takes is charged with it: it
// doubles as it grows.
//
// REQUIRES: c.mu.
func (c *blockClass) grow() bool {
	const list = 3 * 24
	chunks := *c.chunks.Load()
	size := c.words << c.large
	if len(chunks) < smallChunks {
		size = c.words << c.small
	}
	reserve := atMost(int64(size) * 8)
	if !c.budget.TakeKept(reserve + list) {
		return false
	}
	chunk := rounded[uint64](size)
	c.budget.GiveKept(reserve - int64(cap(chunk))*8)
	chunks = append(chunks, chunk)
	c.chunks.Store(&chunks)
	return true
}

// give gives the block n back.
func (c *blockClass) give(n uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at(n)[0] = uint64(c.free)
	c.free = n + 1
	c.used--
}

// len returns the number of blocks in use.
func (c *blockClass) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.used)
}
