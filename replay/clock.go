package replay

import (
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"time"
)

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

// ticks floors a time, in seconds and nanoseconds since 1970, to the resolution.
func (c clock) ticks(sec int64, nanos uint32) int64 {
	if c.perSecond > 0 {
		return sec*c.perSecond + int64(nanos)/int64(c.resolution)
	}
	if c.seconds == 1 {
		return sec
	}
	tick := sec / c.seconds
	if sec%c.seconds < 0 {
		tick--
	}
	return tick
}

// time is the inverse of ticks.
func (c clock) time(tick int64) time.Time {
	if c.perSecond == 0 {
		return time.Unix(tick*c.seconds, 0)
	}
	sec := tick / c.perSecond
	part := tick % c.perSecond
	if part < 0 {
		sec, part = sec-1, part+c.perSecond
	}
	return time.Unix(sec, part*int64(c.resolution))
}

// of returns how many ticks d is; d is a multiple of the resolution, or rounded
// up to one.
func (c clock) of(d time.Duration) int64 {
	return int64((d + c.resolution - 1) / c.resolution)
}

// epochOf returns t as epoch seconds in decimal, with as many decimals as it needs.
func epochOf(t time.Time) json.Number {
	if t.Nanosecond() == 0 {
		return json.Number(strconv.FormatInt(t.Unix(), 10))
	}
	rest := big.NewRat(int64(t.Nanosecond()), int64(time.Second))
	return json.Number(decimal(rest.Add(rest, new(big.Rat).SetInt64(t.Unix()))))
}

// appendEpoch appends tick as epoch seconds in decimal, with as many decimals
// as it needs: none at a resolution of whole seconds.
func (c clock) appendEpoch(dst []byte, tick int64) []byte {
	if c.perSecond == 0 {
		return strconv.AppendInt(dst, tick*c.seconds, 10)
	}
	return append(dst, decimal(new(big.Rat).SetFrac64(tick, c.perSecond))...)
}

// decimal returns r with up to nine decimals.
func decimal(r *big.Rat) string {
	return strings.TrimSuffix(strings.TrimRight(r.FloatString(9), "0"), ".")
}
