package keytable

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// A blockClass holds blocks of one size for [Blocks], known by small numbers.
// Its methods are safe for concurrent use, and at is a load: who owns a block's
// number owns its words.
//
// Memory is allocated by the chunk: the first chunks are small, so that a table of
// few keys stays small, and the others large, so that the list of them stays in the
// cache. A block is taken from the first chunk that has one. A chunk without blocks
// in use is given back to the budget, and gather moves blocks together so that there
// are such chunks.
type blockClass struct {
	words        int
	budget       *Budget
	small, large uint8                      // log2 of the blocks in a small and in a large chunk
	few          uint32                     // blocks in small chunks
	chunks       atomic.Pointer[[][]uint64] // replaced when it grows; nil in the place of one given back

	_ [64]byte // keeps what changes off the line of what is read with each event

	loose atomic.Bool // so many blocks are free that gather is worth while

	mu     sync.Mutex
	state  []blockChunk // of each of chunks
	open   []uint64     // a bit for each of chunks: it has a free block
	low    int          // no earlier word of open has a bit
	gaps   []uint32     // chunks that were given back
	used   uint32       // blocks in use
	blocks uint32       // in all chunks
}

// A blockChunk says which blocks of a chunk are in use.
type blockChunk struct {
	used uint32
	next uint32 // blocks that were ever handed out since it was allocated
	free uint32 // a free block's number + 1, in whose first word the next one's is; 0: none
}

const (
	maxBlocks   = 1 << 27 // of one class
	smallChunks = 16
	smallWords  = 4 << 10 / 8 // or one block if that is more
	largeWords  = 64 << 10 / 8
	chunkShare  = 128 // of the budget, a large chunk has no more than one part in so many
)

func (c *blockClass) init(words int, budget *Budget) {
	c.words, c.budget = words, budget
	for words<<(c.small+1) <= smallWords {
		c.small++
	}
	large := max(smallWords, min(largeWords, budget.Limit()/chunkShare/8))
	for int64(words)<<(c.large+1) <= large {
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

// first returns the first block of a chunk, and how many it has.
func (c *blockClass) first(chunk uint32) (n, size uint32) {
	if chunk < smallChunks {
		return chunk << c.small, 1 << c.small
	}
	return c.few + (chunk-smallChunks)<<c.large, 1 << c.large
}

// take returns the number of a block, whose words are anything. ok is false if
// the budget does not allow another.
func (c *blockClass) take() (n uint32, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	chunk, ok := c.lowest()
	if !ok {
		if chunk, ok = c.grow(); !ok {
			return 0, false
		}
	}
	return c.takeFrom(chunk), true
}

// lowest returns the first chunk that has a free block.
//
// REQUIRES: c.mu.
func (c *blockClass) lowest() (chunk uint32, ok bool) {
	for ; c.low < len(c.open); c.low++ {
		if bit := c.open[c.low]; bit != 0 {
			return uint32(c.low*64 + bits.TrailingZeros64(bit)), true
		}
	}
	return 0, false
}

// takeFrom takes a block of a chunk that has a free one.
//
// REQUIRES: c.mu.
func (c *blockClass) takeFrom(chunk uint32) (n uint32) {
	s := &c.state[chunk]
	first, size := c.first(chunk)
	if s.free != 0 {
		n = s.free - 1
		s.free = uint32(c.at(n)[0])
	} else {
		n = first + s.next
		s.next++
	}
	c.used++
	if s.used++; s.used == size {
		c.open[chunk/64] &^= 1 << (chunk % 64)
	}
	c.noteLoose()
	return n
}

// noteLoose sets c.loose if an eighth of the blocks is free, and several chunks of
// them.
//
// REQUIRES: c.mu.
func (c *blockClass) noteLoose() {
	free := c.blocks - c.used
	if loose := free > 2<<c.large && free > c.blocks/8; loose != c.loose.Load() {
		c.loose.Store(loose)
	}
}

// blockLists is what a chunk takes in the lists of chunks: they double as they grow.
const blockLists = 3 * (24 + 12 + 4 + 1)

// grow adds a chunk, in the place of one that was given back if there is any. What
// the lists take is charged with a new one, and not given back.
//
// REQUIRES: c.mu.
func (c *blockClass) grow() (chunk uint32, ok bool) {
	chunks, lists := *c.chunks.Load(), int64(0)
	if last := len(c.gaps) - 1; last >= 0 {
		chunk = c.gaps[last]
	} else {
		chunk, lists = uint32(len(chunks)), blockLists
	}
	first, size := c.first(chunk)
	if first+size > maxBlocks {
		return 0, false
	}
	words := int(size) * c.words
	reserve := atMost(int64(words) * 8)
	if !c.budget.TakeKept(reserve + lists) {
		return 0, false
	}
	memory := rounded[uint64](words)
	c.budget.GiveKept(reserve - int64(cap(memory))*8)
	if lists == 0 {
		c.gaps = c.gaps[:len(c.gaps)-1]
		chunks[chunk] = memory // nobody reads it
	} else {
		chunks = append(chunks, memory)
		c.chunks.Store(&chunks)
		c.state = append(c.state, blockChunk{})
		if chunk%64 == 0 {
			c.open = append(c.open, 0)
		}
	}
	c.setOpen(chunk)
	c.blocks += size
	return chunk, true
}

func (c *blockClass) setOpen(chunk uint32) {
	c.open[chunk/64] |= 1 << (chunk % 64)
	c.low = min(c.low, int(chunk/64))
}

// give gives the block n back.
func (c *blockClass) give(n uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveBack(n)
}

// giveBack is give.
//
// REQUIRES: c.mu.
func (c *blockClass) giveBack(n uint32) {
	chunk, _ := c.place(n)
	s := &c.state[chunk]
	c.at(n)[0] = uint64(s.free)
	s.free = n + 1
	c.used--
	s.used--
	c.setOpen(chunk)
	if _, size := c.first(chunk); s.used == 0 && c.blocks-c.used > size {
		c.drop(chunk)
	}
	c.noteLoose()
}

// drop gives a chunk back to the budget, of which no block is in use.
//
// REQUIRES: c.mu.
func (c *blockClass) drop(chunk uint32) {
	chunks := *c.chunks.Load()
	bytes := int64(cap(chunks[chunk])) * 8
	chunks[chunk], c.state[chunk] = nil, blockChunk{}
	c.open[chunk/64] &^= 1 << (chunk % 64)
	c.gaps = append(c.gaps, chunk)
	_, size := c.first(chunk)
	c.blocks -= size
	c.budget.GiveKept(bytes)
}

// gather moves the block n, which the caller owns, to an earlier chunk if there is
// a free block, and returns its number.
func (c *blockClass) gather(n uint32) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	from, _ := c.place(n)
	to, ok := c.lowest()
	if !ok || to >= from {
		return n
	}
	m := c.takeFrom(to)
	copy(c.at(m), c.at(n))
	c.giveBack(n)
	return m
}

// len returns the number of blocks in use.
func (c *blockClass) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.used)
}
