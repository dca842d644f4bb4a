package replay

import (
	"cmp"
	"time"
)

const second = uint32(time.Second)

// A line must have a time of these years: the times, and the differences of any two, are
// counted in nanoseconds.
const (
	firstYear, lastYear = 1900, 2149

	firstTime = -2208988800 // 1900-01-01T00:00:00Z
	endTime   = 5680281600  // 2150-01-01T00:00:00Z
)

func inRange(t time.Time) bool { return firstTime <= t.Unix() && t.Unix() < endTime }

// precisions returns the precision of a log's times, and that of the format in it whose
// times are the coarsest: the largest power of ten of a second, at most one second, of
// which all times are multiples. They depend on the times only, so a log of milliseconds
// that are all 0 has a precision of a second.
func (r *run) precisions() (finest, coarsest time.Duration) {
	grains := make(map[string]uint32) // by format
	for _, l := range r.logs {
		if l.grain > 0 {
			name := l.format.String()
			grains[name] = min(l.grain, cmp.Or(grains[name], second))
		}
	}
	finest, coarsest = time.Second, 1
	for _, grain := range grains {
		finest, coarsest = min(finest, time.Duration(grain)), max(coarsest, time.Duration(grain))
	}
	return finest, coarsest
}
