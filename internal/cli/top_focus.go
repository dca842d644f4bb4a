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

// A topLine is a line about a key.
type topLine struct {
	rule   string   // "" for the keys of a counter
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

// panelOf returns a panel of keys. If it has the focus, the chosen line is marked.
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

// turnFocus focuses the next panel, or with by -1 the one before.
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

// holdCursor keeps the cursor on an existing line.
func (m *topModel) holdCursor() {
	m.cursor = max(0, min(m.cursor, len(m.linesOf(m.focus, 80))-1))
}

// followCursor keeps the cursor on its key when lines move.
func (m *topModel) followCursor(before topLine, was bool) {
	if was && m.detail == nil {
		same := func(l topLine) bool { return l.rule == before.rule && slices.Equal(l.key, before.key) }
		if i := slices.IndexFunc(m.linesOf(m.focus, 80), same); i >= 0 {
			m.cursor = i
		}
	}
	m.holdCursor()
}

// stack puts panels one below the other, in at most height lines; the last panels are
// left out if they do not fit. The panel that has the focus gets all lines except a few
// for each of the others; without one, lines are given out one by one in turn, so that
// the lines that a short panel does not need go to the others.
func stack(height int, panels ...panel) []string {
	focus := slices.IndexFunc(panels, func(p panel) bool { return p.focused })
	needed := -1
	if focus >= 0 {
		needed += focusedPanel - leastPanel
	}
	fit := max(1, min((height-needed)/(leastPanel+1), len(panels)))
	if focus >= fit { // in place of the last that fits
		panels[fit-1], focus = panels[focus], fit-1
	}
	panels = panels[:fit]
	height -= len(panels) - 1 // blank lines between them
	given := make([]int, len(panels))
	give := func(i, most int) (more bool) {
		if more = height > 0 && given[i] < min(len(panels[i].lines), most); more {
			given[i]++
			height--
		}
		return more
	}
	if focus >= 0 {
		for i := range panels {
			for give(i, leastPanel) {
			}
		}
		for give(focus, len(panels[focus].lines)) {
		}
	}
	for more := true; more; {
		more = false
		for i := range panels {
			more = give(i, len(panels[i].lines)) || more
		}
	}
	var lines []string
	for i := range panels {
		if i > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, panels[i].visible(given[i])...)
	}
	return lines
}

// visible returns n lines of p: the title, and those around the chosen one.
func (p *panel) visible(n int) []string {
	from := max(0, min(p.at-n/2, len(p.lines)-n))
	if from == 0 || n < 2 {
		return p.lines[:n]
	}
	return append([]string{p.lines[0]}, p.lines[from+1:from+n]...)
}
