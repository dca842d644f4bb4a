package ratelimit

import (
	"math/bits"
	"sync/atomic"

	"github.com/lately-go/lately/internal/keytable"
)

// A banIndex finds an entry from a key's hash. It is an open-addressing table
// whose buckets are cache lines, searched by a byte of each tag at once, with a
// count of what lies beyond; the shape is that of F14 (N. Bronson and X. Shi,
// engineering.fb.com, 2019).
//
// Words change one at a time, and an entry stays where it is, so that a search
// needs no lock. Who adds counts it in the lines that it passes, writes its
// word, and then the byte that makes searches look there; who removes does so
// in the opposite order.
type banIndex struct {
	lines []banLine
	mask  uint32
	paid  *keytable.Budget // what it was taken from
}

// A banLine is one bucket. Word 0 tells whether to look at the others:
//
//	| entries beyond, 8 bits | seven bytes of tags: 0, or 1 and 7 bits |
//
// The count of entries that belong here or before and are kept beyond stays at
// most 255 once it is there. The other words are entries, or 0:
//
//	| tag, 32 bits | number plus one, 32 bits |
type banLine [8]atomic.Uint64

const (
	lineEntries = 7
	firstLines  = 4

	// A line holds at most fullLine entries on average, or crowdedLine if
	// there is no memory for more lines, or brimLine if the last one is added
	// by hand; in halves, so that they are whole numbers.
	fullLine    = 8
	crowdedLine = 11
	brimLine    = 13

	tagMask = (1<<32 - 1) << 32
	spread  = 0x9e3779b1 // odd, 2^32 over the golden ratio

	lowBytes  = 0x0101010101010101
	highBytes = 0x0080808080808080 // of the seven
)

// indexBytes is what an index of that many lines takes, and its shard's heap.
func indexBytes(lines int) int64 { return int64(lines) * (64 + 4*lineEntries) }

// home returns where the search for a key begins. Eight rules share a line,
// since they are often asked about one key together.
func (ix *banIndex) home(hashLow, rule uint32) uint32 { return (hashLow + rule>>3*spread) & ix.mask }

// tagOf returns what stands in a word for a key under a rule.
func tagOf(hash uint64, rule uint32) uint64 { return (hash ^ uint64(rule*spread)<<32) & tagMask }

// tagByte returns the byte of a tag, or of a whole word.
func tagByte(tag uint64) uint64 { return tag>>57 | 0x80 }

// matches returns in which bytes of the head a tag may be, the upper bit of
// each set. There may be others that are not, but never one too few.
func matches(head, tag uint64) uint64 {
	x := head ^ tagByte(tag)*lowBytes
	return (x - lowBytes) &^ x & highBytes
}

// slot returns which word of a line a match is of.
func slot(match uint64) int { return bits.TrailingZeros64(match)/8 + 1 }

// link puts a word where the search from its home finds it. There is room.
func (ix *banIndex) link(word uint64, hashLow, rule uint32) {
	for i := ix.home(hashLow, rule); ; i = (i + 1) & ix.mask {
		line := &ix.lines[i]
		head := line[0].Load()
		if free := ^head & highBytes; free != 0 {
			at := slot(free)
			line[at].Store(word)
			line[0].Store(head | tagByte(word)<<(8*(at-1)))
			return
		}
		if head>>56 < 255 {
			line[0].Store(head + 1<<56)
		}
	}
}

// unlink removes a word that link has put there.
func (ix *banIndex) unlink(number, hashLow, rule uint32) {
	first := ix.home(hashLow, rule)
	for i := first; ; i = (i + 1) & ix.mask {
		at := ix.lines[i].find(number)
		if at == 0 {
			continue
		}
		head := ix.lines[i][0].Load()
		ix.lines[i][0].Store(head &^ (0xff << (8 * (at - 1))))
		ix.lines[i][at].Store(0)
		for ; first != i; first = (first + 1) & ix.mask {
			if head := ix.lines[first][0].Load(); head>>56 < 255 {
				ix.lines[first][0].Store(head - 1<<56)
			}
		}
		return
	}
}

// find returns which word of the line is that of an entry, or 0.
func (l *banLine) find(number uint32) int {
	for at := 1; at < len(l); at++ {
		if uint32(l[at].Load()) == number+1 {
			return at
		}
	}
	return 0
}
