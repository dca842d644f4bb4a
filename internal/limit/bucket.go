package limit

import "time"

// A Bucket is a GCRA bucket whose limit is given with each call. It is small enough
// to be made for each decision. Its words are those of a level: the time at which it
// will be empty, as keytable.Stamp has it, and the rest in 1/n ns.
//
// The zero Bucket is not usable; call NewBucket.
type Bucket struct {
	level level
}

// BucketWords is how many words a Bucket takes.
const BucketWords = 2

// NewBucket returns the Bucket that drains n in a span and holds at most burst. ok
// is false if burst takes longer than [MaxSpan] to drain; the Bucket is not usable
// then. n and span are above 0, and span is at most MaxSpan.
func NewBucket(n, burst uint64, span time.Duration) (b Bucket, ok bool) {
	b.level = level{n: n, burst: burst, span: uint64(span), wide: true}
	ns, rest := b.level.takes(burst)
	if ns > int64(MaxSpan) || ns == int64(MaxSpan) && rest > 0 {
		return Bucket{}, false
	}
	b.level.most = ns + int64(span) // of no account: nothing is charged beyond the burst
	return b, true
}

// Used returns how full the bucket of the words w is at t, rounded up.
func (b *Bucket) Used(w []uint64, t int64) uint64 { return b.level.used(w, nil, t) }

// Charge counts cost at t.
func (b *Bucket) Charge(w []uint64, t int64, cost uint64) { b.level.charge(w, nil, t, cost) }

// Until returns how long after t the bucket holds no more than most, rounded up;
// 0 if it does at t.
func (b *Bucket) Until(w []uint64, t int64, most uint64) time.Duration {
	return time.Duration(max(b.level.until(w, nil, t, 0, most)-t, 0))
}

// Scale turns the rest in w, which is that of a bucket that drained was in a span,
// into one of b's, rounded up: by less than 1/n ns. was is 0 for words that no
// bucket has used.
func (b *Bucket) Scale(w []uint64, was uint64) {
	if was == 0 || was == b.level.n {
		return
	}
	if w[1] = mulDivUp(b.level.n, w[1], was); w[1] == b.level.n { // a nanosecond
		w[0], w[1] = w[0]+1, 0
	}
}
