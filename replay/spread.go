package replay

import (
	"time"
)

// timeRuns is how many events there are at each time, over all chunks.
type timeRuns struct {
	first, last int64
	times       []int64 // of a run; rounded down to a multiple of width
	counts      []int64 // events of the run
	width       int64   // 0 is exact
}

// maxRuns is how many times a timeRuns tells apart. More of them are rounded down, by less
// than the span of the log over half of that.
const maxRuns = 1 << 19

// add adds times.
func (r *timeRuns) add(times []int64) {
	for _, t := range times {
		if r.width > 0 {
			t = floorDiv(t, r.width) * r.width
		}
		if n := len(r.times); n > 0 && r.times[n-1] == t {
			r.counts[n-1]++
			continue
		}
		r.times, r.counts = append(r.times, t), append(r.counts, 1)
		if len(r.times) > maxRuns {
			r.halve()
		}
	}
}

// halve makes the runs so wide that at most half of them are left.
func (r *timeRuns) halve() {
	for len(r.times) > maxRuns/2 {
		r.width = max(2*r.width, 1)
		n := 0
		for i, t := range r.times {
			t = floorDiv(t, r.width) * r.width
			if n > 0 && r.times[n-1] == t {
				r.counts[n-1] += r.counts[i]
				continue
			}
			r.times[n], r.counts[n] = t, r.counts[i]
			n++
		}
		r.times, r.counts = r.times[:n], r.counts[:n]
	}
}

// timelineParts is how many parts the report's timeline has.
const timelineParts = 60

// countTimes counts the times of the chunk. Without a lateness that is all of them.
func (e *events) countTimes() {
	first, last, _ := e.span()
	if e.before > 0 {
		first, last = min(first, e.spread.first), max(last, e.spread.last)
	}
	e.spread.first, e.spread.last = first, last
	if e.run.Lateness > 0 {
		e.spread.add(e.times)
	} else {
		e.spread.times = e.times
	}
}

// reportTimes reports the first and last time, and the events in equal parts of the time
// between them.
func (e *events) reportTimes() {
	s := &e.spread
	if len(s.times) == 0 {
		return
	}
	first, last := epoch(s.first), epoch(s.last)
	e.report.First, e.report.Last = &first, &last
	parts := make([]int64, timelineParts)
	unit := int64(e.run.resolution)
	width := ((s.last-s.first)/unit/timelineParts + 1) * unit
	for i, t := range s.times {
		n := int64(1)
		if s.counts != nil {
			n = s.counts[i]
		}
		parts[max(t-s.first, 0)/width] += n
	}
	e.report.Timeline, e.report.Bar = parts[:(s.last-s.first)/width+1], time.Duration(width)
}
