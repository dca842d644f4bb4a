package window

import (
	"cmp"
	"fmt"
	"time"
)

// A liveClock is the source of the current time: the wall clock when it was made plus
// the monotonic time since. It keeps no package-level base, so that it works in
// a testing/synctest bubble, and is not changed after it was made.
//
// Every verb of the types that have one begins with now or nanos, which panic for
// the zero liveClock, which a zero Counter, Table and so on has.
type liveClock struct {
	base time.Time // when it was made, with its monotonic reading
	wall int64     // base in nanoseconds since 1970, never 0
}

func newLiveClock() liveClock {
	base := time.Now()
	return liveClock{base: base, wall: cmp.Or(min(max(base.UnixNano(), minTime), maxTime), 1)}
}

// zeroValue is the panic of a value that cannot work.
const zeroValue = "window: this value is the zero value of its type, which is not usable: make it with its constructor, such as NewCounter"

// mustBeMade panics for the zero liveClock.
func (c *liveClock) mustBeMade() {
	if c.wall == 0 {
		panic(zeroValue)
	}
}

// now reads the monotonic clock, once.
func (c *liveClock) now() int64 {
	c.mustBeMade()
	return c.wall + int64(time.Since(c.base))
}

// nanos puts t on this clock: by its monotonic reading if it has one, else by
// its wall time.
func (c *liveClock) nanos(t time.Time) int64 {
	c.mustBeMade()
	// In removes the monotonic reading, so a time that it does not change is without.
	// Sub takes three times as long for such a time.
	if s := t.Unix(); -farSeconds < s && s < farSeconds && t.In(t.Location()) == t {
		return s*int64(time.Second) + int64(t.Nanosecond())
	}
	return c.nanosSlow(t)
}

// farSeconds bounds the times that are converted without a look at the ends: to
// those between 1748 and 2191.
const farSeconds = 7_000_000_000

// nanosSlow is nanos of any time. Sub takes the monotonic readings where both
// times have one, and saturates; so does the sum.
func (c *liveClock) nanosSlow(t time.Time) int64 {
	d := int64(t.Sub(c.base))
	switch {
	case d > 0 && c.wall > maxTime-d:
		return maxTime
	case d < 0 && c.wall < minTime-d:
		return minTime
	}
	return c.wall + d
}

// A moment is the time that a read is about: a given one, or now. A live read is about
// the newest slot if that is ahead of the clock.
type moment struct {
	t    int64
	live bool
}

func live(now int64) moment { return moment{now, true} }

func (c *liveClock) at(t time.Time) moment { return moment{c.nanos(t), false} }

// checkSpan returns an error for a span that a read of a window of length
// longest cannot answer.
func checkSpan(span, longest time.Duration) error {
	if span <= 0 || span > longest {
		return fmt.Errorf("window: span %v: must be positive and at most %v, the longest span here", span, longest)
	}
	return nil
}
