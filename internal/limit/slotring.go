package limit

import (
	"math/bits"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// A slotRing is the slots of Sliding. Four words are its head, h:
//
//	0  pending: what the newest slot has beside its count in c, 13 bits | 2 bits that
//	   are not the ring's | whether the newest slot has no count, 1 bit | how many slots
//	   the oldest is before the newest, 8 bits | position of the newest, 8 bits; the
//	   32 bits above are not the ring's
//	1  when the oldest slot, which has a count, leaves the window
//	2  the first time after the newest slot
//	3  sum of all slots from the oldest on; 0: there are none, and the head
//	   says nothing else
//
// and others its counts, c, of 8, 16 or 32 bits, so many to a word, by position.
// Positions outside [oldest, newest] are anything: a slot is emptied when it
// comes, so that to look at a window at a later time needs a copy of the head
// only.
//
// An event in the newest slot is added to pending, so that it does not touch the counts,
// which are in another cache line. Pending is moved to the counts when it is full and when
// another slot comes.
//
// The sum is kept as slots come and go, so that a decision never adds up slots,
// and word 1 and word 2 tell by a comparison whether any does. A count has more
// bits than N needs: what is allowed never fills one. A count that is full stays
// full and gives nothing back, for nobody knows what did not fit.
type slotRing struct {
	slots
	size   int64  // positions: the slots of the span, and the one before
	lgPer  uint8  // log2 of the counts in a word
	lgBits uint8  // log2 of the bits of a count
	full   uint64 // the largest count
}

const (
	ringPlace = iota
	ringLeaves
	ringEnd
	ringSum
)

const (
	ringBackShift   = 8
	ringByte        = 1<<8 - 1
	ringPlaceMask   = 1<<16 - 1
	ringNewestEmpty = 1 << 16

	ringPendingShift = 19
	ringPendingMost  = 1<<13 - 1
	ringPending      = ringPendingMost << ringPendingShift

	ringBits = ringPending | ringNewestEmpty | ringPlaceMask
)

func newSlotRing(c *Config) slotRing {
	r := slotRing{slots: slots{width: int64(slotWidth(c.Span)), span: int64(c.Span), resolution: max(int64(c.Resolution), 1)}, lgBits: 5}
	r.size = r.span/r.width + 1
	switch n := bits.Len64(c.N + 1); { // a count of N is not full
	case n <= 8:
		r.lgBits = 3
	case n <= 16:
		r.lgBits = 4
	}
	r.lgPer = 6 - r.lgBits
	r.full = 1<<(1<<r.lgBits) - 1
	return r
}

// countWords returns how many words the counts take.
func (r *slotRing) countWords() int { return int(r.size-1)>>r.lgPer + 1 }

// Slots are told by how many they are before the newest.

// back returns which is the oldest.
func (r *slotRing) back(h []uint64) int64 { return int64(h[ringPlace] >> ringBackShift & ringByte) }

// end returns the first time after the slot.
func (r *slotRing) end(h []uint64, back int64) int64 { return int64(h[ringEnd]) - back*r.width }

// slot returns the slot's number.
func (r *slotRing) slot(h []uint64, back int64) int64 { return int64(h[ringEnd])/r.width - 1 - back }

// leaves returns when the slot leaves the window.
func (r *slotRing) leaves(h []uint64, back int64) int64 {
	end := r.end(h, back)
	if r.resolution == 1 {
		return end - 1 + r.span
	}
	return r.lastBefore(end) + r.span
}

// count returns the slot's count.
func (r *slotRing) count(h, c []uint64, back int64) uint64 {
	word, shift := r.place(h, back)
	count := c[word] >> shift & r.full
	if back == 0 {
		count += pending(h)
	}
	return count
}

func pending(h []uint64) uint64 { return h[ringPlace] >> ringPendingShift & ringPendingMost }

// settle moves pending to the counts.
func (r *slotRing) settle(h, c []uint64) {
	word, shift := r.place(h, 0)
	c[word] += pending(h) << shift // fits: the sum is less than full, see addPending
	h[ringPlace] &^= ringPending
}

// place returns the word and the shift of the slot's count.
func (r *slotRing) place(h []uint64, back int64) (word int, shift uint) {
	i := int64(h[ringPlace]&ringByte) - back
	if i < 0 {
		i += r.size
	}
	return int(i >> r.lgPer), uint(i&(1<<r.lgPer-1)) << r.lgBits
}

func (r *slotRing) setPlace(h []uint64, position, back int64) {
	h[ringPlace] = h[ringPlace]&^ringPlaceMask | uint64(back)<<ringBackShift | uint64(position)
}

// expire drops the slots that have left the window at t. It does not write to the counts.
func (r *slotRing) expire(h, c []uint64, t int64) {
	sum, back := h[ringSum], r.back(h)
	for ; sum > 0 && t >= r.leaves(h, back); back-- {
		sum -= r.count(h, c, back)
	}
	h[ringSum] = sum
	r.trim(h, c, back)
}

// trim makes the first slot from that on which has a count the oldest.
func (r *slotRing) trim(h, c []uint64, back int64) {
	if h[ringSum] == 0 {
		return
	}
	for r.count(h, c, back) == 0 {
		back--
	}
	r.setPlace(h, int64(h[ringPlace]&ringByte), back)
	h[ringLeaves] = uint64(r.leaves(h, back))
}

// charge adds cost at t: to its slot, or the newest if that is later.
func (r *slotRing) charge(h []uint64, b *keytable.Blocks, t int64, cost uint64) {
	switch {
	case h[ringSum] == 0:
		r.begin(h, b.Block(h), t)
	case t >= int64(h[ringEnd]):
		r.enter(h, b.Block(h), (t-int64(h[ringEnd]))/r.width+1)
	}
	r.add(h, b, cost)
}

// add adds cost to the newest slot.
func (r *slotRing) add(h []uint64, b *keytable.Blocks, cost uint64) {
	if r.addPending(h, cost) {
		return
	}
	c := b.Block(h)
	r.settle(h, c)
	word, shift := r.place(h, 0)
	added := min(cost, r.full-c[word]>>shift&r.full)
	c[word] += added << shift
	h[ringSum] += added
	if cost > 0 {
		h[ringPlace] &^= ringNewestEmpty
	}
}

// addPending adds cost to pending, and reports false if it does not fit.
func (r *slotRing) addPending(h []uint64, cost uint64) bool {
	if cost-1 >= ringPendingMost-pending(h) || h[ringSum]+cost >= r.full { // 0 does not fit either
		return false
	}
	h[ringPlace] = (h[ringPlace] + cost<<ringPendingShift) &^ ringNewestEmpty
	h[ringSum] += cost
	return true
}

// begin makes the slot of t the only one, without a count.
func (r *slotRing) begin(h, c []uint64, t int64) {
	h[ringPlace] = h[ringPlace]&^ringPending | ringNewestEmpty
	r.setPlace(h, 0, 0)
	c[0] &^= r.full
	h[ringEnd] = uint64((r.number(t) + 1) * r.width)
	h[ringLeaves] = uint64(r.leaves(h, 0))
	h[ringSum] = 0
}

// enter makes the slot that is so many after the newest the newest.
func (r *slotRing) enter(h, c []uint64, more int64) {
	r.settle(h, c)
	position := int64(h[ringPlace] & ringByte)
	for range more {
		if position++; position == r.size {
			position = 0
		}
		c[position>>r.lgPer] &^= r.full << (uint(position&(1<<r.lgPer-1)) << r.lgBits)
	}
	h[ringPlace] |= ringNewestEmpty
	r.setPlace(h, position, r.back(h)+more)
	h[ringEnd] += uint64(more * r.width)
}

// refund takes up to cost from the slot of at, and returns how much.
func (r *slotRing) refund(h []uint64, b *keytable.Blocks, at int64, cost uint64) uint64 {
	c := b.Block(h)
	newest := int64(h[ringEnd]) - 1
	if h[ringSum] == 0 || at > newest {
		return 0
	}
	back := (newest - at) / r.width
	if back > r.back(h) {
		return 0
	}
	taken := r.takeBack(h, c, back, cost)
	r.trim(h, c, r.back(h))
	return taken
}

// takeBack takes up to cost from a slot, and returns how much.
func (r *slotRing) takeBack(h, c []uint64, back int64, cost uint64) uint64 {
	r.settle(h, c)
	word, shift := r.place(h, back)
	count := c[word] >> shift & r.full
	if count == r.full {
		return 0
	}
	taken := min(cost, count)
	c[word] -= taken << shift
	h[ringSum] -= taken
	if back == 0 && taken == count {
		h[ringPlace] |= ringNewestEmpty
	}
	return taken
}

// refundOldest takes up to cost from the oldest slots, and returns how much.
func (r *slotRing) refundOldest(h []uint64, b *keytable.Blocks, cost uint64) (taken uint64) {
	c := b.Block(h)
	for back := r.back(h); taken < cost && h[ringSum] > 0; back-- {
		if r.count(h, c, back) == r.full {
			break
		}
		taken += r.takeBack(h, c, back, cost-taken)
	}
	r.trim(h, c, r.back(h))
	return taken
}

// until returns when no more than most is used, if nothing is added; now, more
// is.
func (r *slotRing) until(h []uint64, b *keytable.Blocks, most uint64) int64 {
	switch {
	case most == h[ringSum]-1: // the oldest slot has to leave
		return int64(h[ringLeaves])
	case most == 0 && h[ringPlace]&ringNewestEmpty == 0:
		return r.leaves(h, 0)
	}
	return r.leaves(h, r.leaving(h, b.Block(h), most))
}

// leaving returns the slot that leaves no more than most when it has left. It looks
// from the end that is nearer: the wait for one ends with one of the first slots, the
// reset with one of the last.
func (r *slotRing) leaving(h, c []uint64, most uint64) (back int64) {
	left := h[ringSum]
	if most < left/2 {
		for left = 0; ; back++ {
			if left += r.count(h, c, back); left > most {
				return back
			}
		}
	}
	for back = r.back(h); ; back-- {
		if left -= r.count(h, c, back); left <= most {
			return back
		}
	}
}

// each yields the counts of the slots, at the last time that each may have in
// it.
func (r *slotRing) each(h []uint64, b *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	if h[ringSum] == 0 {
		return
	}
	c := b.Block(h)
	for back := r.back(h); back >= 0; back-- {
		if count := r.count(h, c, back); count > 0 && !yield(min(r.lastBefore(r.end(h, back)), t), count) {
			return
		}
	}
}
