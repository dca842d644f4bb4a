package replay

import (
	"sort"
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
	"github.com/lately-go/lately/ratelimit"
)

// window returns the charged events in the window of the limit that decided the explained
// event. For algorithms that count whole events, the outcome has their number, and these
// are the last ones. Algorithms from which events leave little by little have a window of
// their own.
func (x *explaining) window(rule *ratelimit.Rule, f *foundRule, counted []int32) []int32 {
	l := rule.Limits[f.LimitIndex]
	if l.AtMost > 0 && l.Burst == 0 {
		l.N = f.Limit // that the event brought
	}
	switch rule.Algorithm {
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		return x.sinceEmpty(l, counted)
	case ratelimit.TwoBucket:
		return x.inSlots(int64(l.MaxLate(rule.Algorithm)), int64(l.Span), counted)
	}
	return lastOf(counted, f.Limit-f.Remaining)
}

// sinceEmpty returns the events since a bucket that drains l.N in a span was empty: each
// came before what the others had added was drained.
func (x *explaining) sinceEmpty(l ratelimit.Limit, counted []int32) []int32 {
	if l.N == 0 {
		return nil
	}
	unit, rest := int64(l.Span)/int64(l.N), uint64(l.Span)%l.N
	var empty int64 // when the bucket is, and the rest in 1/N ns
	var part uint64
	first := 0
	for i, event := range counted {
		if t := x.times[event]; i == 0 || t > empty || t == empty && part == 0 {
			first, empty, part = i, t, 0
		}
		empty += unit
		if part += rest; part >= l.N {
			empty, part = empty+1, part-l.N
		}
	}
	if t := x.times[x.found.event]; t > empty {
		return nil
	}
	return counted[first:]
}

// inSlots returns the events whose slot overlaps the window that ends at the explained
// event.
func (x *explaining) inSlots(width, span int64, counted []int32) []int32 {
	tick := int64(max(x.run.Resolution, time.Nanosecond))
	first := (ring.FloorDiv(x.times[x.found.event]-span, tick) + 1) * tick
	from := sort.Search(len(counted), func(i int) bool {
		end := (ring.FloorDiv(x.times[counted[i]], width) + 1) * width
		return ring.FloorDiv(end-1, tick)*tick >= first
	})
	return counted[from:]
}

func (x *explaining) lines(events []int32) (lines []LogLine, leftOut int64) {
	last := lastOf(events, maxCounted)
	lines = make([]LogLine, len(last))
	for i, event := range last {
		lines[i] = x.line(event)
	}
	return lines, int64(len(events) - len(last))
}

func (x *explaining) line(event int32) LogLine {
	p := x.places[event]
	return LogLine{epoch(x.times[event]), x.run.Files[p.file()], p.line()}
}

func lastOf(events []int32, n uint64) []int32 {
	return events[len(events)-int(min(n, uint64(len(events)))):]
}
