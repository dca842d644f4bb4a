package replay

import "time"

const second = uint32(time.Second)

// precisionOf returns the precision of a log's times: the largest power of ten of a
// second, at most one second, of which all of them are multiples. It depends on the
// times only, so a log of milliseconds that are all 0 has a precision of a second.
// A log of nanoseconds that reaches beyond the years that an int64 can count them
// in, 1720 to 2219, is read to 100 ns.
func precisionOf(blocks []*parsed) time.Duration {
	grain, far := second, false
	for _, b := range blocks {
		grain = min(grain, b.grain)
	}
	if grain >= 100 {
		return time.Duration(grain)
	}
	for _, b := range blocks {
		for _, sec := range b.times {
			far = far || sec < firstNanos || sec >= endNanos
		}
	}
	if far {
		return 100
	}
	return time.Duration(grain)
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
