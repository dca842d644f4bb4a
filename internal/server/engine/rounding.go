package engine

import "time"

// RoundUp returns d in units, rounded up, so that a client that waits this long has waited
// long enough. It returns -1 for [ratelimit.Never].
func RoundUp(d, unit time.Duration) int64 {
	if d < 0 {
		return -1
	}
	n := int64(d / unit)
	if d%unit > 0 {
		n++
	}
	return n
}

// EpochMillis returns t in milliseconds since 1970, rounded up, and 0 for the zero time.
func EpochMillis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	ms := t.UnixMilli()
	if t.Nanosecond()%1e6 > 0 {
		ms++
	}
	return ms
}
