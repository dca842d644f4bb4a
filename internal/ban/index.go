package ban

import (
	"math/bits"
	"sync/atomic"

	"github.com/lately-go/lately/internal/keytable"
)

// An index finds the entry of a key by its hash. It is an open-addressing table whose
// buckets are cache lines: the tags of a line are compared at once, and a count says
// whether entries overflowed to the next lines. The layout is that of F14 (N. Bronson and
// X. Shi, engineering.fb.com, 2019).
//
// Words change one at a time and an entry keeps its place, so a search needs no lock. To
// add an entry, link counts it in the lines that it passes, writes its word, and then its
// tag byte, which makes it visible. unlink does so in the opposite order.
type index struct {
	lines []line
	mask  uint32
	paid  *keytable.Budget // which paid for it
}

// A line is one bucket. Word 0 says whether to look at the others:
//
//	| overflow, 8 bits | seven tag bytes: 0, or 1 and 7 bits |
//
// The overflow is the number of entries that hash to this line or one before it and are
// stored behind it. Once it has reached 255 it stays. The other words are entries, or 0:
//
//	| tag, 32 bits | number of the entry plus one, 32 bits |
type line [8]atomic.Uint64

const (
	lineEntries = 7
	firstLines  = 4

	// A line has at most fullLine entries on average, or crowdedLine if there is no
	// memory for more lines, or brimLine for manual bans; in halves, to be whole numbers.
	fullLine    = 8
	crowdedLine = 11
	brimLine    = 13

	tagMask = (1<<32 - 1) << 32
	spread  = 0x9e3779b1 // odd, 2^32 over the golden ratio

	lowBytes  = 0x0101010101010101
	highBytes = 0x0080808080808080 // of the seven
)

// indexBytes returns the memory of an index of that many lines, and of the heaps of its
// shard.
func indexBytes(lines int) int64 { return int64(lines) * (64 + 4*lineEntries) }

// home returns the line where the search for a key begins. Eight rules share a line, since
// they are often looked up for one key together.
func (ix *index) home(hashLow, rule uint32) uint32 { return (hashLow + rule>>3*spread) & ix.mask }

// tagOf returns the tag of a key under a rule.
func tagOf(hash uint64, rule uint32) uint64 { return (hash ^ uint64(rule*spread)<<32) & tagMask }

// tagByte returns the tag byte of a tag, or of a whole word.
func tagByte(tag uint64) uint64 { return tag>>57 | 0x80 }

// matches returns the bytes of word 0 that may be the tag byte of tag, with the upper bit
// of each set. False matches occur, missed ones do not.
func matches(head, tag uint64) uint64 {
	x := head ^ tagByte(tag)*lowBytes
	return (x - lowBytes) &^ x & highBytes
}

// slot returns the word of a line that a match is of.
func slot(match uint64) int { return bits.TrailingZeros64(match)/8 + 1 }

// link adds a word. There must be a free slot.
func (ix *index) link(word uint64, hashLow, rule uint32) {
	for i := ix.home(hashLow, rule); ; i = (i + 1) & ix.mask {
		l := &ix.lines[i]
		head := l[0].Load()
		if free := ^head & highBytes; free != 0 {
			at := slot(free)
			l[at].Store(word)
			l[0].Store(head | tagByte(word)<<(8*(at-1)))
			return
		}
		if head>>56 < 255 {
			l[0].Store(head + 1<<56)
		}
	}
}

// unlink removes the word of an entry.
func (ix *index) unlink(number, hashLow, rule uint32) {
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
func (l *line) find(number uint32) int {
	for at := 1; at < len(l); at++ {
		if uint32(l[at].Load()) == number+1 {
			return at
		}
	}
	return 0
}
