package limit

import "github.com/lately-go/lately/internal/keytable"

// RefundOldest takes back at t, for which w has been advanced, up to cost of what
// is counted, the oldest first, and returns how much: for a caller who does not
// know when it was charged.
//
// There is no credit in it. Whichever cost of what is still counted is meant, at
// no later time less is used than if just that had never been charged, whatever
// comes until then:
//
//   - Of C times in a window, L are still in it at a later time. Without the cost
//     oldest, min(L, C-cost) are left of these. Without any others no more: as many
//     of the cost that were taken have left by then as times at all, C-L, at most.
//   - Slots are the same in steps of a slot. In one that is weighed an event counts
//     1 at most, and an older one never more than a newer.
//   - A bucket is a queue: of level x, the last ⌈x⌉ units are still in it, the
//     oldest of these in part. Without some of them, every other unit drains no
//     later than it did, so no more than ⌈x⌉-cost are in it, and that is what is left.
//
// It must not be asked of a bucket that did not count all of a charge because it was
// too far beyond the burst, until it has been empty since, see [Counter.Cut]: what was
// not counted would be given back as well. A Fixed window whose first
// event is meant keeps its beginning. Where a count may have been cut, nothing is
// taken of it or of what is newer.
func (m *Counter) RefundOldest(w []uint64, b *keytable.Blocks, t int64, cost uint64) uint64 {
	switch m.form {
	case formLog:
		if b.Lost(w) {
			return 0
		}
		return uint64(b.Drop(w, int(min(cost, m.n))))
	case formSpill:
		return m.spill.refundOldest(w, b, t, cost)
	case formRing:
		return m.ring.refundOldest(w, w[ringHead:], cost)
	case formBuckets:
		return m.buckets.refundOldest(w, t, cost)
	case formLevel:
		return m.level.refundOldest(w, t, cost)
	case formFixed, formCalendar:
		return takeBack(&w[1], cost)
	}
	return 0
}

func (b *buckets) refundOldest(w []uint64, t int64, cost uint64) (taken uint64) {
	older, newer := w[1]>>32, w[1]&bucketFull
	if !b.gone(w, t) {
		if older == bucketFull {
			return 0
		}
		taken = min(cost, older)
		w[1] -= taken << 32
	}
	if newer == bucketFull {
		return taken
	}
	n := min(cost-taken, newer)
	w[1] -= n
	return taken + n
}

// refundOldest leaves whole units: the oldest, which has drained in part, goes
// with what is left of it.
func (l *level) refundOldest(w []uint64, t int64, cost uint64) uint64 {
	used := l.used(w, t)
	if cost == 0 || used == 0 {
		return 0
	}
	taken := min(cost, used)
	ns, rest := l.takes(used - taken)
	l.set(w, t+ns, rest)
	return taken
}
