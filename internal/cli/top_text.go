package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// A topPaint is how the live view is drawn. The zero topPaint has no styles. Colours
// are those of the terminal's own palette, so that they fit light and dark.
type topPaint struct {
	bold, dim, allowed, refused, banned, hot, bar, wrong, chosen lipgloss.Style

	ascii bool // draw in ASCII only
}

// newTopPaint returns styles, with colours or with weight only.
func newTopPaint(colours bool) topPaint {
	plain := lipgloss.NewStyle()
	p := topPaint{bold: plain.Bold(true), dim: plain.Faint(true), wrong: plain.Bold(true), chosen: plain.Reverse(true)}
	if !colours {
		return p
	}
	p.allowed = plain.Foreground(lipgloss.Green)
	p.refused = plain.Foreground(lipgloss.Yellow)
	p.banned = plain.Foreground(lipgloss.Red)
	p.hot = plain.Foreground(lipgloss.Magenta)
	p.bar = plain.Foreground(lipgloss.Cyan)
	p.wrong = p.wrong.Foreground(lipgloss.Red)
	return p
}

// maxShown bounds the bytes of a text: keys may be longer than any screen.
const maxShown = 2048

// shown returns the texts, safe for a terminal and of bounded length.
func shown(texts ...string) string {
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteString(", ")
		}
		if len(t) > maxShown {
			cut := maxShown
			for cut > maxShown-utf8.UTFMax && !utf8.RuneStart(t[cut]) {
				cut--
			}
			t = t[:cut] + "…"
		}
		b.WriteString(visible(t))
	}
	return b.String()
}

// shown is the function shown for the terminal of m.
func (m *topModel) shown(texts ...string) string {
	if m.paint.ascii {
		return asciiOnly(shown(texts...))
	}
	return shown(texts...)
}

// clipped returns s in at most width cells.
func clipped(s string, width int) string { return ansi.Truncate(s, max(width, 0), "…") }

// fitting joins the first parts that fit in width cells; the first one is clipped if it does not.
func fitting(parts []string, separator string, width int) string {
	text := clipped(parts[0], width)
	for _, part := range parts[1:] {
		if lipgloss.Width(text)+len(separator)+lipgloss.Width(part) > width {
			break
		}
		text += separator + part
	}
	return text
}

// left returns s in exactly width cells, at their left.
func left(s string, width int) string { return padded(clipped(s, width), width) }

// right returns s in exactly width cells, at their right.
func right(s string, width int) string {
	s = clipped(s, width)
	return blank(width-lipgloss.Width(s)) + s
}

// padded returns s, which must fit, in exactly width cells.
func padded(s string, width int) string { return s + blank(width-lipgloss.Width(s)) }

func blank(n int) string { return strings.Repeat(" ", max(n, 0)) }

// count formats a whole number; from a million on, abbreviated.
func count(n uint64) string {
	switch {
	case n >= 1e9:
		return trimmed(float64(n)/1e9, 2) + " G"
	case n >= 1e6:
		return trimmed(float64(n)/1e6, 2) + " M"
	}
	s := strconv.FormatUint(n, 10)
	if len(s) > 3 {
		return s[:len(s)-3] + "," + s[len(s)-3:]
	}
	return s
}

// bounded formats the bounds of a count.
func bounded(lo, hi uint64) string {
	if a, b := count(lo), count(hi); a != b {
		return a + "–" + b
	}
	return count(lo)
}

// rate formats a number of events per second.
func rate(f float64) string {
	switch {
	case f <= 0:
		return "0"
	case f < 0.01:
		return "<0.01"
	case f < 10:
		return trimmed(f, 2)
	case f < 100:
		return trimmed(f, 1)
	}
	return count(uint64(f + 0.5))
}

// trimmed formats a number with at most that many decimals.
func trimmed(f float64, decimals int) string {
	s := strconv.FormatFloat(f, 'f', decimals, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// size formats a number of bytes.
func size(n int64) string {
	f, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for f >= 1024 && len(units) > 1 {
		f, units = f/1024, units[1:]
	}
	if f < 100 {
		return trimmed(f, 1) + " " + units[0]
	}
	return trimmed(f, 0) + " " + units[0]
}

// lasting formats a duration in its two largest units.
func lasting(d time.Duration) string {
	d = max(d, 0)
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm %02ds", s/60, s%60)
	case s < 86400:
		return fmt.Sprintf("%dh %02dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd %02dh", s/86400, s/3600%24)
}

// sparks are the heights of a spark line.
var sparks = [...]rune{'▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'}

// sparkline draws the last width values, of which the highest is the full height.
// A value above 0 has at least the second height.
func sparkline(values []uint64, width int) string {
	values = values[max(0, len(values)-max(width, 0)):]
	var most uint64
	for _, v := range values {
		most = max(most, v)
	}
	line := make([]rune, len(values))
	for i, v := range values {
		line[i] = sparks[0]
		if v > 0 {
			line[i] = sparks[1+int(float64(v)/float64(most)*float64(len(sparks)-2)+0.5)]
		}
	}
	return string(line)
}

// eighths are the last cells of a bar.
var eighths = [...]string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar draws a bar of the share that part has of whole, at most width cells. A part
// above 0 is never invisible.
func bar(part, whole float64, width int) string {
	if part <= 0 || whole <= 0 || width <= 0 {
		return ""
	}
	n := max(1, int(min(part/whole, 1)*float64(width*8)+0.5))
	return strings.Repeat("█", n/8) + eighths[n%8]
}
