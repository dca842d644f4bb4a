package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// defaultWidth is the width of the plain report where it is not known.
const defaultWidth = 80

// picture draws the events over time as bars an eighth of a line high, and below them the
// share of the events that were refused, and the times.
func (w *textWriter) picture(t *Timeline) {
	if t == nil || len(t.Events) < 2 {
		return
	}
	width := max(cmp.Or(w.width, defaultWidth)-4, 20)
	scale := t.scale().cover(int64(width))
	events := scale.rebin(t.Events, t.scale())
	each := width / len(events) // columns of a bar
	most, bar := slices.Max(events), time.Duration(barWidths[scale.width])
	w.heading("Events over time")
	w.f("  %s\n", eighths(events, func(i int) int64 { return most }, each))
	refused := make([]int64, len(events))
	if t.Refused != nil {
		refused = scale.rebin(t.Refused, t.scale())
	}
	worst := 0 // the bar of which most are refused
	for i := range refused {
		if refused[i]*events[worst] > refused[worst]*max(events[i], 1) {
			worst = i
		}
	}
	if refused[worst] > 0 {
		w.f("  %s\n", eighths(refused, func(i int) int64 { return events[i] }, each))
	}
	w.f("  %s\n", timeAxis(scale, len(events), each, w.zone))
	w.f("  each bar is %s; the highest has %s events\n", long(bar), count(most))
	if refused[worst] > 0 {
		w.f("  the second row is the share of them that was refused, at most %s\n", percent(refused[worst], events[worst]))
	}
}

// eighths draws counts as bars of so many columns, whose full height is what whole returns.
func eighths(counts []int64, whole func(i int) int64, each int) string {
	var b strings.Builder
	bars := []rune(" ▁▂▃▄▅▆▇█")
	for i, n := range counts {
		most := max(whole(i), 1)
		b.WriteString(strings.Repeat(string(bars[(n*8+most-1)/most]), each))
	}
	return strings.TrimRight(b.String(), " ")
}

// timeAxis returns the times at which some of the bars begin, each after a tick below the first
// column of its bar.
func timeAxis(scale barScale, bars, each int, zone *time.Location) string {
	layout := time.DateOnly
	switch bar, whole := barWidths[scale.width], scale.last-scale.first; {
	case bar >= int64(24*time.Hour):
	case whole > int64(24*time.Hour):
		layout = "01-02 15:04"
	case bar >= int64(time.Minute):
		layout = "15:04"
	case bar >= int64(time.Second):
		layout = "15:04:05"
	default:
		layout = "15:04:05.000"
	}
	var axis strings.Builder
	for i, written := 0, 0; i < bars; i++ {
		label := fmt.Sprintf("└%s", time.Unix(0, scale.start(int64(i))).In(zone).Format(layout))
		size := utf8.RuneCountInString(label)
		if i*each < written || i*each+size > max(bars*each, size) {
			continue
		}
		axis.WriteString(strings.Repeat(" ", i*each-max(written-axisGap, 0)) + label)
		written = i*each + size + axisGap
	}
	return axis.String()
}

// axisGap is how many columns are at least between two times of an axis.
const axisGap = 6
