package window

import (
	"math"
	"sync/atomic"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/ring"
)

// A tableWindow is one window of a [Table]: where it lies in a record, and how
// counts are kept there. A record has, for each window, the newest slot that
// its key was counted in, the stamp, and the counts of a ring of slots up to
// that one: the window's and the partly expired one before them.
//
// Three forms hold them. All numbers of slots in the first two are relative to
// the base of the record's group, so that 16 bits do.
//
//	two counters, for a window of one slot, one word:
//	| stamp, 16 bits | odd slot, 24 bits | even slot, 24 bits |
//	narrow, for any other window, in lanes of 16 bits:
//	| stamp | count | count | ...
//	full, in the table's slab; a record moves there, with all its windows,
//	when a count outgrows its lane. The first word is its number there:
//	stamp, count, count, ... of 64 bits each
//
// The slot s is at position s mod size of its ring. Bases are multiples of
// size, so relative numbers give the same position.
type tableWindow struct {
	window Window
	width  int64 // of a slot
	slots  int64
	size   int64 // of the ring: slots + 1
	magic  uint64
	at     int // the first word in a record
	end    int // the word after the last
	fullAt int // the first word in a full record
	index  int // among the windows of the table

	newest atomic.Int64 // the newest slot of the table, or one before all times
}

const (
	pairBits = 24
	pairMask = 1<<pairBits - 1
	laneBits = 16
	laneMask = 1<<laneBits - 1

	// maxRel is the largest number of a slot relative to its base.
	maxRel = laneMask

	// skip in place of a slot: the event is not counted in the window.
	skip = math.MinInt64
)

func (w *tableWindow) init(window Window, index, at, fullAt int) {
	w.window, w.index, w.at, w.fullAt = window, index, at, fullAt
	w.width = int64(window.Slot)
	w.slots = int64(window.Span / window.Slot)
	w.size = w.slots + 1
	w.magic = 1<<32/uint64(w.size) + 1
	w.end = at + 1
	if !w.pair() {
		w.end = at + int(w.size+4)/4
	}
	w.newest.Store(w.before())
}

// pair reports whether w is kept as two counters.
func (w *tableWindow) pair() bool { return w.size == 2 }

// most is the largest count of a slot that is not in a full record.
func (w *tableWindow) most() uint64 {
	if w.pair() {
		return pairMask
	}
	return laneMask
}

// before is a slot before all times.
func (w *tableWindow) before() int64 { return ring.FloorDiv(minTime, w.width) - 1 }

// reach moves the newest slot of the table on to t, and returns the slot of t and the
// newest slot.
func (w *tableWindow) reach(t int64) (slot, newest int64) {
	newest = w.newest.Load()
	if uint64(t-newest*w.width) < uint64(w.width) { // spares the division
		return newest, newest
	}
	return w.reachOther(t)
}

// reachOther is reach of a slot that is not the newest.
func (w *tableWindow) reachOther(t int64) (slot, newest int64) {
	slot = ring.FloorDiv(t, w.width)
	newest = w.newest.Load()
	for newest < slot {
		if w.newest.CompareAndSwap(newest, slot) {
			return slot, slot
		}
		newest = w.newest.Load()
	}
	return slot, newest
}

// pos returns the position of a slot, given relative to a base, from -size to
// maxRel: the remainder by multiplication, see docs/dev/proofs.md.
func (w *tableWindow) pos(rel int64) int {
	x := uint64(rel + w.size)
	return int(x - x*w.magic>>32*uint64(w.size))
}

// stamp returns the newest slot of w in r.
func (tb *Table) stamp(w *tableWindow, r keytable.Record) int64 {
	words := r.Words()
	if r.Flag() {
		return int64(tb.full.At(uint32(words[0]))[w.fullAt])
	}
	return r.Base()[w.index] + w.stamp(words)
}

// stamp returns the newest slot in the words of a record that is not full, relative to
// the base.
func (w *tableWindow) stamp(words []uint64) int64 {
	if w.pair() {
		return int64(words[w.at] >> (2 * pairBits))
	}
	return int64(words[w.at] & laneMask)
}

// count returns the count at the position p in the words of a record that is not full.
func (w *tableWindow) count(words []uint64, p int) uint64 {
	if w.pair() {
		return words[w.at] >> (p * pairBits) & pairMask
	}
	p++ // the stamp is before the counts
	return words[w.at+p/4] >> (p % 4 * laneBits) & laneMask
}

// sum returns the counts of the slots first to last that r has.
func (tb *Table) sum(w *tableWindow, r keytable.Record, first, last int64) (sum uint64) {
	words := r.Words()
	stamp := tb.stamp(w, r)
	first, last = max(first, stamp-w.slots), min(last, stamp)
	if first > last {
		return 0
	}
	p := w.pos(first - r.Base()[w.index])
	if r.Flag() {
		counts := tb.full.At(uint32(words[0]))[w.fullAt+1:][:w.size]
		p = w.fullPos(first)
		for s := first; s <= last; s++ {
			sum += min(counts[p], math.MaxUint64-sum)
			if p++; p == len(counts) {
				p = 0
			}
		}
		return sum
	}
	for s := first; s <= last; s++ {
		sum += w.count(words, p)
		if p++; p == int(w.size) {
			p = 0
		}
	}
	return sum
}

func setLane(words []uint64, l int, v uint64) {
	shift := l % 4 * laneBits
	words[l/4] = words[l/4]&^(laneMask<<shift) | v<<shift
}

// fullPos is pos for a slot that is not relative.
func (w *tableWindow) fullPos(slot int64) int {
	return int(slot - ring.FloorDiv(slot, w.size)*w.size)
}

// add counts n in a slot of w, given relative to the base. It reports whether n
// fitted and the slot is not older than the ring, and counts nothing if not.
func (w *tableWindow) add(words []uint64, rel int64, n uint64) (fits bool) {
	if w.pair() {
		return addPair(&words[w.at], rel, n)
	}
	words = words[w.at:w.end]
	if stamp := int64(words[0] & laneMask); rel > stamp {
		w.advance(words, stamp, rel)
	} else if rel < stamp-w.slots {
		return false
	}
	l := w.pos(rel) + 1
	p, shift := &words[l/4], l%4*laneBits
	if n > laneMask-*p>>shift&laneMask {
		return false
	}
	*p += n << shift
	return true
}

// advance moves the ring in narrow words on from stamp to rel.
func (w *tableWindow) advance(words []uint64, stamp, rel int64) {
	if rel-stamp >= w.size {
		clear(words)
	} else {
		p := w.pos(stamp)
		for range rel - stamp {
			if p++; p == int(w.size) {
				p = 0
			}
			setLane(words, p+1, 0)
		}
	}
	words[0] = words[0]&^laneMask | uint64(rel)
}

// addPair is add for two counters in the word p.
func addPair(p *uint64, rel int64, n uint64) (fits bool) {
	word := *p
	switch d := rel - int64(word>>(2*pairBits)); {
	case d > 1:
		word = uint64(rel) << (2 * pairBits)
	case d == 1:
		keep := uint64(pairMask) << ((rel - 1) & 1 * pairBits)
		word = uint64(rel)<<(2*pairBits) | word&keep
	case d < -1:
		return false
	}
	shift := rel & 1 * pairBits
	fits = n <= pairMask-word>>shift&pairMask
	if fits {
		word += n << shift
	}
	*p = word
	return fits
}

// addFull is add for a full record, with a slot that is not relative. What does
// not fit is left out.
func (w *tableWindow) addFull(full []uint64, slot int64, n uint64) (fits bool) {
	stamp := int64(full[w.fullAt])
	counts := full[w.fullAt+1:][:w.size]
	if slot-stamp >= w.size {
		clear(counts)
	} else {
		for s := stamp + 1; s <= slot; s++ {
			counts[w.fullPos(s)] = 0
		}
	}
	full[w.fullAt] = uint64(max(stamp, slot))
	p := &counts[w.fullPos(slot)]
	free := math.MaxUint64 - *p
	*p += min(n, free)
	return n <= free
}
