package limit

import (
	"encoding/binary"
	"math"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// twoBucket is the window of TwoBucket: two slots as wide as the span.
//
//	0  number of the newer bucket
//	1  count of the older bucket, 32 bits | count of the newer, 32 bits
//
// A count that is full stays full, is not weighed and gives nothing back.
type twoBucket struct {
	slots
	whole bool // the older bucket is not weighed, but counts until it has left
}

const bucketFull = math.MaxUint32

func newTwoBucket(c *Config) window {
	b := twoBucketOf(c)
	return &b
}

func twoBucketOf(c *Config) twoBucket {
	return twoBucket{slots: slots{width: int64(c.Span), span: int64(c.Span), resolution: max(int64(c.Resolution), 1)}}
}

func (b *twoBucket) words() int { return 2 }

// gone reports whether the older bucket has left the window at t.
func (b *twoBucket) gone(w []uint64, t int64) bool { return b.first(t) > b.last(int64(w[0])-1) }

func (b *twoBucket) advance(w []uint64, _ *keytable.Blocks, t int64) uint64 {
	if newer := int64(w[0]); !b.holds(newer, t) {
		now := b.number(t)
		switch step := now - newer; {
		case w[1] == 0 || step > 1:
			w[0], w[1] = uint64(now), 0
		case step == 1:
			w[0], w[1] = uint64(now), w[1]<<32
		}
	}
	return b.used(w, nil, t)
}

func (b *twoBucket) used(w []uint64, _ *keytable.Blocks, t int64) uint64 {
	older, newer := w[1]>>32, w[1]&bucketFull
	if (b.whole || older == bucketFull) && !b.gone(w, t) {
		return older + newer
	}
	return newer + b.weigh(older, int64(w[0])-1, t)
}

func (b *twoBucket) charge(w []uint64, _ *keytable.Blocks, _ int64, cost uint64) {
	w[1] += min(cost, bucketFull-w[1]&bucketFull)
}

func (b *twoBucket) refund(w []uint64, _ *keytable.Blocks, t, at int64, cost uint64) uint64 {
	shift := uint(0)
	switch newer, k := int64(w[0]), b.number(at); {
	case k == newer:
	case k == newer-1 && !b.gone(w, t):
		shift = 32
	default:
		return 0
	}
	count := w[1] >> shift & bucketFull
	if count == bucketFull {
		return 0
	}
	taken := min(cost, count)
	w[1] -= taken << shift
	return taken
}

func (b *twoBucket) refundOldest(w []uint64, _ *keytable.Blocks, t int64, cost uint64) (taken uint64) {
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

func (b *twoBucket) until(w []uint64, _ *keytable.Blocks, _ int64, _, most uint64) int64 {
	older, newer := w[1]>>32, w[1]&bucketFull
	switch {
	case newer > most && newer < bucketFull && !b.whole:
		return b.weightDropsAt(newer, int64(w[0]), most)
	case newer > most:
		return b.weightDropsAt(newer, int64(w[0]), 0)
	case older < bucketFull && !b.whole:
		return b.weightDropsAt(older, int64(w[0])-1, most-newer)
	}
	return b.weightDropsAt(older, int64(w[0])-1, 0)
}

func (b *twoBucket) each(w []uint64, _ *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	newer := int64(w[0])
	if older := w[1] >> 32; older > 0 && !yield(b.last(newer-1), older) {
		return
	}
	if count := w[1] & bucketFull; count > 0 {
		yield(min(b.last(newer), t), count)
	}
}

// appendState appends how many buckets the newer is before that of t, and 1, and
// the counts.
func (b *twoBucket) appendState(dst []byte, w []uint64, _ *keytable.Blocks, t int64) []byte {
	dst = binary.AppendUvarint(dst, uint64(b.number(t)-int64(w[0]))+1)
	dst = binary.AppendUvarint(dst, w[1]>>32)
	return binary.AppendUvarint(dst, w[1]&bucketFull)
}

func (b *twoBucket) readState(r *snapshot.Reader, w []uint64, _ *keytable.Blocks, t, now int64) {
	back := r.UpTo(snapshot.MaxPast / uint64(b.width))
	if back == 0 {
		return
	}
	newer := b.number(t) - int64(back-1)
	olderCount, count := r.UpTo(bucketFull), r.UpTo(bucketFull)
	if last := b.number(now); newer > last {
		newer, olderCount, count = last, 0, min(olderCount+count, bucketFull)
	}
	w[0], w[1] = uint64(newer), olderCount<<32|count
	if w[1] == 0 {
		r.Fail()
	}
}
