package ratelimit

import (
	"math"
	"sync/atomic"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/limit"
)

// throttleLevels owns the records of a Throttle. The words of one are
//
//	0  the time at which the bucket will be empty, as keytable.Stamp has it
//	1  the count of the limit that was charged last, 32 bits | the rest, in so many
//	   parts of a nanosecond, 32 bits
//
// The flag says that the key was limited, or half full, since it is known.
type throttleLevels struct {
	// now is the newest time at which a key was added: a bucket that is empty
	// then may be forgotten.
	now atomic.Int64

	// floor is the newest time at which one was. A key that is added is judged
	// at floor at least, see records.floor.
	floor atomic.Int64
}

const levelCountShift = 32

// levelOf returns the words of a record as those of a bucket, and the count that
// their rest is in parts of.
func levelOf(r []uint64, w *[limit.BucketWords]uint64) (count uint64) {
	w[0], w[1] = r[0], r[1]&(1<<levelCountShift-1)
	return r[1] >> levelCountShift
}

func setLevel(r []uint64, w *[limit.BucketWords]uint64, count uint64) {
	r[0], r[1] = w[0], count<<levelCountShift|w[1]
}

// added says that a key is about to be added at now.
func (l *throttleLevels) added(now int64) { raise(&l.now, now) }

// raise makes a no less than t.
func raise(a *atomic.Int64, t int64) {
	for was := a.Load(); was < t && !a.CompareAndSwap(was, t); {
		was = a.Load()
	}
}

// Base is of no use here: times in records are whole.
func (l *throttleLevels) Base(*[keytable.MaxBases]int64) {}

// Rebase has nothing to do.
func (l *throttleLevels) Rebase(keytable.Record, *[keytable.MaxBases]int64) {}

// Expired reports whether the bucket is empty.
func (l *throttleLevels) Expired(r keytable.Record) bool {
	now := l.now.Load()
	if empty, rest := r.Words()[0], r.Words()[1]&(1<<levelCountShift-1); keytable.Time(empty) > now || keytable.Time(empty) == now && rest > 0 {
		return false
	}
	raise(&l.floor, now)
	return true
}

// Weight returns what is forgotten first: what will be empty first.
func (l *throttleLevels) Weight(r keytable.Record) uint64 {
	if r.Flag() {
		return keytable.Protected
	}
	return min(r.Words()[0], math.MaxUint64-1)
}

// Drop has nothing to give back.
func (l *throttleLevels) Drop(keytable.Record) {}
