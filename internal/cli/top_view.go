package cli

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// The layout of the screen. Every line is clipped before it has styles, and all text
// of the server passes through shown, so that no key can disturb the layout.
const (
	leastWidth, leastHeight = 24, 6

	wideFrom = 96 // columns, from which on there are two panels side by side
	highFrom = 18 // lines, from which on the header has its full size
	airyFrom = 30 // lines, from which on a blank line follows it
	gap      = 3  // columns between panels

	leastPanel   = 3  // least lines of a panel
	focusedPanel = 10 // least lines of one that has the focus
)

// View returns the screen.
func (m *topModel) View() tea.View {
	v := tea.NewView(m.frame())
	v.AltScreen = true
	v.WindowTitle = "lately top"
	return v
}

// frame returns the screen: never more lines than it has, none longer than it is
// wide, and the last one the footer.
func (m *topModel) frame() string {
	if m.width < leastWidth || m.height < leastHeight {
		return m.paint.drawn(clipped(fmt.Sprintf("%d×%d is too small", m.width, m.height), m.width))
	}
	lines := m.header()
	height := m.height - len(lines) - 1
	body := m.body(height)
	lines = append(lines, body...)
	lines = append(lines, make([]string, max(height-len(body), 0))...)
	return m.paint.drawn(strings.Join(append(lines, m.footer()), "\n"))
}

// header returns the state of the server as a whole.
func (m *topModel) header() []string {
	lines := []string{m.titleLine()}
	if m.height < highFrom {
		return append(lines, m.shortRates())
	}
	lines = append(lines, "")
	for _, s := range m.series() {
		lines = append(lines, m.rateLine(s))
	}
	lines = append(lines, "", m.stateLine())
	if m.height >= airyFrom {
		lines = append(lines, "")
	}
	return lines
}

func (m *topModel) titleLine() string {
	state, style := m.linkText()
	state = clipped(state, m.width*2/3)
	room := m.width - lipgloss.Width(state) - 1
	title := "lately"
	rest := "  " + m.shown(m.addr)
	if m.reading != nil {
		title += " " + m.shown(m.reading.status.Version)
		rest += "  up " + lasting(uptime(m.reading))
	}
	title = clipped(title, room)
	rest = clipped(rest, room-lipgloss.Width(title))
	return padded(m.paint.bold.Render(title)+m.paint.dim.Render(rest), room+1) + style.Render(state)
}

// linkText returns the state of the connection.
func (m *topModel) linkText() (string, lipgloss.Style) {
	switch {
	case !m.live && m.lost != nil:
		return "○ lost " + lasting(m.now.Sub(m.lostAt)) + ": " + m.shown(m.lost.Error()), m.paint.wrong
	case !m.live:
		return "○ connecting", m.paint.dim
	case m.paused:
		return "‖ paused", m.paint.bold
	}
	if m.reading != nil {
		if trouble := troubleOf(&m.reading.status, m.theirs()); trouble != "" {
			return "● live, " + m.shown(trouble), m.paint.wrong
		}
	}
	return "● live", m.paint.allowed
}

// A topSeries is one line of the chart.
type topSeries struct {
	name   string
	style  lipgloss.Style
	values []uint64
}

func (m *topModel) series() []topSeries {
	s := []topSeries{{"allowed", m.paint.allowed, nil}, {"refused", m.paint.refused, nil}, {"banned", m.paint.banned, nil}, {"unmatched", m.paint.dim, nil}}
	for _, t := range m.seconds {
		s[0].values = append(s[0].values, t.Allowed)
		s[1].values = append(s[1].values, t.Refused)
		s[2].values = append(s[2].values, t.Banned)
		s[3].values = append(s[3].values, t.Unmatched)
	}
	return s
}

// now returns the last value of s.
func (s *topSeries) now() string {
	if len(s.values) == 0 {
		return "–"
	}
	return count(s.values[len(s.values)-1]) + "/s"
}

// rateLine is a spark line of the last seconds, with its last value and its highest.
func (m *topModel) rateLine(s topSeries) string {
	const name, value, peak = 10, 10, 18
	room := m.width - name - value - 2 - peak
	line := s.style.Render(left(s.name, name)) + m.paint.bold.Render(right(s.now(), value))
	if room < 8 {
		return line + "  " + s.style.Render(sparkline(s.values, m.width-name-value-2))
	}
	room = min(room, keptSeconds)
	drawn := s.values[max(0, len(s.values)-room):]
	line += "  " + blank(room-len(drawn)) + s.style.Render(sparkline(drawn, room)) // the newest at the right
	if len(drawn) == 0 {
		return line
	}
	return line + m.paint.dim.Render(clipped("  peak "+count(slices.Max(drawn))+"/s", peak))
}

// shortRates is the header of low screens.
func (m *topModel) shortRates() string {
	var parts []string
	room := m.width
	for _, s := range m.series() {
		text := s.name + " " + s.now()
		if lipgloss.Width(text) > room {
			break
		}
		parts = append(parts, s.style.Render(s.name)+" "+m.paint.bold.Render(s.now()))
		room -= lipgloss.Width(text) + 2
	}
	return strings.Join(parts, "  ")
}

// stateLine is the server's memory, bans and rules file.
func (m *topModel) stateLine() string {
	if m.reading == nil {
		return ""
	}
	s := &m.reading.status
	memory := size(s.Memory.Bytes)
	if s.Memory.Budget > 0 {
		memory += " of " + size(s.Memory.Budget)
	}
	if s.Rules.Error != "" {
		wrong := "rules: the last reload failed: " + m.shown(s.Rules.Error)
		return m.paint.wrong.Render(clipped(wrong, m.width))
	}
	parts := []string{
		"limits " + memory, "counters " + size(s.Memory.Counters), "bans " + count(uint64(max(m.reading.held, 0))), fmt.Sprintf("hot %d", len(m.reading.hot)),
		fmt.Sprintf("subscribers %d", s.Subscribers),
	}
	if s.Rules.File != "" {
		parts = append(parts, "rules "+m.shown(s.Rules.File))
	}
	if s.Enforcement != nil {
		parts = append(parts, "enforced "+count(uint64(max(s.Enforcement.Networks, 0))))
	}
	if len(s.Logs) > 0 {
		parts = append(parts, "logs behind "+lasting(lagOf(s.Logs)))
	}
	return m.paint.dim.Render(fitting(parts, "   ", m.width))
}

// footer is the open question, the last answer, or the available keys.
func (m *topModel) footer() string {
	switch {
	case m.prompt != nil:
		return m.paint.bold.Render(clipped(m.promptText(), m.width))
	case m.editing:
		return clipped("/"+m.shown(m.filter)+"▏  enter keeps it, esc clears it", m.width)
	case m.notice != "":
		return m.paint.bold.Render(clipped(m.shown(m.notice), m.width))
	case m.live && m.unread != nil:
		return m.paint.wrong.Render(clipped("not read: "+m.shown(m.unread.Error()), m.width))
	}
	if m.detail != nil {
		return m.paint.dim.Render(clipped("b ban  u unban  esc back  p pause  q quit", m.width))
	}
	if _, ok := m.chosen(); ok {
		return m.paint.dim.Render(fitting([]string{"enter inspect", "b ban", "u unban", "esc back", "up, down choose", "tab next panel", "? help"}, "  ", m.width))
	}
	hints := []string{"q quit", "? help", "tab keys", "s sort: " + m.sort.String(), "/ filter", "1-6 span: " + m.spanText(), "c counter", "p pause"}
	if m.filter != "" {
		hints[4] = "/ filter: " + m.shown(m.filter)
	}
	return m.paint.dim.Render(fitting(hints, "  ", m.width))
}

func (m *topModel) spanText() string { return rulevalue.FormatDuration(m.want.span) }

// helpLines is shown instead of the panels.
func (m *topModel) helpLines() []string {
	return []string{
		m.paint.bold.Render("Keys"), "",
		"  s       sort lines by refusals, by count, or by name",
		"  /       show only lines that have a text; enter keeps it, esc clears it",
		"  1 to 6  look back 1s, 10s, 1m, 5m, 1h, 24h, within the span of the counter",
		"  c       the next counter",
		"  p       pause, and go on",
		"  tab     focus the next panel; up and down choose a key in it",
		"  enter   inspect the key: its windows, what rules would decide, its bans",
		"  b, u    ban the key, unban it; the token needs the role admin",
		"  q       quit", "",
		"A count LO–HI has bounds: the true count lies between them, and the light end of",
		"the bar is their difference. Rates of rules are those of the span.",
	}
}

// body returns the panels, or the help, in at most that many lines.
func (m *topModel) body(height int) []string {
	height = max(height, 0)
	switch {
	case m.help:
		lines := m.helpLines()
		for i := range lines {
			lines[i] = ansi.Truncate(lines[i], m.width, "")
		}
		return lines[:min(len(lines), height)]
	case m.reading == nil || height == 0:
		return nil
	case m.detail != nil:
		lines := m.detailLines()
		return lines[:min(len(lines), height)]
	case m.width < wideFrom:
		return stack(height, append([]panel{m.rulePanel(m.width), m.keyPanel(m.width)}, m.sidePanels(m.width)...)...)
	}
	one := (m.width - gap) * 52 / 100
	other := m.width - gap - one
	lines := stack(height, m.keyPanel(one))
	for i, right := range stack(height, append([]panel{m.rulePanel(other)}, m.sidePanels(other)...)...) {
		if i == len(lines) {
			lines = append(lines, "")
		}
		lines[i] = padded(lines[i], one+gap) + right
	}
	return lines
}

// A panel is a title and lines below it, the most important first.
type panel struct {
	lines   []string
	focused bool
	at      int // index of a line that must be visible
}

// sidePanels returns the panels of keys that rules refuse, ban or report as hot.
func (m *topModel) sidePanels(width int) []panel {
	return []panel{
		m.panelOf(refusedPanel, "Most refused keys, last "+rulevalue.FormatDuration(refusedSpan(m.want.span)), "no key was refused", width),
		m.panelOf(bansPanel, "Latest bans", "no ban", width),
		m.panelOf(hotPanel, "Hot keys"+m.saved(), "no key is hot", width),
	}
}

// title is the first line of a panel.
func (m *topModel) title(text string, width int) string {
	text = clipped(text, width-1)
	return m.paint.bold.Render(text) + " " + m.paint.dim.Render(strings.Repeat("─", max(width-lipgloss.Width(text)-1, 0)))
}

// nothing is the only line of an empty panel.
func (m *topModel) nothing(text string, width int) string {
	return m.paint.dim.Render(clipped(text, width))
}
