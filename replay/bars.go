package replay

import (
	"bytes"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
)

// A Timeline has the number of events over time, in bars of equal length.
type Timeline struct {
	// Start is the start of the first bar, a multiple of the length of a bar: a bar
	// of a minute begins with a minute.
	Start Epoch `json:"start"`

	// BarSeconds is the length of a bar: 1, 5, 10 or 30 seconds or minutes, 1, 3, 6 or 12
	// hours, 1, 5, 10, 50, 100, 500 or 1500 days, or a decimal part of a second. It is the
	// shortest of these with at most 300 bars that is not shorter than
	// Report.ResolutionSeconds.
	BarSeconds float64 `json:"bar_seconds"`

	Events []int64 `json:"events"` // in each bar

	// Refused are the events that at least one limit or ban refused, whether rules
	// were judged together or alone.
	Refusals
}

// Refusals has the number of refused events in each bar of a [Timeline].
type Refusals struct {
	Refused []int64 `json:"refused,omitempty"` // absent without limits and bans
	Banned  []int64 `json:"banned,omitempty"`  // the part of Refused by a ban
}

// barWidths are the lengths that a bar may have. Each is a multiple of the one before, so
// that bars can be joined to longer ones.
var barWidths = func() (widths []int64) {
	for unit := time.Nanosecond; unit < time.Second; unit *= 10 {
		widths = append(widths, int64(unit), int64(5*unit))
	}
	for _, w := range []time.Duration{
		1, 5, 10, 30, 60, 5 * 60, 10 * 60, 30 * 60, 60 * 60, 3 * 60 * 60, 6 * 60 * 60, 12 * 60 * 60,
		24 * 60 * 60, 5 * 24 * 60 * 60, 10 * 24 * 60 * 60, 50 * 24 * 60 * 60, 100 * 24 * 60 * 60, 500 * 24 * 60 * 60, 1500 * 24 * 60 * 60,
	} {
		widths = append(widths, int64(w*time.Second))
	}
	return widths
}()

// maxBars is how many bars a Timeline has at most.
const maxBars = 300

// A barScale divides the time from first to last into bars.
type barScale struct {
	width       int // which of barWidths
	first, last int64
}

// number returns the number of the bar of a time, from 0.
func (s barScale) number(t int64) int64 {
	w := barWidths[s.width]
	return ring.FloorDiv(t, w) - ring.FloorDiv(s.first, w)
}

// start returns when a bar begins.
func (s barScale) start(number int64) int64 {
	w := barWidths[s.width]
	return (ring.FloorDiv(s.first, w) + number) * w
}

func (s barScale) bars() int64 { return s.number(s.last) + 1 }

// cover makes the bars longer until there are at most so many. A longer scale never
// becomes shorter, so the bars do not depend on the steps in which the times came.
func (s barScale) cover(most int64) barScale {
	for s.bars() > most {
		s.width++
	}
	return s
}

// rebin returns the counts of bars of s, given those of a scale whose bars and times s
// contains.
func (s barScale) rebin(counts []int64, from barScale) []int64 {
	if s == from && counts != nil {
		return counts
	}
	out := make([]int64, s.bars())
	for i, n := range counts {
		out[s.number(from.start(int64(i)))] += n
	}
	return out
}

// countBars counts the events of the chunk over time, and those that were refused.
func (e *events) countBars() {
	old := e.scale
	first, last, ok := e.span()
	if !ok {
		return
	}
	if e.before > 0 {
		first, last = min(first, old.first), max(last, old.last)
	}
	e.scale = barScale{old.width, first, last}.cover(maxBars)
	tasks := []func(){func() { e.bars = e.countIn(e.bars, old, nil) }}
	add := func(r *Refusals, o outcomes) {
		tasks = append(tasks, func() {
			r.Banned = e.countIn(r.Banned, old, o, banned)
			r.Refused = e.countIn(r.Refused, old, o, refused, banned)
		})
	}
	var judged []outcomes
	for _, j := range e.judgings {
		if j.compared != nil || len(j.rules) == 0 {
			continue
		}
		judged = append(judged, j.outcomes)
		for i := range j.rules {
			add(&j.rules[i].bars, j.rules[i].outcomes)
		}
	}
	if len(judged) > 0 {
		add(&e.refusals, strictest(judged))
	}
	e.run.parallel(len(tasks), func(i int) { tasks[i]() })
}

// strictest returns for each event the strictest outcome in any of all.
func strictest(all []outcomes) outcomes {
	if len(all) == 1 {
		return all[0]
	}
	merged := slices.Clone(all[0])
	for _, o := range all[1:] {
		for i, b := range o {
			merged[i] = max(merged[i], b)
		}
	}
	return merged
}

// countIn adds the events of the chunk to counts of the bars of an older scale, and
// returns counts of those of e.scale. If there are outcomes, it counts only events with
// one of these.
func (e *events) countIn(counts []int64, old barScale, o outcomes, which ...byte) []int64 {
	counts = e.scale.rebin(counts, old)
	for from := 0; from < len(e.times); {
		bar := e.scale.number(e.times[from])
		start := e.scale.start(bar)
		end, to := start+barWidths[e.scale.width], from+1
		for to < len(e.times) && e.times[to] >= start && e.times[to] < end {
			to++
		}
		if o == nil {
			counts[bar] += int64(to - from)
		}
		for _, outcome := range which {
			counts[bar] += int64(bytes.Count(o[from:to], []byte{outcome}))
		}
		from = to
	}
	return counts
}

// reportTimes reports the first and last time, and the events over time.
func (e *events) reportTimes() {
	if e.bars == nil {
		return
	}
	e.report.First, e.report.Last = new(epoch(e.scale.first)), new(epoch(e.scale.last))
	scale := e.scale
	for barWidths[scale.width] < int64(e.run.resolution) && scale.width < len(barWidths)-1 {
		scale.width++
	}
	t := &Timeline{
		Start: epoch(scale.start(0)), BarSeconds: time.Duration(barWidths[scale.width]).Seconds(),
		Events: scale.rebin(e.bars, e.scale), Refusals: e.refusals.in(scale, e.scale),
	}
	for _, j := range e.judgings {
		for i := range j.rules {
			j.rules[i].bars = j.rules[i].bars.in(scale, e.scale)
		}
	}
	e.report.Timeline = t
}

// in returns r, of the bars of a scale, in those of another.
func (r Refusals) in(scale, from barScale) Refusals {
	if r.Refused == nil {
		return r
	}
	return Refusals{scale.rebin(r.Refused, from), scale.rebin(r.Banned, from)}
}

// scale returns the scale of the bars of t.
func (t *Timeline) scale() barScale {
	width := slices.Index(barWidths, int64(seconds(t.BarSeconds)))
	own := barScale{width, t.Start.UnixNano(), t.Start.UnixNano()}
	own.last = own.start(int64(len(t.Events)) - 1)
	return own
}
