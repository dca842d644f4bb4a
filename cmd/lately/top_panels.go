package main

import (
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/rules"
)

// A topRule is what a rule has decided in the span, a second.
type topRule struct {
	name                          string
	all, refused, allowed, banned float64
}

// no is how many events a second the rule refuses, by limits and by bans.
func (r *topRule) no() float64 { return r.refused + r.banned }

// ruleLines returns the rules that the filter lets through, sorted, and the most that
// one of them refuses.
func (m *topModel) ruleLines() (lines []topRule, most float64) {
	span := m.reading.perRule
	for i := range m.rules {
		r := &m.rules[i]
		if r.Kind == "hot" || !m.passes(r.Name, r.Sentence) {
			continue
		}
		line := topRule{name: m.shown(r.Name)}
		if r.Shadow {
			line.name += " (shadow)"
		}
		if span != nil {
			t, seconds := span.Rules[r.Name], max(span.To.Sub(span.From).Seconds(), 0.1)
			line.refused = float64(t.Refused+t.Shadow) / seconds
			line.allowed, line.banned = float64(t.Allowed)/seconds, float64(t.Banned)/seconds
			line.all = line.no() + line.allowed
		}
		most = max(most, line.no())
		lines = append(lines, line)
	}
	slices.SortStableFunc(lines, func(a, b topRule) int {
		switch {
		case m.sort == byName:
			return strings.Compare(a.name, b.name)
		case m.sort == byCount && a.all != b.all:
			return largerFirst(a.all, b.all)
		}
		return largerFirst(a.no(), b.no())
	})
	return lines, most
}

func largerFirst(a, b float64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// rulePanel is what each rule refuses.
func (m *topModel) rulePanel(width int) panel {
	p := panel{m.title("Refusals by rule, a second, last "+m.spanText(), width)}
	lines, most := m.ruleLines()
	if len(lines) == 0 {
		return append(p, m.nothing("no rule", width))
	}
	const figure = 9
	figures := 3
	if width < 56 {
		figures = 2 // how much is allowed is the least of interest
	}
	name, bars := columns(width, figures*figure)
	head := left("", name+bars) + right("refused", figure) + right("banned", figure)
	if figures == 3 {
		head += right("allowed", figure)
	}
	p = append(p, m.paint.dim.Render(head))
	for _, r := range lines {
		line := left(r.name, name) + padded(m.paint.refused.Render(bar(r.no(), most, bars-1)), bars) +
			right(rate(r.refused), figure) + right(rate(r.banned), figure)
		if figures == 3 {
			line += right(rate(r.allowed), figure)
		}
		p = append(p, line)
	}
	return p
}

// columns shares out what figures leave of a line between a name and a bar.
func columns(width, figures int) (name, bars int) {
	room := width - figures
	if bars = min(room*2/5, 40); bars < 6 {
		bars = 0
	}
	return max(room-bars, 1), bars
}

// keyPanel is the top keys of the counter.
func (m *topModel) keyPanel(width int) panel {
	if len(m.reading.counters) == 0 {
		return panel{m.title("Top keys", width), m.nothing("there is no counter: the rules file can have some, and ADD makes one", width)}
	}
	p := panel{m.title("Top keys of "+m.shown(m.reading.counter)+", last "+rules.FormatDuration(m.reading.span), width)}
	keys := slices.Clone(m.reading.top)
	keys = slices.DeleteFunc(keys, func(k client.KeyCount) bool { return !m.passes(k.Key...) })
	if m.sort == byName {
		slices.SortStableFunc(keys, func(a, b client.KeyCount) int { return slices.Compare(a.Key, b.Key) })
	}
	if len(keys) == 0 {
		return append(p, m.nothing("no key", width))
	}
	var most uint64
	figure := 6
	for _, k := range keys {
		most = max(most, k.Hi)
		figure = max(figure, len([]rune(bounded(k.Lo, k.Hi)))+1)
	}
	name, bars := columns(width, figure)
	for _, k := range keys {
		p = append(p, left(m.shown(k.Key...), name-1)+" "+m.keyBar(k, most, bars)+right(bounded(k.Lo, k.Hi), figure))
	}
	return p
}

// keyBar is a bar up to lo, with a light end up to hi.
func (m *topModel) keyBar(k client.KeyCount, most uint64, width int) string {
	sure := bar(float64(k.Lo), float64(most), width)
	cells := len([]rune(sure))
	to := len([]rune(bar(float64(k.Hi), float64(most), width)))
	return padded(m.paint.bar.Render(sure)+m.paint.dim.Render(strings.Repeat("░", max(to-cells, 0))), width)
}

// banPanel is the bans that began last.
func (m *topModel) banPanel(width int) panel {
	p := panel{m.title("Latest bans", width)}
	for i := range m.reading.bans {
		b := &m.reading.bans[i]
		if !m.passes(append([]string{b.Rule, b.Reason}, b.Key...)...) {
			continue
		}
		p = append(p, m.keyLine(b.Rule, b.Key, m.paint.banned.Render, b.Until, width))
	}
	if len(p) == 1 {
		return append(p, m.nothing("no ban", width))
	}
	return p
}

// hotPanel is the keys that are hot.
func (m *topModel) hotPanel(width int) panel {
	p := panel{m.title("Hot keys", width)}
	for i := range m.reading.hot {
		h := &m.reading.hot[i]
		if m.passes(append([]string{h.Rule}, h.Key...)...) && h.Until.After(m.theirs()) {
			p = append(p, m.keyLine(h.Rule, h.Key, m.paint.hot.Render, h.Until, width))
		}
	}
	if len(p) == 1 {
		return append(p, m.nothing("no key is hot", width))
	}
	return p
}

// keyLine is a key, the rule that it is banned or hot under, and how long it still
// is.
func (m *topModel) keyLine(rule string, key []string, paint func(...string) string, until time.Time, width int) string {
	const lastFor = 8
	room := width - lastFor
	ruleWidth := min(room/3, 24)
	return paint(left(m.shown(key...), room-ruleWidth-1)) + " " + m.paint.dim.Render(left(m.shown(rule), ruleWidth)) + right(lasting(until.Sub(m.theirs())), lastFor)
}
