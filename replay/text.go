package replay

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/match"
)

// TextStyle configures text reports. The zero value writes no ANSI sequences.
type TextStyle struct {
	Color bool           // bold headings, in ANSI sequences
	Bad   bool           // with the bad lines
	Zone  *time.Location // zone of times; nil means UTC
	Width int            // maximum width of the picture in columns; 0 means 80
}

// WriteText writes the report for people. Keys and bad lines are escaped, so
// that they cannot contain control sequences for a terminal.
func (rep *Report) WriteText(out io.Writer, style TextStyle) error {
	w := newTextWriter(out, style)
	w.totals(rep)
	w.picture(rep.Timeline)
	w.busiest(rep)
	w.traffic(rep)
	w.suggested(rep)
	w.together(rep)
	for i := range rep.Rules {
		w.rule(&rep.Rules[i], rep)
	}
	w.compared(rep)
	w.jumps(rep)
	if style.Bad {
		w.badLines(rep)
	}
	return w.Flush()
}

// WriteBadLines writes the bad lines that were kept, for people.
func (rep *Report) WriteBadLines(out io.Writer) error {
	w := newTextWriter(out, TextStyle{})
	w.badLines(rep)
	return w.Flush()
}

// textWriter lays out the plain report.
type textWriter struct {
	*bufio.Writer
	color bool
	zone  *time.Location
	width int
}

func newTextWriter(out io.Writer, style TextStyle) *textWriter {
	return &textWriter{Writer: bufio.NewWriter(out), color: style.Color, zone: cmp.Or(style.Zone, time.UTC), width: style.Width}
}

func (w *textWriter) f(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func (w *textWriter) heading(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.color {
		text = "\x1b[1m" + text + "\x1b[0m"
	}
	w.f("\n%s\n", text)
}

// assumed writes what was assumed about times.
func (w *textWriter) assumed(a *AssumedTimes) {
	for note := range a.notes() {
		w.f("%s\n", note)
	}
}

func (w *textWriter) totals(rep *Report) {
	skipped := ""
	if rep.Skipped > 0 {
		skipped = ", " + count(rep.Skipped) + " skipped"
	}
	w.f("%s in %s (%s), %s parsed%s, %s bad\n", plural(int(rep.Lines), "line", "lines"), plural(len(rep.Files), "file", "files"),
		cmp.Or(rep.Format, "no known format"), count(rep.Parsed), skipped, count(rep.Bad))
	w.assumed(&rep.AssumedTimes)
	if len(rep.Crawlers) > 0 {
		w.f("crawlers of %s are judged as other clients: a replay asks no DNS\n", strings.Join(rep.Crawlers, ", "))
	}
	w.cut(rep.Cut)
	w.late(rep.Late)
	if rep.First == nil {
		w.f("no event\n")
		return
	}
	w.f("%s events by %s distinct values of %s, from %s to %s %s (%s)\n", count(rep.Events), count(int64(rep.Keys)), rep.Key,
		w.stamp(rep.First), w.stamp(rep.Last), w.zone, long(rep.Last.Sub(rep.First.Time)))
	w.resolution(rep)
	if rep.ElapsedSeconds > 0 {
		w.f("replayed in %.2f s, %s lines a second\n", rep.ElapsedSeconds, count(int64(float64(rep.Lines)/rep.ElapsedSeconds)))
	}
}

// cut writes which events are in the cut, if there is one.
func (w *textWriter) cut(c *CutReport) {
	if c != nil {
		w.f("cut: %s\n", c.text(w.zone))
	}
}

// text returns which events are in the cut.
func (c *CutReport) text(zone *time.Location) string {
	var parts []string
	if c.Since != nil {
		parts = append(parts, "since "+exactStamp(*c.Since, zone))
	}
	if c.Until != nil {
		parts = append(parts, "until "+exactStamp(*c.Until, zone))
	}
	for _, condition := range c.Where {
		parts = append(parts, visible(condition))
	}
	return fmt.Sprintf("%s; %s left out", strings.Join(parts, ", "), plural(int(c.LeftOut), "event", "events"))
}

// late writes which events were left out because they were late.
func (w *textWriter) late(l *LateReport) {
	if l == nil || l.Events == 0 {
		return
	}
	w.f("%s left out: up to %v older than an earlier one in the file; the first:\n", plural(int(l.Events), "late event", "late events"), seconds(l.MostSeconds))
	for _, e := range l.First {
		w.f("  %s:%d: %s, %v late\n", visible(e.File), e.Line, exactStamp(e.T, w.zone), seconds(e.Seconds))
	}
}

// resolution writes the precision to which times were judged.
func (w *textWriter) resolution(rep *Report) {
	judged, logged := seconds(rep.ResolutionSeconds), seconds(rep.LogResolutionSeconds)
	if judged == logged {
		w.f("times are judged to %v, the precision of the log\n", judged)
		if judged > 1 && len(rep.Rules) > 0 {
			w.f("a live server also has the fractions of times, and may refuse more or fewer events near a limit\n")
		}
		return
	}
	w.f("times are floored to %v; the precision of the log is %v\n", judged, logged)
}

func (w *textWriter) busiest(rep *Report) {
	if len(rep.Top) == 0 {
		return
	}
	w.heading("Busiest by %s, with the most in any window of", rep.Key)
	rows := [][]string{{rep.Key, "events", "share"}}
	for _, p := range peakWindows {
		rows[0] = append(rows[0], p.name)
	}
	if rep.Top[0].Refused != nil {
		rows[0] = append(rows[0], "refused")
	}
	for _, k := range rep.Top {
		row := []string{keyText(k.Key), count(k.Count), percent(k.Count, rep.Events)}
		for _, p := range peakWindows {
			row = append(row, count(k.Peaks[p.name]))
		}
		if k.Refused != nil {
			row = append(row, count(*k.Refused))
		}
		rows = append(rows, row)
	}
	w.table(rows)
	if rep.Key == match.Client.String() && !slices.ContainsFunc(rep.Top, isAddress) {
		w.f("none of these clients is an address, so that bans of them are not enforced by address: --format gives another format\n")
	}
}

// isAddress reports whether a key is the address of a client, or a network.
func isAddress(k TopKey) bool {
	for _, value := range k.Values() {
		host, _, _ := strings.Cut(value, "/")
		if _, ok := address.Parse(host); ok {
			return true
		}
	}
	return false
}

// traffic writes the most frequent values of each field.
func (w *textWriter) traffic(rep *Report) {
	if rep.Traffic == nil {
		return
	}
	if rep.Traffic.Bytes != nil {
		w.f("\n%s bytes of responses\n", count(*rep.Traffic.Bytes))
	}
	for _, f := range rep.Traffic.Fields {
		head := []string{f.Field, "events", "share"}
		if f.More {
			w.heading("The most frequent of more than %s of %s; counts may be too high", plural(f.Values, "value", "values"), f.Field)
			head = append(head, "at most by")
		} else {
			w.heading("The most frequent of %s of %s", plural(f.Values, "value", "values"), f.Field)
		}
		rows := [][]string{head}
		for _, v := range f.Top {
			row := []string{keyText(v.Key), count(v.Count), percent(v.Count, rep.Events)}
			if f.More {
				row = append(row, count(v.Over))
			}
			rows = append(rows, row)
		}
		w.table(rows)
	}
}

// suggested writes which limits would refuse nothing to how many keys.
func (w *textWriter) suggested(rep *Report) {
	if len(rep.SuggestedLimits) == 0 {
		return
	}
	w.heading("Limits that fit: the least N per span that so many values of %s never exceed", rep.Key)
	rows := [][]string{{"span", "90 %", "99 %", "99.9 %", "all"}}
	for _, f := range rep.SuggestedLimits {
		rows = append(rows, []string{f.Span, count(f.P90), count(f.P99), count(f.P999), count(f.Max)})
	}
	w.table(rows)
}

// together writes what several limits and bans of a rules file do together.
func (w *textWriter) together(rep *Report) {
	judging := 0
	for i := range rep.Rules {
		if rep.Rules[i].Kind != Hot {
			judging++
		}
	}
	if rep.All == nil || judging < 2 {
		return
	}
	w.heading("All rules together")
	w.f("  %s allowed, %s refused (%s)\n", count(rep.All.Allowed), count(rep.All.Refused), percent(rep.All.Refused, rep.Events))
}

func (w *textWriter) rule(r *RuleReport, rep *Report) {
	mode := ""
	if r.Mode != "" {
		mode = ", " + r.Mode
	}
	w.heading("%s %s (by %s, %s%s)", r.Kind, visible(r.Name), strings.Join(r.Fields, ", "), r.Algorithm, mode)
	if r.Kind == Hot {
		w.hot(r)
		return
	}
	inForce := ""
	if r.Mode != "" {
		inForce = "in force: "
	}
	w.f("  %s%s allowed, %s refused (%s), %s refused\n", inForce, count(*r.Allowed), count(*r.Refused),
		percent(*r.Refused, *r.Allowed+*r.Refused), plural(int(*r.KeysRefused), "key", "keys"))
	if r.Bans != nil {
		w.f("  %s of %s\n", plural(int(*r.Bans), "ban", "bans"), plural(int(*r.BannedKeys), "key", "keys"))
	}
	if r.LackingSentence != "" {
		w.f("  %s\n", visible(r.LackingSentence))
	}
	if len(r.mostRefused) == 0 {
		return
	}
	rows := [][]string{{"most refused", "refused"}}
	if r.Bans != nil {
		rows[0] = append(rows[0], "bans")
	}
	for _, k := range r.mostRefused {
		row := []string{keyText(k.Key), count(k.refused)}
		if r.Bans != nil {
			row = append(row, count(k.bans))
		}
		rows = append(rows, row)
	}
	w.table(rows)
}

// compared writes the algorithms side by side.
func (w *textWriter) compared(rep *Report) {
	if len(rep.Compared) == 0 || len(rep.Rules) == 0 {
		return
	}
	limit := &rep.Rules[0]
	w.heading("%s under each algorithm", visible(limit.Name))
	rows := [][]string{{"algorithm", "allowed", "refused", "keys refused", "most in any " + seconds(limit.SpanSeconds).String(), "bytes per key"}}
	for _, c := range rep.Compared {
		if c.Problem == "" {
			rows = append(rows, []string{c.Algorithm, count(c.Allowed), count(c.Refused), count(c.KeysRefused), count(c.MostInWindow), count(int64(math.Round(c.BytesPerKey)))})
		}
	}
	w.table(rows)
	for _, c := range rep.Compared {
		if c.Problem != "" {
			w.f("  %s: %s\n", c.Algorithm, c.Problem)
		}
	}
}

// shownHot is how many first edges the plain report shows.
const shownHot = 10

func (w *textWriter) hot(r *RuleReport) {
	w.f("  %s ran hot\n", plural(int(*r.HotKeys), "key", "keys"))
	for _, m := range r.FirstHot[:min(len(r.FirstHot), shownHot)] {
		w.f("  %s  %s\n", exactStamp(m.T, w.zone), keyText(m.Key))
	}
	if n := *r.HotKeys - shownHot; n > 0 {
		w.f("  and %s more\n", count(n))
	}
}

func (w *textWriter) jumps(rep *Report) {
	if len(rep.Jumps) == 0 {
		return
	}
	w.heading("Jumps in time of more than a day")
	for _, j := range rep.Jumps {
		w.f("  from %s to %s\n", exactStamp(j.From, w.zone), exactStamp(j.To, w.zone))
	}
}

func (w *textWriter) badLines(rep *Report) {
	if len(rep.BadLines) == 0 {
		return
	}
	w.heading("The first bad lines")
	for _, b := range rep.BadLines {
		more := ""
		if b.Cut {
			more = "…"
		}
		w.f("  %s:%d: %s%s\n", visible(b.File), b.Line, visible(b.Text+string(b.Base64)), more)
	}
}

// table writes rows in columns: the first to the left, numbers to the right.
func (w *textWriter) table(rows [][]string) {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], min(utf8.RuneCountInString(cell), 60))
		}
	}
	for _, row := range rows {
		w.f("  %-*s", width[0], row[0])
		for i, cell := range row[1:] {
			w.f("  %*s", width[i+1], cell)
		}
		w.f("\n")
	}
}

// stamp writes a time to the second; exactStamp writes its fraction too.
func (w *textWriter) stamp(e *Epoch) string { return e.In(w.zone).Format(time.DateTime) }
