package limit

import (
	"math/bits"

	"github.com/lately-go/lately/internal/keytable"
)

// A slotRing is a window of slots. Four words are its head, h:
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
// bits than N needs: what is admitted never fills one. A count that is full stays
// full, is not weighed and gives nothing back, for nobody knows what did not fit.
type slotRing struct {
	slots
	size     int64  // positions: the slots of the span, and the one before
	lgPer    uint8  // log2 of the counts in a word
	lgBits   uint8  // log2 of the bits of a count
	full     uint64 // the largest count
	weighted bool   // it is the window of Weighted: the oldest slot is weighed, and counts follow the head
}

const (
	ringPlace = iota
	ringLeaves
	ringEnd
	ringSum
	ringHead // how many they are
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

// newWeighted returns the window of Weighted.
func newWeighted(c *Config) window {
	r := newSlotRing(c)
	r.weighted = true
	return &r
}

// words returns how many words Weighted takes.
func (r *slotRing) words() int { return ringHead + r.countWords() }

// counts returns the counts of the ring whose head is h.
func (r *slotRing) counts(h []uint64, b *keytable.Blocks) []uint64 {
	if r.weighted {
		return h[ringHead:]
	}
	return b.Block(h)
}

// advance drops the slots that have left the window at t, and returns how much
// is used. It does not write to the counts.
func (r *slotRing) advance(h []uint64, b *keytable.Blocks, t int64) uint64 {
	if t >= int64(h[ringLeaves]) {
		r.expire(h, r.counts(h, b), t)
	}
	return r.used(h, b, t)
}

// used returns how much is used at t, to which h has been advanced.
func (r *slotRing) used(h []uint64, b *keytable.Blocks, t int64) uint64 {
	sum := h[ringSum]
	if !r.weighted || sum == 0 {
		return sum
	}
	back := r.back(h)
	if r.first(t) <= r.end(h, back)-r.width {
		return sum
	}
	count := r.count(h, r.counts(h, b), back)
	if count == r.full { // a part of it may be less than that part of what there was
		return sum
	}
	return sum - count + r.weigh(count, r.slot(h, back), t)
}

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

// expire is advance when a slot may have left.
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
		r.begin(h, r.counts(h, b), t)
	case t >= int64(h[ringEnd]):
		r.enter(h, r.counts(h, b), (t-int64(h[ringEnd]))/r.width+1)
	}
	r.add(h, b, cost)
}

// add adds cost to the newest slot.
func (r *slotRing) add(h []uint64, b *keytable.Blocks, cost uint64) {
	if r.addPending(h, cost) {
		return
	}
	c := r.counts(h, b)
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
func (r *slotRing) refund(h []uint64, b *keytable.Blocks, _, at int64, cost uint64) uint64 {
	c := r.counts(h, b)
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
func (r *slotRing) refundOldest(h []uint64, b *keytable.Blocks, _ int64, cost uint64) (taken uint64) {
	c := r.counts(h, b)
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
func (r *slotRing) until(h []uint64, b *keytable.Blocks, _ int64, _, most uint64) int64 {
	if t, ok := r.soon(h, most); ok {
		return t
	}
	c := r.counts(h, b)
	back, count, left := r.leaving(h, c, most)
	if !r.weighted || count == r.full || most == left {
		return r.leaves(h, back)
	}
	return r.weightDropsAt(count, r.slot(h, back), most-left)
}

// soon is until when the head says it: when it is the oldest slot or the newest
// that has to leave.
func (r *slotRing) soon(h []uint64, most uint64) (t int64, ok bool) {
	switch {
	case r.weighted:
	case most == h[ringSum]-1:
		return int64(h[ringLeaves]), true
	case most == 0 && h[ringPlace]&ringNewestEmpty == 0:
		return r.leaves(h, 0), true
	}
	return 0, false
}

// leaving returns the slot with which the sum of the slots that have left makes
// the rest no more than most, its count, and that rest. It looks from the end that
// is nearer: the wait for one ends with one of the first slots, the reset with
// one of the last.
func (r *slotRing) leaving(h, c []uint64, most uint64) (back int64, count, left uint64) {
	sum := h[ringSum]
	if most < sum/2 {
		for ; ; back++ {
			if count = r.count(h, c, back); left+count > most {
				return back, count, left
			}
			left += count
		}
	}
	left = sum
	for back = r.back(h); ; back-- {
		count = r.count(h, c, back)
		if left -= count; left <= most {
			return back, count, left
		}
	}
}

// each yields the counts of the slots, at the last time that each may have in
// it.
func (r *slotRing) each(h []uint64, b *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	if h[ringSum] == 0 {
		return
	}
	c := r.counts(h, b)
	for back := r.back(h); back >= 0; back-- {
		if count := r.count(h, c, back); count > 0 && !yield(min(r.lastBefore(r.end(h, back)), t), count) {
			return
		}
	}
}
