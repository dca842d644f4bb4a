package keytable

import (
	"math"
	"time"
)

// A time is kept in a record as a word with its sign bit turned, so that the
// zero word of a new record is the earliest time of all.

// Stamp returns the word of the time t, in nanoseconds since 1970.
func Stamp(t int64) uint64 { return uint64(t) ^ 1<<63 }

// Time returns the time of a word that Stamp made.
func Time(word uint64) int64 { return int64(word ^ 1<<63) }

// Nanos returns t in nanoseconds since 1970, kept four times span away from
// the ends of int64, so that judging a window of span at that time, or a ban as
// long, cannot overflow.
func Nanos(t time.Time, span time.Duration) int64 {
	most := math.MaxInt64 - 4*int64(span)
	switch sec := t.Unix(); {
	case sec >= most/1e9:
		return most
	case sec <= -most/1e9:
		return -most
	}
	return t.UnixNano()
}
