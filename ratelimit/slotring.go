package ratelimit

import (
	"math"
	"time"

	"github.com/lately-go/lately/internal/ring"
)

// A slotRing is a window of slots in a record, judged on hi: a slot counts as long
// as one of its representable times may still be in the window. Its words are
//
//	0  number of the oldest slot that may hold a count
//	1  number of the newest slot
//	2  sum of all slots
//	3… counts, two to a word, slot k at position k mod (slots+1)
//
// Slots outside [oldest, newest] are zero, and the sum is kept as slots come
// and go, so that a decision never adds up slots. All zero words are an empty
// window, whatever the time.
type slotRing struct {
	width      int64 // of a slot, in nanoseconds
	slots      int64 // in the span; 0 says that there is no ring
	resolution int64 // times are multiples of it
}

func newSlotRing(span, resolution time.Duration) slotRing {
	r := slotRing{slots: 60, resolution: max(int64(resolution), 1)}
	if int64(span)%r.slots != 0 {
		r.slots = 64 // divides every whole millisecond
	}
	r.width = int64(span) / r.slots
	return r
}

const (
	ringOldest = iota
	ringNewest
	ringSum
	ringCounts
)

func (r *slotRing) words() int { return ringCounts + int(r.slots+2)/2 }

// advance drops the slots that lie wholly at or before gone, makes the slot of
// t the newest and returns the sum.
func (r *slotRing) advance(w []uint64, t, gone int64) uint64 {
	now := ring.Floor(t, r.width)
	if w[ringSum] == 0 {
		w[ringOldest], w[ringNewest] = uint64(now), uint64(now)
		return 0
	}
	keep := ring.Floor(r.after(gone), r.width)
	oldest, end := int64(w[ringOldest]), min(keep, int64(w[ringNewest])+1)
	for ; oldest < end; oldest++ {
		w[ringSum] -= uint64(r.take(w, oldest))
	}
	if w[ringSum] == 0 {
		oldest = now
	}
	w[ringOldest], w[ringNewest] = uint64(oldest), uint64(now)
	return w[ringSum]
}

// after returns the first representable time after t.
func (r *slotRing) after(t int64) int64 {
	if r.resolution == 1 {
		return t + 1
	}
	return (ring.Floor(t, r.resolution) + 1) * r.resolution
}

// charge adds cost to the newest slot, which saturates.
func (r *slotRing) charge(w []uint64, cost uint64) {
	word, shift := r.place(int64(w[ringNewest]))
	count := w[word] >> shift & math.MaxUint32
	added := min(cost, math.MaxUint32-count)
	w[word] += added << shift
	w[ringSum] += added
}

// gone returns the time t for which the first slots, up to the one that brings
// their counts to n, are all at or before t.
func (r *slotRing) gone(w []uint64, n uint64) int64 {
	k, newest := int64(w[ringOldest]), int64(w[ringNewest])
	for left := n; k < newest; k++ {
		word, shift := r.place(k)
		c := w[word] >> shift & math.MaxUint32
		if c >= left {
			break
		}
		left -= c
	}
	// The last representable time in slot k.
	return ring.Floor((k+1)*r.width-1, r.resolution) * r.resolution
}

// take empties slot k and returns what was in it.
func (r *slotRing) take(w []uint64, k int64) uint32 {
	word, shift := r.place(k)
	count := uint32(w[word] >> shift)
	w[word] &^= math.MaxUint32 << shift
	return count
}

// place returns the word and the shift of slot k's count.
func (r *slotRing) place(k int64) (word int, shift uint) {
	size := r.slots + 1
	i := k % size
	if i < 0 {
		i += size
	}
	return ringCounts + int(i>>1), uint(i&1) * 32
}
