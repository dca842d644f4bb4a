package accesslog

import (
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
)

// A zoneClock turns times of a log without a zone into times since the epoch.
type zoneClock struct {
	zone *time.Location // nil is UTC

	// Local times in [from, to) are ahead of UTC by that many seconds.
	from, to, ahead int64

	last int64 // the last result
}

// seconds returns the time at which clocks in the zone show a local time, both in seconds.
// Clocks that are set back show an hour twice: of the two times, the one nearer to the last
// result is meant. A local time that is skipped when clocks are set forward is read as if
// they had not been set yet.
func (c *zoneClock) seconds(local int64) int64 {
	switch {
	case c.zone == nil:
		return local
	case c.from <= local && local < c.to:
		c.last = local - c.ahead
	default:
		c.last = c.find(local)
	}
	return c.last
}

// find is seconds for a local time outside [from, to), which it moves if no clock is set
// within a day.
func (c *zoneClock) find(local int64) int64 {
	before, after := c.aheadAt(local-daySeconds), c.aheadAt(local+daySeconds)
	if before == after {
		c.from = ring.FloorDiv(local, hourSeconds) * hourSeconds
		c.to, c.ahead = c.from+hourSeconds, before
		return local - before
	}
	early, late := local-max(before, after), local-min(before, after)
	isEarly, isLate := c.aheadAt(early) == local-early, c.aheadAt(late) == local-late
	switch {
	case isEarly && isLate && c.last-early > late-c.last, isLate && !isEarly:
		return late
	case isEarly:
		return early
	}
	return local - before
}

// aheadAt returns by how many seconds the zone is ahead of UTC at a time.
func (c *zoneClock) aheadAt(t int64) int64 {
	_, ahead := time.Unix(t, 0).In(c.zone).Zone()
	return int64(ahead)
}
