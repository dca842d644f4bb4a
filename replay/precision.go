package replay

import (
	"cmp"
	"slices"
	"time"
)

const second = uint32(time.Second)

// precisions returns the precision of a log's times, and that of the format in it whose
// times are the coarsest: the largest power of ten of a second, at most one second, of
// which all times are multiples. They depend on the times only, so a log of milliseconds
// that are all 0 has a precision of a second. A log of nanoseconds that reaches beyond
// the years that an int64 can count them in, 1720 to 2219, is read to 100 ns.
func precisions(blocks []*parsed) (finest, coarsest time.Duration) {
	grains := make(map[string]uint32) // by format
	far := false
	for _, b := range blocks {
		if len(b.times) == 0 {
			continue
		}
		name := b.format.String()
		grains[name] = min(b.grain, cmp.Or(grains[name], second))
		far = far || slices.Min(b.times) < firstNanos || slices.Max(b.times) >= endNanos
	}
	finest, coarsest = time.Second, 1
	for _, grain := range grains {
		finest, coarsest = min(finest, time.Duration(grain)), max(coarsest, time.Duration(grain))
	}
	if far {
		finest = max(finest, 100)
	}
	return finest, coarsest
}

// The seconds from and before which times are counted in nanoseconds.
const (
	firstNanos = -7889270400 // 1720-01-01T00:00:00Z
	endNanos   = 7889184000  // 2220-01-01T00:00:00Z
)

// toTicks turns times in seconds, with the nanoseconds after them if there are any,
// into ticks.
func (r *run) toTicks(times []int64, nanos []uint32) {
	if r.clock.seconds == 1 {
		return
	}
	rest := uint32(0)
	for i, sec := range times {
		if nanos != nil {
			rest = nanos[i]
		}
		times[i] = r.clock.ticks(sec, rest)
	}
}
