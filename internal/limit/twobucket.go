package limit

import "math"

// buckets are the two buckets of TwoBucket in a record, slots as wide as the
// span:
//
//	0  number of the newer bucket
//	1  count of the older bucket, 32 bits | count of the newer, 32 bits
//
// A count that is full stays full, is not weighed and gives nothing back.
type buckets struct {
	slots
	whole bool // the older bucket is not weighed, but counts until it has left
}

const bucketFull = math.MaxUint32

func newBuckets(span, resolution int64) buckets {
	return buckets{slots: slots{width: span, span: span, resolution: resolution}}
}

// gone reports whether the older bucket has left the window at t.
func (b *buckets) gone(w []uint64, t int64) bool { return b.first(t) > b.last(int64(w[0])-1) }

func (b *buckets) advance(w []uint64, t int64) uint64 {
	if newer := int64(w[0]); !b.holds(newer, t) {
		now := b.number(t)
		switch step := now - newer; {
		case w[1] == 0 || step > 1:
			w[0], w[1] = uint64(now), 0
		case step == 1:
			w[0], w[1] = uint64(now), w[1]<<32
		}
	}
	return b.used(w, t)
}

func (b *buckets) used(w []uint64, t int64) uint64 {
	older, newer := w[1]>>32, w[1]&bucketFull
	if (b.whole || older == bucketFull) && !b.gone(w, t) {
		return older + newer
	}
	return newer + b.weigh(older, int64(w[0])-1, t)
}

func (b *buckets) charge(w []uint64, cost uint64) {
	w[1] += min(cost, bucketFull-w[1]&bucketFull)
}

func (b *buckets) refund(w []uint64, t, at int64, cost uint64) uint64 {
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

func (b *buckets) until(w []uint64, most uint64) int64 {
	older, newer := w[1]>>32, w[1]&bucketFull
	switch {
	case newer > most && newer < bucketFull && !b.whole:
		return b.lighter(newer, int64(w[0]), most)
	case newer > most:
		return b.lighter(newer, int64(w[0]), 0)
	case older < bucketFull && !b.whole:
		return b.lighter(older, int64(w[0])-1, most-newer)
	}
	return b.lighter(older, int64(w[0])-1, 0)
}
