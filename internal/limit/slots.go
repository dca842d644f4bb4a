package limit

import (
	"math/bits"

	"github.com/lately-go/lately/internal/counting/ring"
)

// slots is a span cut into slots of equal width, where times are multiples of a
// resolution: its representable times. A slot counts as long as one of its
// representable times may still be in the window.
type slots struct {
	width, span, resolution int64
}

// number returns the number of the slot of t.
func (s *slots) number(t int64) int64 { return ring.FloorDiv(t, s.width) }

// holds reports whether t is in slot k, without a division.
func (s *slots) holds(k, t int64) bool {
	into := t - k*s.width
	return into >= 0 && into < s.width
}

// first returns the first representable time in the window that ends at t.
func (s *slots) first(t int64) int64 {
	if s.resolution == 1 {
		return t - s.span + 1
	}
	return (ring.FloorDiv(t-s.span, s.resolution) + 1) * s.resolution
}

// last returns the last representable time of slot k.
func (s *slots) last(k int64) int64 {
	return s.lastBefore((k + 1) * s.width)
}

// lastBefore returns the last representable time before t.
func (s *slots) lastBefore(t int64) int64 {
	if s.resolution == 1 {
		return t - 1
	}
	return ring.FloorDiv(t-1, s.resolution) * s.resolution
}

// left returns how many of slot k's representable times are at or after first,
// which is in it, and how many it has.
func (s *slots) left(k, first int64) (left, all uint64) {
	if s.resolution == 1 {
		return uint64((k+1)*s.width - first), uint64(s.width)
	}
	last := ring.FloorDiv((k+1)*s.width-1, s.resolution)
	before := ring.FloorDiv(k*s.width-1, s.resolution)
	return uint64(last - first/s.resolution + 1), uint64(last - before)
}

// weigh returns the part of count, which is slot k's, that is in the window that
// ends at t, rounded up, if its events are spread evenly over the slot.
func (s *slots) weigh(count uint64, k, t int64) uint64 {
	first := s.first(t)
	switch {
	case count == 0 || first > s.last(k):
		return 0
	case first <= k*s.width:
		return count
	}
	left, all := s.left(k, first)
	return mulDivUp(count, left, all)
}

// weightDropsAt returns the earliest t, from when slot k begins to leave the window,
// at which weigh is most or less. most is less than count.
func (s *slots) weightDropsAt(count uint64, k int64, most uint64) int64 {
	_, all := s.left(k, s.last(k))
	hi, lo := bits.Mul64(most, all)
	left, _ := bits.Div64(hi, lo, count) // most < count, so hi < count
	return s.last(k) - int64(left)*s.resolution + s.span
}

// mulDivUp returns a·b/c, rounded up, for b <= c.
func mulDivUp(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	if hi == 0 && lo <= 1<<63 {
		return (lo + c - 1) / c // c is no more than a span
	}
	q, r := bits.Div64(hi, lo, c)
	if r > 0 {
		q++
	}
	return q
}
