package cli

import (
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// A topPanel is a panel in which a key can be chosen.
type topPanel int

const (
	noPanel topPanel = iota
	keysPanel
	refusedPanel
	bansPanel
	hotPanel
	topPanels
)

// A topLine is a line that is about a key.
type topLine struct {
	rule   string   // that it is about; "" for the keys of a counter
	fields []string // of the key; nil if they are not known
	key    []string
	text   string
}

// linesOf returns the lines of a panel of that width.
func (m *topModel) linesOf(p topPanel, width int) []topLine {
	if m.reading == nil {
		return nil
	}
	switch p {
	case keysPanel:
		return m.topKeyLines(width)
	case refusedPanel:
		return m.refusedLines(width)
	case bansPanel:
		return m.banLines(width)
	case hotPanel:
		return m.hotLines(width)
	}
	return nil
}

// panelOf returns a panel of keys. Where it has the focus, the chosen line is marked.
func (m *topModel) panelOf(which topPanel, title, none string, width int) panel {
	focused := m.focus == which
	if focused {
		title = "> " + title
	}
	p := panel{lines: []string{m.title(title, width)}, focused: focused}
	lines := m.linesOf(which, width)
	for i := range lines {
		text := lines[i].text
		if focused && i == m.cursor {
			p.at = len(p.lines)
			text = m.paint.chosen.Render(ansi.Strip(text))
		}
		p.lines = append(p.lines, text)
	}
	if len(lines) == 0 {
		p.lines = append(p.lines, m.nothing(none, width))
	}
	return p
}

// chosen returns the line that is chosen.
func (m *topModel) chosen() (topLine, bool) {
	if m.detail != nil {
		return m.detail.topLine, true
	}
	lines := m.linesOf(m.focus, 80)
	if m.cursor >= len(lines) {
		return topLine{}, false
	}
	return lines[m.cursor], true
}

// turnFocus gives the focus to the next panel, or with by -1 to the one before.
func (m *topModel) turnFocus(by int) {
	m.focus = (m.focus + topPanel(by) + topPanels) % topPanels
	m.cursor = 0
}

// moveCursor chooses another line of the panel that has the focus.
func (m *topModel) moveCursor(by int) {
	if m.focus == noPanel {
		m.turnFocus(1)
		return
	}
	m.cursor += by
	m.holdCursor()
}

// holdCursor keeps the cursor on a line.
func (m *topModel) holdCursor() {
	m.cursor = max(0, min(m.cursor, len(m.linesOf(m.focus, 80))-1))
}

// followCursor keeps the cursor on the key that it was on, as lines move.
func (m *topModel) followCursor(before topLine, was bool) {
	if was && m.detail == nil {
		same := func(l topLine) bool { return l.rule == before.rule && slices.Equal(l.key, before.key) }
		if i := slices.IndexFunc(m.linesOf(m.focus, 80), same); i >= 0 {
			m.cursor = i
		}
	}
	m.holdCursor()
}

// stack puts panels one below the other, in at most room lines; the last panels are left
// out where there is no room for all. The panel that has the focus gets all lines but a few
// for each of the others; without one, lines are handed out one by one in turn, so that a
// short panel leaves its room to the others.
func stack(room int, panels ...panel) []string {
	focused := slices.ContainsFunc(panels, func(p panel) bool { return p.focused })
	needed := func() int {
		n := len(panels)*(leastPanel+1) - 1
		if focused {
			n += focusedPanel - leastPanel
		}
		return n
	}
	for len(panels) > 1 && room < needed() {
		last := len(panels) - 1
		if panels[last].focused {
			last--
		}
		panels = slices.Delete(slices.Clone(panels), last, last+1)
	}
	room -= len(panels) - 1 // lines between
	given := make([]int, len(panels))
	hand := func(most func(p *panel) int) {
		for more := true; more && room > 0; {
			more = false
			for i := range panels {
				if room > 0 && given[i] < min(len(panels[i].lines), most(&panels[i])) {
					given[i]++
					room--
					more = true
				}
			}
		}
	}
	all := func(p *panel) int { return len(p.lines) }
	if focused {
		hand(func(*panel) int { return leastPanel })
		hand(func(p *panel) int {
			if p.focused {
				return len(p.lines)
			}
			return 0
		})
	}
	hand(all)
	var lines []string
	for i := range panels {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, panels[i].seen(given[i])...)
	}
	return lines
}

// seen returns n lines of p: the title, and those around the chosen one.
func (p *panel) seen(n int) []string {
	from := max(0, min(p.at-n/2, len(p.lines)-n))
	if from == 0 || n < 2 {
		return p.lines[:n]
	}
	return append([]string{p.lines[0]}, p.lines[from+1:from+n]...)
}
