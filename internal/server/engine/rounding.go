package engine

import "time"

// RoundUp returns how many units a wait of d is, rounded up, so that who waits as
// told has waited long enough; and -1 for [ratelimit.Never], which no waiting ends.
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

// EpochMillis returns t in milliseconds since 1970, rounded up, and 0 for no time.
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
