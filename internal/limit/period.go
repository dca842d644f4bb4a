package limit

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
)

// A Period is what [Calendar] counts in.
type Period uint8

const (
	Second Period = iota + 1 // of the zone's wall clock
	Minute                   // from second 0 of the wall clock
	Hour                     // from minute 0 of the wall clock
	Day                      // from midnight to midnight: 23 or 25 hours when the clocks change
	Week                     // from Monday
	Month                    // of the calendar
	numPeriods
)

var periodNames = [numPeriods]string{"", "second", "minute", "hour", "day", "week", "month"}

// String returns the period's name as in a rules file, or "" for 0.
func (p Period) String() string {
	if p < numPeriods {
		return periodNames[p]
	}
	return "period?"
}

// lengths are how long the periods are, a month at most.
var lengths = [numPeriods]time.Duration{
	Second: time.Second, Minute: time.Minute, Hour: time.Hour,
	Day: 24 * time.Hour, Week: 7 * 24 * time.Hour, Month: 31 * 24 * time.Hour,
}

// Length returns how long p is, a month at most, or 0 if there is no such period.
func (p Period) Length() time.Duration {
	if p < numPeriods {
		return lengths[p]
	}
	return 0
}

// PeriodOf returns the period that d, its length, may stand for, or 0. A month has none.
func PeriodOf(d time.Duration) Period { return Period(max(slices.Index(lengths[:Month], d), 0)) }

// Bounds returns the period that t is in, [start, end), by the wall clock of
// zone.
//
// A second, minute or hour ends with the wall clock's, and where the zone changes
// its offset: an hour that the clocks show twice is two. A longer period begins
// at the first moment when the wall clock shows its first day or a later one:
// midnight, or the end of the gap if there is no midnight; if clocks go back over
// it, it does not begin twice.
func (p Period) Bounds(t int64, zone *time.Location) (start, end int64) {
	sec, wall := ring.FloorDiv(t, 1e9), clock{zone}
	if p <= Hour {
		return nanos(wall.part(sec, [...]int64{Second: 1, Minute: 60, Hour: 3600}[p]))
	}
	first, next := p.dates(time.Unix(sec, 0).In(zone).Date())
	begin, over := wall.first(first.Unix()), wall.first(next.Unix())
	for over <= sec { // clocks went back over midnight: the later day has begun
		_, next = p.dates(next.Date())
		begin, over = over, wall.first(next.Unix())
	}
	return nanos(begin, over)
}

// dates returns the first day of the period that has the day in it, and of the
// next one, as midnights of UTC.
func (p Period) dates(year int, month time.Month, day int) (first, next time.Time) {
	switch p {
	case Month:
		return date(year, month, 1), date(year, month+1, 1)
	case Week:
		sinceMonday := (int(date(year, month, day).Weekday()) + 6) % 7
		return date(year, month, day-sinceMonday), date(year, month, day-sinceMonday+7)
	}
	return date(year, month, day), date(year, month, day+1)
}

func date(year int, month time.Month, day int) time.Time {
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// nanos turns seconds into nanoseconds, at most the ends of int64.
func nanos(start, end int64) (int64, int64) {
	const most = math.MaxInt64 / int64(time.Second)
	return max(start, -most) * 1e9, min(end, most) * 1e9
}

// A clock is the wall clock of a zone. Times are seconds since 1970, what the
// clock shows is given as the time at which UTC shows it. It looks at offsets
// only: what [time.Time.ZoneBounds] says of years to come has bounds in it where
// nothing changes, and on the last day of a leap year it ends before it begins.
type clock struct {
	zone *time.Location
}

func (c clock) offset(t int64) int64 {
	_, offset := time.Unix(t, 0).In(c.zone).Zone()
	return int64(offset)
}

// steady returns the first time after t at which the offset is not t's, or until
// if that is before. There is no more than one change between them.
func (c clock) steady(t, until int64) int64 {
	offset := c.offset(t)
	if c.offset(until-1) == offset {
		return until
	}
	return t + int64(sort.Search(int(until-t), func(i int) bool { return c.offset(t+int64(i)) != offset }))
}

// part returns the bounds of the part of the day that t is in, of width seconds.
func (c clock) part(t, width int64) (start, end int64) {
	offset := c.offset(t)
	start = ring.FloorDiv(t+offset, width)*width - offset
	end = c.steady(t, start+width)
	if c.offset(start) != offset {
		start = c.steady(start, t+1)
	}
	return start, end
}

// first returns the first time when the clock shows what it is asked for, or a
// later time.
func (c clock) first(shown int64) int64 {
	const hour = 3600
	for t := shown - 26*hour; ; { // no offset is more
		end := c.steady(t, t+6*hour)
		if first := shown - c.offset(t); first < end {
			return max(first, t)
		}
		t = end
	}
}
