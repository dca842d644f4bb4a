package limit

import (
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

// A spillRing is how Sliding counts above SlidingExact: up to [Inline] times in
// the record, oldest first, and when there are more in the window, the slots of a
// ring, whose head is in the place of the times and whose counts are in a block.
// When these have all left, it is times again. So a key that is seen a few times
// in a span, as most are, costs one cache line and is counted exactly, and one
// that is seen often costs no more than its slots. Without memory for a block it
// counts in two slots as long as the span, in the record: it may then refuse too
// much, but only who has used up N in two spans.
//
// When times go to their slots, those that have left the window stay behind. So
// never more is used than if slots had counted from the start, and never less
// than what is in the window.
//
// The block has one word more than the counts: since when slots count. A time that
// had left by then must not be taken out of its slot.
//
// The first word has, beside what [keytable.Blocks] keeps there, whether the ring's
// slots count, 1 bit, or the two long ones, 1 bit; and then the ring's bits, see
// slotRing, or the number of times. With no times, word 1 is anything. With two
// long slots, words 1 and 2 are those of buckets, and 3 says since when they count.
type spillRing struct {
	ring   slotRing
	coarse buckets // whole
}

const (
	spillSlots  = 1 << 17
	spillCoarse = 1 << 18
	spillTimes  = 1<<16 - 1
	spillBits   = spillSlots | spillCoarse | ringBits

	coarseSince = 3
)

func newSpillRing(n uint64, span, resolution int64) spillRing {
	r := spillRing{ring: newSlotRing(n, span, resolution), coarse: newBuckets(span, resolution)}
	r.coarse.whole = true
	return r
}

// words returns how many words a block has.
func (r *spillRing) words() int { return r.ring.words() + 1 }

// since returns since when slots count, of the block c.
func since(c []uint64) int64 { return int64(c[len(c)-1]) }

func slotted(w []uint64) bool { return w[0]&spillSlots != 0 }

func coarsely(w []uint64) bool { return w[0]&spillCoarse != 0 }

// timed reports whether w has times.
func timed(w []uint64) bool { return w[0]&(spillSlots|spillCoarse) == 0 }

func timesOf(w []uint64) []uint64 { return w[1 : 1+w[0]&spillTimes] }

func (r *spillRing) advance(w []uint64, b *keytable.Blocks, t int64) uint64 {
	switch {
	case slotted(w):
		if t >= int64(w[ringLeaves]) {
			r.ring.expire(w, b.Block(w), t)
			return r.settle(w, b, t)
		}
		return w[ringSum]
	case coarsely(w):
		r.coarse.advance(w[1:], t)
		return r.settle(w, b, t)
	case int64(w[1]) <= t-r.ring.span:
		return r.drop(w, t)
	}
	return w[0] & spillTimes
}

// settle returns how much is in slots, and gives them up if nothing is.
func (r *spillRing) settle(w []uint64, b *keytable.Blocks, t int64) uint64 {
	used := r.used(w, t)
	if used == 0 {
		b.Clear(w)
	}
	return used
}

// drop is advance when times may have left.
func (r *spillRing) drop(w []uint64, t int64) uint64 {
	times, k := timesOf(w), 0
	for k < len(times) && int64(times[k]) <= t-r.ring.span {
		k++
	}
	return dropTimes(w, 0, k)
}

// dropTimes drops k times from the i-th on, and returns how many are left.
func dropTimes(w []uint64, i, k int) uint64 {
	times := timesOf(w)
	copy(times[i:], times[i+k:])
	w[0] -= uint64(k)
	return w[0] & spillTimes
}

func (r *spillRing) used(w []uint64, t int64) uint64 {
	switch {
	case slotted(w):
		return w[ringSum]
	case coarsely(w):
		return r.coarse.used(w[1:], t)
	}
	return w[0] & spillTimes
}

// fits reports whether cost more fits beside the times, if w has times.
func fits(w []uint64, cost uint64) bool { return timed(w) && cost <= Inline-w[0]&spillTimes }

func (r *spillRing) charge(w []uint64, b *keytable.Blocks, t int64, cost uint64) {
	if fits(w, cost) {
		for range cost {
			push(w, t)
		}
		return
	}
	if timed(w) {
		r.spill(w, b, t)
	}
	r.add(w, b, t, cost)
}

func push(w []uint64, t int64) {
	w[0]++
	w[w[0]&spillTimes] = uint64(t)
}

// add charges cost to slots.
func (r *spillRing) add(w []uint64, b *keytable.Blocks, t int64, cost uint64) {
	if slotted(w) {
		r.ring.charge(w, b.Block(w), t, cost)
		return
	}
	r.coarse.advance(w[1:], t)
	r.coarse.charge(w[1:], cost)
}

// spill puts the times into slots at t.
func (r *spillRing) spill(w []uint64, b *keytable.Blocks, t int64) {
	var times [Inline]uint64
	n := copy(times[:], timesOf(w))
	w[0] &^= spillBits
	if b.Spill(w) {
		w[0] |= spillSlots
		c := b.Block(w)
		c[len(c)-1], w[ringSum] = uint64(t), 0
	} else {
		w[0] |= spillCoarse
		w[1], w[2], w[coarseSince] = 0, 0, uint64(t)
	}
	for _, at := range times[:n] {
		r.add(w, b, int64(at), 1)
	}
}

func (r *spillRing) refund(w []uint64, b *keytable.Blocks, t, at int64, cost uint64) (taken uint64) {
	switch {
	case slotted(w):
		if c := b.Block(w); at > since(c)-r.ring.span { // else it stayed behind
			taken = r.ring.refund(w, c, at, cost)
		}
	case coarsely(w):
		if at > int64(w[coarseSince])-r.ring.span {
			taken = r.coarse.refund(w[1:], t, at, cost)
		}
	default:
		for i := 0; i < len(timesOf(w)) && taken < cost; {
			if int64(timesOf(w)[i]) != at {
				i++
				continue
			}
			dropTimes(w, i, 1)
			taken++
		}
		return taken
	}
	r.settle(w, b, t)
	return taken
}

func (r *spillRing) refundOldest(w []uint64, b *keytable.Blocks, t int64, cost uint64) (taken uint64) {
	switch {
	case slotted(w):
		taken = r.ring.refundOldest(w, b.Block(w), cost)
	case coarsely(w):
		taken = r.coarse.refundOldest(w[1:], t, cost)
	default:
		taken = min(cost, w[0]&spillTimes)
		dropTimes(w, 0, int(taken))
		return taken
	}
	r.settle(w, b, t)
	return taken
}

// until returns when no more than most is used; now, more is.
func (r *spillRing) until(w []uint64, b *keytable.Blocks, most uint64) int64 {
	switch {
	case slotted(w):
		if t, ok := r.ring.soon(w, most); ok {
			return t
		}
		return r.ring.until(w, b.Block(w), most)
	case coarsely(w):
		return r.coarse.until(w[1:], most)
	}
	return int64(w[w[0]&spillTimes-most]) + r.ring.span
}

// keeps returns how long after t what is charged then would be counted, if there
// is memory for it.
func (r *spillRing) keeps(w []uint64, t int64, cost uint64) time.Duration {
	s := &r.ring.slots
	switch {
	case fits(w, cost):
		return time.Duration(s.span)
	case coarsely(w):
		s = &r.coarse.slots
	}
	return time.Duration(s.last(s.number(t)) + s.span - t)
}

// each yields what is counted, as [Counter.Each] does.
func (r *spillRing) each(w []uint64, b *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	switch {
	case slotted(w):
		r.ring.each(w, b.Block(w), t, yield)
	case coarsely(w):
		r.coarse.each(w[1:], t, yield)
	default:
		for _, at := range timesOf(w) {
			if !yield(int64(at), 1) {
				return
			}
		}
	}
}
