package replay

import "time"

// A clock turns times into ticks, whole resolutions since 1970, and back.
type clock struct {
	resolution time.Duration
	perSecond  int64 // ticks a second, when the resolution is below one
	seconds    int64 // seconds a tick, otherwise
}

func newClock(resolution time.Duration) clock {
	c := clock{resolution: resolution}
	if resolution < time.Second {
		c.perSecond = int64(time.Second / resolution)
	} else {
		c.seconds = int64(resolution / time.Second)
	}
	return c
}

// ticks rounds a time, in seconds and nanoseconds since 1970, down to the resolution.
func (c clock) ticks(sec int64, nanos uint32) int64 {
	if c.perSecond > 0 {
		return sec*c.perSecond + int64(nanos)/int64(c.resolution)
	}
	return floorDiv(sec, c.seconds)
}

// time is the inverse of ticks.
func (c clock) time(tick int64) time.Time {
	if c.perSecond == 0 {
		return time.Unix(tick*c.seconds, 0)
	}
	sec := floorDiv(tick, c.perSecond)
	return time.Unix(sec, (tick-sec*c.perSecond)*int64(c.resolution))
}

// of returns how many ticks d is; d is a multiple of the resolution, or rounded
// up to one.
func (c clock) of(d time.Duration) int64 {
	return int64((d + c.resolution - 1) / c.resolution)
}
