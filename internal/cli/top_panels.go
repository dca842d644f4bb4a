package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// A topRule is what a rule has decided in the span, per second.
type topRule struct {
	name, lacks                   string
	all, refused, allowed, banned float64
}

// no is how many events per second the rule refuses, by limits and by bans.
func (r *topRule) no() float64 { return r.refused + r.banned }

// ruleLines returns the rules that pass the filter, sorted, and the most that one of
// them refuses.
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
		if r.Stats != nil && r.Stats.Lacking > r.Stats.Events()/2 {
			line.lacks = "most events lack " + m.shown(strings.Join(r.Fields, " or "))
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
			return cmp.Compare(b.all, a.all)
		}
		return cmp.Compare(b.no(), a.no())
	})
	return lines, most
}

// passes reports whether one of these texts of a line matches the filter.
func (m *topModel) passes(texts ...string) bool {
	if m.filter == "" {
		return true
	}
	filter := strings.ToLower(m.filter)
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), filter) })
}

// rulePanel is what each rule refuses.
func (m *topModel) rulePanel(width int) panel {
	p := panel{lines: []string{m.title("Refusals by rule, a second, last "+m.spanText(), width)}}
	lines, most := m.ruleLines()
	if len(lines) == 0 {
		p.lines = append(p.lines, m.nothing("no rule", width))
		return p
	}
	const figure = 9
	figures := 3
	if width < 56 {
		figures = 2 // without what was allowed
	}
	name, bars := columns(width, figures*figure)
	head := left("", name+bars) + right("refused", figure) + right("banned", figure)
	if figures == 3 {
		head += right("allowed", figure)
	}
	p.lines = append(p.lines, m.paint.dim.Render(head))
	for _, r := range lines {
		line := left(r.name, name) + padded(m.paint.refused.Render(bar(r.no(), most, bars-1)), bars) +
			right(rate(r.refused), figure) + right(rate(r.banned), figure)
		if figures == 3 {
			line += right(rate(r.allowed), figure)
		}
		p.lines = append(p.lines, line)
		if r.lacks != "" {
			p.lines = append(p.lines, m.paint.wrong.Render(left("  "+r.lacks, width)))
		}
	}
	return p
}

// columns returns the widths of a name and a bar beside the figures of a line.
func columns(width, figures int) (name, bars int) {
	width -= figures
	if bars = min(width*2/5, 40); bars < 6 {
		bars = 0
	}
	return max(width-bars, 1), bars
}

// keyPanel is the top keys of the counter.
func (m *topModel) keyPanel(width int) panel {
	if len(m.reading.counters) == 0 {
		return panel{lines: []string{m.title("Top keys", width), m.nothing("no counter: add one to the rules file, or with ADD", width)}}
	}
	return m.panelOf(keysPanel, "Top keys of "+m.shown(m.reading.counter)+", last "+rulevalue.FormatDuration(m.reading.span), "no key", width)
}

// topKeyLines is the top keys that pass the filter.
func (m *topModel) topKeyLines(width int) (lines []topLine) {
	keys := slices.Clone(m.reading.top)
	keys = slices.DeleteFunc(keys, func(k api.KeyCount) bool { return !m.passes(k.Values()...) })
	if m.sort == byName {
		slices.SortStableFunc(keys, func(a, b api.KeyCount) int { return slices.Compare(a.Values(), b.Values()) })
	}
	var most uint64
	figure := 6
	for _, k := range keys {
		most = max(most, k.Hi)
		figure = max(figure, len([]rune(bounded(k.Lo, k.Hi)))+1)
	}
	var fields []string
	if i := m.reading.counterIndex(); i >= 0 {
		fields = m.reading.counters[i].Fields
	}
	name, bars := columns(width, figure)
	for _, k := range keys {
		text := left(m.shown(k.Values()...), name-1) + " " + m.keyBar(k, most, bars) + right(bounded(k.Lo, k.Hi), figure)
		lines = append(lines, topLine{fields: fields, key: k.Values(), text: text})
	}
	return lines
}

// keyBar is a bar up to lo, with a light end up to hi.
func (m *topModel) keyBar(k api.KeyCount, most uint64, width int) string {
	sure := bar(float64(k.Lo), float64(most), width)
	cells := len([]rune(sure))
	to := len([]rune(bar(float64(k.Hi), float64(most), width)))
	return padded(m.paint.bar.Render(sure)+m.paint.dim.Render(strings.Repeat("░", max(to-cells, 0))), width)
}

// refusedLines is the keys that were refused most, with how many events a second.
func (m *topModel) refusedLines(width int) (lines []topLine) {
	const figure = 9
	for i := range m.reading.refused {
		k := &m.reading.refused[i]
		if !m.passes(append([]string{k.Rule}, k.Values()...)...) {
			continue
		}
		paint := m.paint.refused.Render
		if k.BannedUntil.After(m.theirs()) {
			paint = m.paint.banned.Render
		}
		lines = append(lines, m.keyLine(k.Rule, k.Values(), paint, rate(k.PerSecond)+"/s", figure, width))
	}
	return lines
}

// banLines is the bans that began last.
func (m *topModel) banLines(width int) (lines []topLine) {
	for i := range m.reading.bans {
		b := &m.reading.bans[i]
		if m.passes(append([]string{b.Rule, b.Reason}, b.Values()...)...) {
			lines = append(lines, m.keyLine(b.Rule, b.Values(), m.paint.banned.Render, lasting(b.Until.Sub(m.theirs())), 8, width))
		}
	}
	return lines
}

// hotLines is the keys that are hot.
func (m *topModel) hotLines(width int) (lines []topLine) {
	for i := range m.reading.hot {
		h := &m.reading.hot[i]
		left := "always"
		if !h.Until.IsZero() {
			left = lasting(h.Until.Sub(m.theirs()))
		}
		figure := left
		if h.Rate > 0 {
			figure = rate(h.Rate) + "/s " + right(left, 7)
		}
		if m.passes(append([]string{h.Rule}, h.Values()...)...) && (h.Until.IsZero() || h.Until.After(m.theirs())) {
			lines = append(lines, m.keyLine(h.Rule, h.Values(), m.paint.hot.Render, figure, 17, width))
		}
	}
	return lines
}

// saved is the share of reads that caches of hot keys served from memory in the last minute,
// hour and day, under all rules together; "" if no cache has reported any.
func (m *topModel) saved() string {
	if m.reading == nil {
		return ""
	}
	var spans []api.HotSaved
	for i := range m.reading.hotRules {
		for j, s := range m.reading.hotRules[i].Saved {
			if j == len(spans) {
				spans = append(spans, api.HotSaved{Span: s.Span})
			}
			spans[j].Hits += s.Hits
			spans[j].Misses += s.Misses
		}
	}
	var shares []string
	for _, s := range spans {
		if reads := s.Hits + s.Misses; reads > 0 {
			shares = append(shares, fmt.Sprintf("%.0f %% in %s", 100*float64(s.Hits)/float64(reads), rulevalue.FormatDuration(s.Span.Duration())))
		}
	}
	if len(shares) == 0 {
		return ""
	}
	return ", from memory " + strings.Join(shares, ", ")
}

// keyLine is a key, its rule and a figure.
func (m *topModel) keyLine(rule string, key []string, paint func(...string) string, figure string, figureWidth, width int) topLine {
	ruleWidth := min((width-figureWidth)/3, 24)
	keyWidth := width - figureWidth - ruleWidth - 1
	text := paint(left(m.shown(key...), keyWidth)) + " " + m.paint.dim.Render(left(m.shown(rule), ruleWidth)) + right(figure, figureWidth)
	return topLine{rule: rule, fields: m.ruleFields(rule), key: key, text: text}
}

// ruleFields returns the fields by which a rule counts, or nil.
func (m *topModel) ruleFields(name string) []string {
	for i := range m.rules {
		if m.rules[i].Name == name {
			return m.rules[i].Fields
		}
	}
	return nil
}
