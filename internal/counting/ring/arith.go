package ring

import "math/bits"

// FloorDiv returns a / b rounded down, for b > 0. Go's division rounds toward zero, which
// would make the slots on either side of 1970 one slot.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if q*b > a {
		q--
	}
	return q
}

// Oldest returns the number of the oldest slot of that width that lies wholly
// inside (t-span, t], and whether the slot before it is partly inside, that is
// whether its last representable time is later than t-span.
//
// The slot that t lies in counts as inside although it goes on after t: nothing
// in it is later than now. The caller ensures that t-span does not overflow.
func Oldest(t, span, width int64) (slot int64, partly bool) {
	left := t - span // the last time outside
	before := FloorDiv(left, width)
	return before + 1, left-before*width < width-1
}

// Width returns the width of a slot of a span, in nanoseconds, by default: a
// 60th of it, or a 64th where 60 does not divide it. 64 divides whole milliseconds.
func Width(span int64) int64 {
	if span%60 == 0 {
		return span / 60
	}
	return span / 64
}

// Size returns the length of a ring that holds that many slots and the partly
// expired one before them: the smallest power of two above slots.
func Size(slots int) int {
	return 1 << bits.Len(uint(slots))
}
