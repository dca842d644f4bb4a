package replay

import (
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// judgingTimes returns the ticks at which events are judged by rules that remember
// an event for no longer than memory: their own. Only a log that spans more time
// than the rules can count in nanoseconds, from 1720 to 2220, has its empty
// stretches shortened to more than that, so that each window holds the events that
// it would. A calendar has no stretch to spare, and rules that remember for years may
// have too few: events beyond what can be counted are then judged at its ends, which
// is a problem to report.
func (e *events) judgingTimes(memory time.Duration, byCalendar bool) []int64 {
	r, times := e.run, e.times
	if !e.far {
		return times
	}
	if byCalendar {
		e.problem("events before 1721 or after 2219 are judged at the end of that time, since a limit counts by the calendar")
		return times
	}
	longest := r.clock.of(memory) + 1
	moments := slices.Compact(slices.Sorted(slices.Values(times)))
	short := make([]int64, len(moments))
	for i := 1; i < len(moments); i++ {
		short[i] = short[i-1] + min(moments[i]-moments[i-1], longest)
	}
	if r.clock.time(short[len(short)-1]).Year() >= 2220 {
		e.problem("the events span more time than rules that remember them for years can count; the last ones are judged at its end")
	}
	at := make([]int64, len(times))
	for i, t := range times {
		place, _ := slices.BinarySearch(moments, t)
		at[i] = short[place]
	}
	return at
}

// isFar reports whether times reach beyond what rules can count in nanoseconds.
func (r *run) isFar(times []int64) bool {
	if len(times) == 0 {
		return false
	}
	first, last := r.clock.time(slices.Min(times)), r.clock.time(slices.Max(times))
	return first.Year() <= 1720 || last.Year() >= 2220
}

// problem reports a problem once.
func (e *events) problem(sentence string) {
	if !slices.Contains(e.report.Problems, sentence) {
		e.report.Problems = append(e.report.Problems, sentence)
	}
}

// remembered returns how long after an event l may still count it: twice its span, as the
// window before may matter and a slot may leave late, or, if refused events fill a bucket,
// twice the time in which a burst drains.
func remembered(l ratelimit.Limit) time.Duration {
	longest := l.Window()
	if l.Burst > l.N && l.N > 0 {
		longest = max(longest, time.Duration(float64(l.Burst)/float64(l.N)*float64(l.Span)))
	}
	return 2 * longest
}

// adaptMemory returns how long after an event a may still know of it: while it is
// averaged, and then until the smoothed average is what it would be without, to
// the last bit of a float.
func adaptMemory(a *ratelimit.Adapt) time.Duration { return a.Span + time.Minute + 40*a.Smooth }

// edges returns what the edges of l's windows are multiples of, under a: the
// span, or for the calendar a day at most. Clocks of a zone are some quarters of
// an hour apart from those of UTC.
func edges(a ratelimit.Algorithm, l ratelimit.Limit, zone *time.Location) time.Duration {
	const quarter, day = 15 * time.Minute, 24 * time.Hour
	switch {
	case a != ratelimit.Calendar:
		return l.Span
	case zone != nil && zone != time.UTC:
		return min(l.Window(), quarter)
	}
	return min(l.Window(), day)
}
