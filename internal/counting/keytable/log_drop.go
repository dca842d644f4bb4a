package keytable

import (
	"math"
	"sort"
)

// How times leave a log: they expire, or they are taken back.

// Expire drops all times up to and including gone and returns how many are left.
func (b *Blocks) Expire(l []uint64, gone int64) int {
	if int64(l[logOldest]) <= gone {
		b.expire(l, gone)
	}
	return b.Len(l)
}

// expire is Expire when there may be something to drop.
func (b *Blocks) expire(l []uint64, gone int64) {
	n := b.Len(l)
	if n == 0 { // the oldest time is that of before
		l[logOldest] = math.MaxInt64
		return
	}
	times, head := b.places(l)
	k, first := 1, wrap(head+1, len(times))
	for k < n && int64(times[first]) <= gone {
		if k++; k == manyExpired {
			k += sort.Search(n-k, func(i int) bool { return int64(times[wrap(head+k+i, len(times))]) > gone })
			break
		}
		first = wrap(first+1, len(times))
	}
	l[0] &^= logLost
	if b.drop(l, times, head, k); n-k == 1 && class(l) != 0 { // the block is not worth keeping
		last := l[logOldest]
		b.Clear(l)
		l[0], l[logOldest] = 1, last
	}
}

// Drop takes the n oldest times out of the log l, or all if it has fewer, and
// returns how many. The cost does not depend on n.
func (b *Blocks) Drop(l []uint64, n int) int {
	if n = min(n, b.Len(l)); n > 0 {
		times, head := b.places(l)
		b.drop(l, times, head, n)
	}
	return n
}

// drop takes the n oldest times, one at least, out of l, whose places are times.
func (b *Blocks) drop(l, times []uint64, head, n int) {
	size := b.Len(l)
	if n == size {
		b.Clear(l)
		return
	}
	if class(l) == 0 {
		copy(times, times[n:size])
	} else {
		head = wrap(head+n, len(times))
		l[logOldest], l[logHead] = times[head], uint64(head)
	}
	l[0] -= uint64(n)
}

// Remove takes up to n times that are equal to t out of l, and returns how many.
func (b *Blocks) Remove(l []uint64, t int64, n int) int {
	times, head := b.places(l)
	size := b.Len(l)
	at := func(i int) *uint64 { return &times[wrap(head+i, len(times))] }
	first := sort.Search(size, func(i int) bool { return int64(*at(i)) >= t })
	k := 0
	for k < n && first+k < size && int64(*at(first + k)) == t {
		k++
	}
	if k == 0 {
		return 0
	}
	if class(l) == 0 || first > (size-k)/2 {
		for i := first; i < size-k; i++ {
			*at(i) = *at(i + k)
		}
		b.cut(l, k)
		return k
	}
	for i := first - 1; i >= 0; i-- {
		*at(i + k) = *at(i)
	}
	b.drop(l, times, head, k)
	return k
}

// cut takes the k newest times out of l.
func (b *Blocks) cut(l []uint64, k int) {
	n := b.Len(l) - k
	if n == 0 {
		b.Clear(l)
		return
	}
	if l[0] -= uint64(k); class(l) != 0 {
		l[logOldest], l[logNewest] = uint64(b.At(l, 0)), uint64(b.At(l, n-1))
	}
}
