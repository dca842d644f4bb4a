package meter

import (
	"encoding/binary"

	"github.com/lately-go/lately/internal/shard"
)

// A coarse is a window of two slots as long as the span: what a spillRing counts
// in when there is no memory for a block. Both count in full until the last
// moment of theirs has left, so never less is used than is in the window, and
// never more than is in two spans. Its words are the record's:
//
//	0  see spillRing
//	1  the first time after the newer slot
//	2  counts: older << 32 | newer, both at most bucketFull
//	3  since when they count
type coarse struct{ slots }

const (
	coarseEnd = 1 + iota
	coarseCounts
	coarseSince
)

func coarseUsed(w []uint64) uint64 { return w[coarseCounts]>>32 + w[coarseCounts]&bucketFull }

// leaves returns when the newer slot, or the older one, leaves.
func (c *coarse) leaves(w []uint64, older bool) int64 {
	end := int64(w[coarseEnd])
	if older {
		end -= c.width
	}
	return c.lastBefore(end) + c.span
}

// begin makes w have nothing counted, since t.
func (c *coarse) begin(w []uint64, t int64) {
	w[coarseEnd] = uint64((c.number(t) + 1) * c.width)
	w[coarseCounts], w[coarseSince] = 0, uint64(t)
}

// advance drops the slots that have left at t, and returns how much is used.
func (c *coarse) advance(w []uint64, t int64) uint64 {
	switch {
	case t >= c.leaves(w, false):
		w[coarseCounts] = 0
	case t >= c.leaves(w, true):
		w[coarseCounts] &= bucketFull
	}
	return coarseUsed(w)
}

// charge adds cost at t, to which w has been advanced: the slot of t is the newer
// one, or the next.
func (c *coarse) charge(w []uint64, t int64, cost uint64) {
	if t >= int64(w[coarseEnd]) {
		w[coarseEnd] += uint64(c.width)
		w[coarseCounts] <<= 32
	}
	w[coarseCounts] += min(cost, bucketFull-w[coarseCounts]&bucketFull)
}

func (c *coarse) refund(w []uint64, at int64, cost uint64) uint64 {
	newest := int64(w[coarseEnd]) - 1
	if at > newest || at <= int64(w[coarseSince])-c.span {
		return 0
	}
	switch (newest - at) / c.width {
	case 0:
		return takeCount(w, 0, cost)
	case 1:
		return takeCount(w, 32, cost)
	}
	return 0
}

func (c *coarse) refundOldest(w []uint64, cost uint64) uint64 {
	if w[coarseCounts]>>32 == bucketFull {
		return 0
	}
	taken := takeCount(w, 32, cost)
	return taken + takeCount(w, 0, cost-taken)
}

// takeCount takes up to cost from the count at that shift, unless it may have been
// cut.
func takeCount(w []uint64, shift uint, cost uint64) uint64 {
	count := w[coarseCounts] >> shift & bucketFull
	if count == bucketFull {
		return 0
	}
	taken := min(cost, count)
	w[coarseCounts] -= taken << shift
	return taken
}

// until returns when no more than most is used; now, more is.
func (c *coarse) until(w []uint64, most uint64) int64 {
	newer := w[coarseCounts] & bucketFull
	return c.leaves(w, newer <= most)
}

func (c *coarse) each(w []uint64, t int64, yield func(int64, uint64) bool) {
	end := int64(w[coarseEnd])
	if older := w[coarseCounts] >> 32; older > 0 && !yield(c.lastBefore(end-c.width), older) {
		return
	}
	if newer := w[coarseCounts] & bucketFull; newer > 0 {
		yield(min(c.lastBefore(end), t), newer)
	}
}

// appendState appends how many slots the newer is before that of t, the counts,
// and how long they have counted.
func (c *coarse) appendState(dst []byte, w []uint64, t int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(c.number(t)-(int64(w[coarseEnd])/c.width-1)))
	dst = binary.AppendUvarint(dst, w[coarseCounts]>>32)
	dst = binary.AppendUvarint(dst, w[coarseCounts]&bucketFull)
	return binary.AppendUvarint(dst, min(uint64(t)-w[coarseSince], shard.DumpPast))
}

func (c *coarse) readState(r *shard.DumpReader, w []uint64, t, now int64) {
	newer := c.number(t) - int64(r.UpTo(shard.DumpPast/uint64(c.width)))
	older, count := r.UpTo(bucketFull), r.UpTo(bucketFull)
	since := t - int64(r.UpTo(shard.DumpPast))
	if last := c.number(now); newer > last { // what is later counts there
		newer, older, count = last, 0, min(older+count, bucketFull)
	}
	w[coarseEnd] = uint64((newer + 1) * c.width)
	w[coarseCounts], w[coarseSince] = older<<32|count, uint64(min(since, now))
	if older+count == 0 {
		r.Fail()
	}
}
