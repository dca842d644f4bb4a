package meter

import (
	"time"

	"github.com/lately-go/lately/internal/shard"
)

// A spillRing is how Sliding counts above slidingExact: up to [Inline] times in
// the record, oldest first, and when there are more in the window, the slots of a
// ring, whose head is in the place of the times and whose counts are in a block.
// When these have all left, it is times again. So a key that is seen a few times
// in a span, as most are, costs one cache line and is counted exactly, and one
// that is seen often costs no more than its slots.
//
// When times go to their slots, those that have left the window stay behind. So
// never more is used than if the ring had counted from the start, and never less
// than what is in the window.
//
// The block has one word more than the counts: since when slots count. A time that
// had left by then must not be taken out of its slot.
//
// The first word has, beside what [shard.Blocks] keeps there, whether the slots
// count, 1 bit; then the ring's bits, see slotRing; or else whether a time was
// dropped that may still count, 1 bit, and the number of times. A block that
// the slots do not use yet is there because room was wanted. With no times, word 1
// is anything.
type spillRing struct{ ring slotRing }

const (
	spillSlots = 1 << 17
	spillLost  = 1 << 18
	spillTimes = 1<<16 - 1
)

// slotted reports whether slots count in w.
func slotted(w []uint64) bool { return w[0]&spillSlots != 0 }

func timesOf(w []uint64) []uint64 { return w[1 : 1+w[0]&spillTimes] }

func (r *spillRing) advance(w []uint64, b *shard.Blocks, t int64) uint64 {
	switch {
	case slotted(w):
		if t >= int64(w[ringLeaves]) {
			r.ring.expire(w, b.Block(w), t)
			return r.settle(w, b)
		}
		return w[ringSum]
	case int64(w[1]) <= t-r.ring.span:
		return r.drop(w, b, t)
	}
	return w[0] & spillTimes
}

// settle returns how much is in the slots, and gives them up if nothing is.
func (r *spillRing) settle(w []uint64, b *shard.Blocks) uint64 {
	sum := w[ringSum]
	if sum == 0 {
		b.Clear(w)
	}
	return sum
}

// drop is advance when times may have left.
func (r *spillRing) drop(w []uint64, b *shard.Blocks, t int64) uint64 {
	times, k := timesOf(w), 0
	for k < len(times) && int64(times[k]) <= t-r.ring.span {
		k++
	}
	r.dropOldest(w, b, k)
	return w[0] & spillTimes
}

// dropOldest drops the first k times.
func (r *spillRing) dropOldest(w []uint64, b *shard.Blocks, k int) {
	times := timesOf(w)
	switch {
	case k == 0:
	case k == len(times):
		b.Clear(w)
	default:
		copy(times, times[k:])
		w[0] = w[0]&^spillLost - uint64(k)
	}
}

func (r *spillRing) used(w []uint64) uint64 {
	if slotted(w) {
		return w[ringSum]
	}
	return w[0] & spillTimes
}

// fits reports whether cost more fits beside the times.
func (r *spillRing) fits(w []uint64, cost uint64) bool { return cost <= Inline-w[0]&spillTimes }

// room reports whether cost can be charged, and makes room for it.
func (r *spillRing) room(w []uint64, b *shard.Blocks, cost uint64) bool {
	return slotted(w) || r.fits(w, cost) || b.Spilled(w) || b.Viewed() || b.Spill(w)
}

// charge adds cost at t. Without memory for a block the oldest times make room.
func (r *spillRing) charge(w []uint64, b *shard.Blocks, t int64, cost uint64) {
	switch {
	case slotted(w):
		r.ring.charge(w, b.Block(w), t, cost)
	case r.fits(w, cost):
		r.push(w, t, cost)
	case b.Spilled(w) || b.Spill(w):
		r.spill(w, b, t)
		r.ring.charge(w, b.Block(w), t, cost)
	default:
		n := min(cost, Inline)
		if more := w[0]&spillTimes + n; more > Inline {
			r.dropOldest(w, b, int(more-Inline))
		}
		r.push(w, t, n)
		w[0] |= spillLost
	}
}

func (r *spillRing) push(w []uint64, t int64, n uint64) {
	for range n {
		w[0]++
		w[w[0]&spillTimes] = uint64(t)
	}
}

// words returns how many words a block has.
func (r *spillRing) words() int { return r.ring.words() + 1 }

// since returns since when slots count, of the block c.
func since(c []uint64) int64 { return int64(c[len(c)-1]) }

// spill puts the times into slots at t.
func (r *spillRing) spill(w []uint64, b *shard.Blocks, t int64) {
	var times [Inline]uint64
	n := copy(times[:], timesOf(w))
	c := b.Block(w)
	c[len(c)-1] = uint64(t)
	w[0] = w[0]&^(spillTimes|spillLost) | spillSlots
	w[ringSum] = 0
	for _, t := range times[:n] {
		r.ring.charge(w, c, int64(t), 1)
	}
}

func (r *spillRing) refund(w []uint64, b *shard.Blocks, at int64, cost uint64) uint64 {
	switch {
	case slotted(w) && at <= since(b.Block(w))-r.ring.span:
		return 0 // it stayed behind
	case slotted(w):
		taken := r.ring.refund(w, b.Block(w), at, cost)
		r.settle(w, b)
		return taken
	case w[0]&spillLost != 0:
		return 0
	}
	taken, times := uint64(0), timesOf(w)
	for i := 0; i < len(times) && taken < cost; {
		if int64(times[i]) != at {
			i++
			continue
		}
		copy(times[i:], times[i+1:])
		times = times[:len(times)-1]
		taken++
	}
	if w[0] -= taken; len(times) == 0 {
		b.Clear(w)
	}
	return taken
}

func (r *spillRing) refundOldest(w []uint64, b *shard.Blocks, cost uint64) uint64 {
	switch {
	case slotted(w):
		taken := r.ring.refundOldest(w, b.Block(w), cost)
		r.settle(w, b)
		return taken
	case w[0]&spillLost != 0:
		return 0
	}
	taken := min(cost, w[0]&spillTimes)
	r.dropOldest(w, b, int(taken))
	return taken
}

// until returns when no more than most is used; now, more is.
func (r *spillRing) until(w []uint64, b *shard.Blocks, most uint64) int64 {
	if slotted(w) {
		if t, ok := r.ring.soon(w, most); ok {
			return t
		}
		return r.ring.until(w, b.Block(w), most)
	}
	return int64(w[w[0]&spillTimes-most]) + r.ring.span
}

// keeps returns how long after t what is charged then would be counted.
func (r *spillRing) keeps(w []uint64, t int64, cost uint64) time.Duration {
	if !slotted(w) && r.fits(w, cost) {
		return time.Duration(r.ring.span)
	}
	return time.Duration(r.ring.last(r.ring.number(t)) + r.ring.span - t)
}

// each yields what is counted, as [Meter.Each] does.
func (r *spillRing) each(w []uint64, b *shard.Blocks, t int64, yield func(int64, uint64) bool) {
	if slotted(w) {
		r.ring.each(w, b.Block(w), t, yield)
		return
	}
	for _, at := range timesOf(w) {
		if !yield(int64(at), 1) {
			return
		}
	}
}
