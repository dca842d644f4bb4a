package ban

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/lately-go/lately/internal/heap"
	"github.com/lately-go/lately/internal/keytable"
)

// A generation is the memory of a shard: its entries, an index of them, their order in two
// heaps, and the bytes that do not fit an entry. When it is full, the shard copies what is
// in use to a new one.
//
// Searches take no lock: an entry belongs to one key for as long as the generation exists,
// and is written before it is added to the index, from which nothing is removed. A search
// in a generation that was replaced meanwhile finds what was true when it began.
type generation struct {
	s       *shard
	entries []entry
	index   []line
	text    []byte

	// Under the lock.
	entriesUsed, textUsed int
	held                  heap.Heap[uint32] // the entries of that state, by when the ban ends
	ended                 heap.Heap[uint32] // the others that are in use, by when they expire
}

// A line is a cache line of the index. It is filled from the start; what does not fit is in
// the next line. Word 0 has a byte of the tag of each entry, with the upper bit set, so that
// all are compared at once. It is written last. The others are 0, or
//
//	| tag, 32 bits | number of the entry plus one, 32 bits |
//
// The layout is that of F14 (N. Bronson and X. Shi, engineering.fb.com, 2019).
type line [1 + lineEntries]atomic.Uint64

const (
	lineEntries = 7

	lowBytes  = 0x01010101010101
	highBytes = 0x80808080808080
)

// tagByte returns the byte of a tag.
func tagByte(tag uint32) uint64 { return uint64(tag>>3&0x7f | 0x80) }

// matches returns the bytes of word 0 that may be that of tag, with the upper bit of each
// set. False matches occur, missed ones do not.
func matches(head uint64, tag uint32) uint64 {
	x := head ^ tagByte(tag)*lowBytes
	return (x - lowBytes) &^ x & highBytes
}

// isFull reports whether a line with that word 0 is full.
func isFull(head uint64) bool { return head>>(8*lineEntries-1) != 0 }

const (
	maxShortKey = keytable.MaxShortKey
	longKey     = 0xff // instead of the length of a short key

	spread = 0x9e3779b1 // odd, 2^32 over the golden ratio

	entryBytes = 64 + 2*4 // with its places in the heaps
)

// indexLines returns the number of lines of the index of that many entries.
func indexLines(entries int) int { return entries/4 + 1 }

func generationBytes(entries, text int) int64 {
	return int64(entries)*entryBytes + int64(indexLines(entries))*64 + int64(text)
}

func newGeneration(s *shard, entries, text int) *generation {
	g := &generation{
		s: s, entries: make([]entry, entries), index: make([]line, indexLines(entries)), text: make([]byte, text),
	}
	moved := func(number uint32, place int) { g.entries[number].place = uint32(place) }
	g.held = heap.New(func(a, b uint32) bool { return g.entries[a].until < g.entries[b].until }, moved)
	g.ended = heap.New(func(a, b uint32) bool { return g.entries[a].expires() < g.entries[b].expires() }, moved)
	g.held.Grow(entries)
	g.ended.Grow(entries)
	return g
}

// heap returns the heap of the entries of that state.
func (g *generation) heap(s state) *heap.Heap[uint32] {
	if s == held {
		return &g.held
	}
	return &g.ended
}

// inUse returns the number of entries in use.
func (g *generation) inUse() int { return len(g.held.Items()) + len(g.ended.Items()) }

// tagOf returns the tag of a key under a rule. Eight rules differ in the lower bits only,
// since they are often looked up for one key together.
func tagOf(hashLow, rule uint32) uint32 { return (hashLow+rule>>3*spread)<<3 | rule&7 }

// home returns where the search for a key begins. The upper bits of its tag are those that
// the keys of a shard have in common.
func (g *generation) home(tag uint32) int {
	return int(uint64(tag<<3) * uint64(len(g.index)) >> 32)
}

// find returns the number of the entry of a key.
func (g *generation) find(tag, rule uint32, key []byte) (number uint32, ok bool) {
	for i := g.home(tag); ; i = g.after(i) {
		l := &g.index[i]
		head := l[0].Load()
		for match := matches(head, tag); match != 0; match &= match - 1 {
			w := l[bits.TrailingZeros64(match)/8+1].Load()
			if uint32(w>>32) != tag {
				continue
			}
			number := uint32(w) - 1
			if e := &g.entries[number]; e.rule == rule && g.has(e, key) {
				return number, true
			}
		}
		if !isFull(head) {
			return 0, false
		}
	}
}

// after returns the line that follows the i-th.
func (g *generation) after(i int) int {
	if i++; i == len(g.index) {
		return 0
	}
	return i
}

// add adds an entry for a key that has none. There must be space for it.
//
// REQUIRES: g.s.mu.
func (g *generation) add(tag, rule uint32, key []byte) (number uint32) {
	number = uint32(g.entriesUsed)
	g.entriesUsed++
	e := &g.entries[number]
	e.until, e.rule = noBan, rule
	g.setKey(e, key)
	i := g.home(tag)
	for isFull(g.index[i][0].Load()) {
		i = g.after(i)
	}
	l := &g.index[i]
	head := l[0].Load()
	n := (bits.Len64(head) + 7) / 8
	l[1+n].Store(uint64(tag)<<32 | uint64(number+1))
	l[0].Store(head | tagByte(tag)<<(8*n))
	return number
}

// words yields the words of the index that refer to entries.
func (g *generation) words(yield func(uint64) bool) {
	for i := range g.index {
		for j := range lineEntries {
			w := g.index[i][1+j].Load()
			if w == 0 {
				break
			}
			if !yield(w) {
				return
			}
		}
	}
}

// setKey stores the key of an entry: up to maxShortKey bytes and their number in the last
// byte; or the place and the length of a longer one, with longKey in the last byte.
func (g *generation) setKey(e *entry, key []byte) {
	if len(key) <= maxShortKey {
		copy(e.key[:], key)
		e.key[maxShortKey] = byte(len(key))
		return
	}
	binary.LittleEndian.PutUint32(e.key[:], g.addText(key))
	binary.LittleEndian.PutUint16(e.key[4:], uint16(len(key)))
	e.key[maxShortKey] = longKey
}

// has reports whether that is the key of an entry. Short keys are compared as two words.
func (g *generation) has(e *entry, key []byte) bool {
	if len(key) > maxShortKey {
		return e.key[maxShortKey] == longKey && bytes.Equal(g.key(e), key)
	}
	a, b := keytable.ShortKey(unsafe.String(unsafe.SliceData(key), len(key))) // only read
	return binary.LittleEndian.Uint64(e.key[:]) == a && binary.LittleEndian.Uint64(e.key[8:]) == b
}

// key returns the key of an entry, which must not be changed.
func (g *generation) key(e *entry) []byte {
	if n := e.key[maxShortKey]; n <= maxShortKey {
		return e.key[:n]
	}
	at := binary.LittleEndian.Uint32(e.key[:])
	return g.text[at:][:binary.LittleEndian.Uint16(e.key[4:])]
}

// addText stores b and returns its place. There must be space for it.
//
// REQUIRES: g.s.mu.
func (g *generation) addText(b []byte) (place uint32) {
	place = uint32(g.textUsed)
	g.textUsed += copy(g.text[place:], b)
	return place
}

// reason returns the stored texts of an entry, or nothing for one whose origin says all.
func (g *generation) texts(e *entry) (reason, source []byte) {
	place, n, m := e.origin.text()
	return g.text[place:][:n], g.text[place+n:][:m]
}

// keyText returns how many bytes of text a key takes.
func keyText(key []byte) int {
	if len(key) <= maxShortKey {
		return 0
	}
	return len(key)
}
