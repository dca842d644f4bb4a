// Package history has the decisions of a server over time: of each second of the last two minutes
// and of each minute of the last day, for charts, with the marks of what an operator did.
package history

import (
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
)

// A History has the decisions of each second of the last two minutes and of each minute of
// the last day, and what happened under hot rules. Decisions do not pay for it. With
// MaxRules limits and bans and MaxHot hot rules it takes 10 MiB. It is safe for concurrent use.
type History struct {
	measure func() Sample

	mu       sync.Mutex
	ticks    int
	began    time.Time
	second   part   // since the start of this process, to the end of the last of seconds
	minute   part   // to the end of the last of minutes
	seconds  []part // oldest first
	minutes  []part
	restored int                  // how many of minutes are of processes before this one
	marks    []api.Mark           // oldest first
	handled  map[string]time.Time // the last ban by hand, by the type of its mark
}

const (
	// MaxMinutes is how many minutes are kept: a day.
	MaxMinutes = 24 * 60

	// MaxRules bounds the limits and bans of a Sample: the first of the rules file.
	MaxRules = 128

	// MaxHot bounds the hot rules of a Sample.
	MaxHot = 32

	keptSeconds = 120
	keptMarks   = 256
)

// Outcomes counts decisions or hot keys: the fields of api.Totals, api.RuleTotals or
// api.HotTotals, in order.
type Outcomes [5]uint64

// since returns what was counted between earlier and o. If o has less, the counters began
// again at 0 in between.
func (o Outcomes) since(earlier Outcomes) Outcomes {
	d := o
	for i := range o {
		if o[i] < earlier[i] {
			return o
		}
		d[i] -= earlier[i]
	}
	return d
}

// A Sample is what was counted since the start of the process: by all decisions, by the first
// MaxRules limits and bans, and by the first MaxHot hot rules.
type Sample struct {
	All        Outcomes
	Rules, Hot Rules
}

// Rules is what some rules have counted.
type Rules struct {
	names  []string // shared by samples while they stay the same
	counts []Outcomes
}

// Add adds a rule.
func (r *Rules) Add(name string, o Outcomes) {
	r.names, r.counts = append(r.names, name), append(r.counts, o)
}

// Len returns the number of rules.
func (r *Rules) Len() int { return len(r.names) }

// since returns what was counted by each rule since earlier, or since it began.
func (r *Rules) since(earlier *Rules) Rules {
	counts := slices.Clone(r.counts)
	for i, name := range r.names {
		j := i
		if j >= len(earlier.names) || earlier.names[j] != name {
			j = slices.Index(earlier.names, name)
		}
		if j >= 0 {
			counts[i] = counts[i].since(earlier.counts[j])
		}
	}
	return Rules{r.names, counts}
}

// share makes the names of r those of earlier, if they are the same.
func (r *Rules) share(earlier *Rules) {
	if slices.Equal(r.names, earlier.names) {
		r.names = earlier.names
	}
}

// A part is what was counted in a part of the time.
type part struct {
	from, to time.Time
	Sample
}

// since returns what was counted between the ends of earlier and x, which begin together.
func (x *part) since(earlier *part) part {
	return part{earlier.to, x.to, Sample{x.All.since(earlier.All), x.Rules.since(&earlier.Rules), x.Hot.since(&earlier.Hot)}}
}

// keep appends x to list and keeps its last most elements.
func keep[T any](list []T, x T, most int) []T {
	if len(list) >= most {
		list = slices.Delete(list, 0, len(list)-most+1)
	}
	return append(list, x)
}

// New returns a History of what measure counts, which began at that time.
func New(started time.Time, measure func() Sample) *History {
	first := part{started, time.Now(), measure()}
	return &History{measure: measure, marks: []api.Mark{{Time: started.UTC(), Type: Started}}, second: first, minute: first, began: first.to}
}

// Tick adds a second. It must be called each second.
func (h *History) Tick() {
	m := h.measure()
	h.mu.Lock()
	defer h.mu.Unlock()
	x := part{h.second.from, time.Now(), m}
	x.Rules.share(&h.second.Rules)
	x.Hot.share(&h.second.Hot)
	h.seconds = keep(h.seconds, x.since(&h.second), keptSeconds)
	h.second = x
	if h.ticks++; h.ticks%60 == 0 {
		h.minutes = keep(h.minutes, x.since(&h.minute), MaxMinutes)
		h.minute = x
	}
}

// Rates returns the decisions of the last span, from a second to a day, in at most points
// intervals of equal width, oldest first. If the process and what was restored are younger,
// there are fewer, and the oldest is shorter. For more than two minutes the intervals are
// whole minutes, except the newest.
func (h *History) Rates(span time.Duration, points int, perRule bool) []api.Rate {
	h.mu.Lock()
	parts := slices.Clone(h.seconds)
	if span > keptSeconds*time.Second {
		parts = h.wholeMinutes()
	}
	h.mu.Unlock()
	return ratesOf(parts, span, points, perRule)
}

// wholeMinutes returns the minutes, and what has come since the last of them.
//
// REQUIRES: h.mu.
func (h *History) wholeMinutes() []part {
	parts := slices.Clone(h.minutes)
	if h.second.to.After(h.minute.to) {
		parts = append(parts, h.second.since(&h.minute))
	}
	return parts
}

// ratesOf adds parts up to intervals of about span/points, before the end of the last part.
func ratesOf(parts []part, span time.Duration, points int, perRule bool) []api.Rate {
	rates := []api.Rate{}
	width, last := span/time.Duration(points), -1
	for i := range parts {
		p := &parts[i]
		// Samples are never taken quite on time.
		age := int((parts[len(parts)-1].to.Sub(p.to) + time.Second/2) / width)
		if age >= points {
			continue
		}
		if age != last {
			r := api.Rate{From: p.from.UTC(), Rules: make(map[string]api.RuleTotals), Hot: make(map[string]api.HotTotals)}
			if len(rates) > 0 { // a server that was down has decided nothing
				r.From = rates[len(rates)-1].To
			}
			rates, last = append(rates, r), age
		}
		r := &rates[len(rates)-1]
		r.To, r.All = p.to.UTC(), allPlus(r.All, p.All)
		if !perRule {
			continue
		}
		for i, name := range p.Rules.names {
			r.Rules[name] = rulePlus(r.Rules[name], p.Rules.counts[i])
		}
		for i, name := range p.Hot.names {
			r.Hot[name] = hotPlus(r.Hot[name], p.Hot.counts[i])
		}
	}
	return rates
}

func allPlus(t api.Totals, o Outcomes) api.Totals {
	return api.Totals{Allowed: t.Allowed + o[0], Refused: t.Refused + o[1], Banned: t.Banned + o[2], Unmatched: t.Unmatched + o[3], Errors: t.Errors + o[4]}
}

func rulePlus(t api.RuleTotals, o Outcomes) api.RuleTotals {
	return api.RuleTotals{Allowed: t.Allowed + o[0], Refused: t.Refused + o[1], Banned: t.Banned + o[2], Shadow: t.Shadow + o[3], Bans: t.Bans + o[4]}
}

func hotPlus(t api.HotTotals, o Outcomes) api.HotTotals {
	return api.HotTotals{
		Events:      t.Events + o[0],
		CacheCounts: api.CacheCounts{Hits: t.Hits + o[1], Misses: t.Misses + o[2], Loads: t.Loads + o[3], Stale: t.Stale + o[4]},
	}
}

// The types of marks: a start, a reload, a reload that has failed so that the rules stay as they
// were, and bans that were begun and ended by hand.
const (
	Started      = "start"
	Reloaded     = "reload"
	ReloadFailed = "failed"
	BannedByHand = "ban"
	EndedByHand  = "unban"
)

// Manual bans within byHand share one mark, so that a script does not fill the list.
const byHand = 10 * time.Second

// Mark adds a mark of now.
func (h *History) Mark(typ string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.marks = keep(h.marks, api.Mark{Time: time.Now().UTC(), Type: typ}, keptMarks)
}

// MarkBan adds a ban by hand, or the end of one, to the last mark of this type, or a mark of
// its own.
func (h *History) MarkBan(typ string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	since := h.handled[typ]
	if h.handled == nil {
		h.handled = make(map[string]time.Time)
	}
	h.handled[typ] = now
	if now.Sub(since) < byHand {
		for i := range slices.Backward(h.marks) {
			if h.marks[i].Type == typ {
				h.marks[i].Bans++
				return
			}
		}
	}
	// Starts and reloads are kept longer than these.
	if isBan := func(m api.Mark) bool { return m.Bans > 0 }; len(h.marks) >= keptMarks && slices.ContainsFunc(h.marks, isBan) {
		i := slices.IndexFunc(h.marks, isBan)
		h.marks = slices.Delete(h.marks, i, i+1)
	}
	h.marks = keep(h.marks, api.Mark{Time: now.UTC(), Type: typ, Bans: 1}, keptMarks)
}

// Marks returns the newest marks of the last span, up to 256, the oldest first. Restored
// marks are among them.
func (h *History) Marks(span time.Duration) []api.Mark {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := time.Now().Add(-span)
	i, _ := slices.BinarySearchFunc(h.marks, from, func(m api.Mark, t time.Time) int { return m.Time.Compare(t) })
	return append([]api.Mark{}, h.marks[i:]...)
}
