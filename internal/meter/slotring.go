package meter

import (
	"math/bits"
)

// A slotRing is a window of slots in a record. Its words are
//
//	0  number of the newest slot
//	1  sum of all slots, 48 bits | how many slots the oldest is before the
//	   newest, 8 bits | position of the newest, 8 bits
//	2… counts of 8, 16 or 32 bits, by position, so many to a word
//
// Slots outside [oldest, newest] are zero, and the sum is kept as slots come
// and go, so that a decision never adds up slots. A count has more bits than N
// needs: what is admitted never fills one. A count that is full stays full, is
// not weighed and gives nothing back, for nobody knows what did not fit.
type slotRing struct {
	slots
	size     int64  // positions: the slots of the span, and the one before
	lgPer    uint8  // log2 of the counts in a word
	lgBits   uint8  // log2 of the bits of a count
	full     uint64 // the largest count
	weighted bool   // whether the oldest slot is weighed
}

const (
	ringNewest = iota
	ringState
	ringCounts
)

const (
	ringSumShift  = 16
	ringBackShift = 8
	ringByte      = 1<<8 - 1
)

func newSlotRing(n uint64, span, resolution int64) slotRing {
	r := slotRing{slots: slots{span: span, resolution: resolution}, size: 61, lgBits: 5}
	if span%60 != 0 {
		r.size = 65 // 64 divides every whole millisecond
	}
	r.width = span / (r.size - 1)
	switch bits.Len64(n + 1) { // a count of n is not full
	case 0, 1, 2, 3, 4, 5, 6, 7, 8:
		r.lgBits = 3
	case 9, 10, 11, 12, 13, 14, 15, 16:
		r.lgBits = 4
	}
	r.lgPer = 6 - r.lgBits
	r.full = 1<<(1<<r.lgBits) - 1
	return r
}

func (r *slotRing) words() int { return ringCounts + int(r.size-1)>>r.lgPer + 1 }

// advance drops the slots that have left the window at t, makes the slot of t the
// newest, and returns how much is used.
func (r *slotRing) advance(w []uint64, t int64) uint64 {
	state, newest := w[ringState], int64(w[ringNewest])
	oldest := newest - int64(state>>ringBackShift&ringByte)
	if !r.holds(newest, t) || r.first(t) >= (oldest+1)*r.width {
		r.move(w, t)
	}
	return r.used(w, t)
}

// used returns how much is used at t, to which w has been advanced.
func (r *slotRing) used(w []uint64, t int64) uint64 {
	sum := w[ringState] >> ringSumShift
	if !r.weighted || sum == 0 {
		return sum
	}
	oldest := r.oldest(w)
	count := r.count(w, oldest)
	if count == r.full { // a part of it may be less than that part of what there was
		return sum
	}
	return sum - count + r.weigh(count, oldest, t)
}

func (r *slotRing) oldest(w []uint64) int64 {
	return int64(w[ringNewest]) - int64(w[ringState]>>ringBackShift&ringByte)
}

// move is advance when a slot comes or goes.
func (r *slotRing) move(w []uint64, t int64) {
	newest := int64(w[ringNewest])
	oldest := r.oldest(w)
	sum := w[ringState] >> ringSumShift
	keep := r.number(r.first(t))
	now := r.number(t)
	if sum != 0 {
		now = max(now, newest)
	}
	for ; sum != 0 && oldest < keep && oldest <= newest; oldest++ {
		sum -= r.empty(w, oldest)
	}
	if sum == 0 { // all counts are zero: any position will do
		w[ringNewest], w[ringState] = uint64(now), 0
		return
	}
	position := int64(w[ringState] & ringByte)
	position = r.wrap(position + now - newest)
	w[ringNewest] = uint64(now)
	w[ringState] = sum<<ringSumShift | uint64(now-oldest)<<ringBackShift | uint64(position)
}

// charge adds cost to the newest slot.
func (r *slotRing) charge(w []uint64, cost uint64) {
	word, shift := r.place(w, int64(w[ringNewest]))
	added := min(cost, r.full-w[word]>>shift&r.full)
	w[word] += added << shift
	w[ringState] += added << ringSumShift
}

// refund takes up to cost from the slot of at, and returns how much.
func (r *slotRing) refund(w []uint64, at int64, cost uint64) uint64 {
	k := r.number(at)
	if k < r.oldest(w) || k > int64(w[ringNewest]) {
		return 0
	}
	word, shift := r.place(w, k)
	count := w[word] >> shift & r.full
	if count == r.full {
		return 0
	}
	taken := min(cost, count)
	w[word] -= taken << shift
	w[ringState] -= taken << ringSumShift
	return taken
}

// until returns when no more than most is used, if nothing is added; now, more
// is.
func (r *slotRing) until(w []uint64, most uint64) int64 {
	k, count, left := r.leaves(w, most)
	if !r.weighted || count == r.full {
		most = left
	}
	return r.lighter(count, k, most-left)
}

// leaves returns the slot with which the sum of the slots that have left makes
// the rest no more than most, its count, and that rest. It looks from the end that
// is nearer: the wait for one ends with one of the first slots, the reset with
// one of the last.
func (r *slotRing) leaves(w []uint64, most uint64) (k int64, count, left uint64) {
	sum := w[ringState] >> ringSumShift
	if most < sum/2 {
		for k = int64(w[ringNewest]); ; k-- {
			if count = r.count(w, k); left+count > most {
				return k, count, left
			}
			left += count
		}
	}
	left = sum
	for k = r.oldest(w); ; k++ {
		count = r.count(w, k)
		if left -= count; left <= most {
			return k, count, left
		}
	}
}

// count returns the count of slot k, which is in [oldest, newest].
func (r *slotRing) count(w []uint64, k int64) uint64 {
	word, shift := r.place(w, k)
	return w[word] >> shift & r.full
}

// empty empties slot k and returns what was in it.
func (r *slotRing) empty(w []uint64, k int64) uint64 {
	word, shift := r.place(w, k)
	count := w[word] >> shift & r.full
	w[word] &^= r.full << shift
	return count
}

// place returns the word and the shift of slot k's count.
func (r *slotRing) place(w []uint64, k int64) (word int, shift uint) {
	i := int64(w[ringState]&ringByte) - (int64(w[ringNewest]) - k)
	if i < 0 {
		i += r.size
	}
	return ringCounts + int(i>>r.lgPer), uint(i&(1<<r.lgPer-1)) << r.lgBits
}

// wrap returns i modulo the ring's size for 0 <= i < 2·size, without a division.
func (r *slotRing) wrap(i int64) int64 {
	if i >= r.size {
		return i - r.size
	}
	return i
}
