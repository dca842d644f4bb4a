package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// A topDetail is a key that is inspected, and the last answer of the server.
type topDetail struct {
	topLine
	report *api.KeyReport // nil until the first answer
	err    error          // why there is no newer one
}

// topInspected is an answer about the key of detail.
type topInspected struct {
	detail *topDetail
	report *api.KeyReport
	err    error
}

const chooseFirst = "choose a key first: tab goes to a panel of keys, up and down to a key"

// inspectChosen shows the chosen key instead of the panels.
func (m *topModel) inspectChosen() tea.Cmd {
	line, ok := m.chosen()
	if !ok {
		m.notice = chooseFirst
		return nil
	}
	if len(line.fields) != len(line.key) {
		m.notice = "the fields of this key are not known"
		return nil
	}
	m.detail = &topDetail{topLine: line}
	return m.askDetail()
}

// askDetail requests the key that is inspected.
func (m *topModel) askDetail() tea.Cmd {
	if m.detail == nil {
		return nil
	}
	return m.inspect(m.detail)
}

// inspect requests a key from the server.
func inspect(ctx context.Context, c *client.Client, d *topDetail) topInspected {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	report, err := c.Key(ctx, d.fields, d.key)
	return topInspected{d, &report, err}
}

// detailLines shows the key that is inspected.
func (m *topModel) detailLines() []string {
	d := m.detail
	lines := []string{m.title(strings.Join(d.fields, ", ")+" "+m.shown(d.key...), m.width)}
	switch {
	case d.err != nil:
		lines = append(lines, m.row(m.paint.wrong, "not read: %s", m.shown(d.err.Error())))
	case d.report == nil:
		lines = append(lines, m.row(m.paint.dim, "reading"))
	}
	if d.report == nil {
		return lines
	}
	section := func(title, none string, rows []string) {
		if len(rows) == 0 {
			rows = []string{m.row(m.paint.dim, "  %s", none)}
		}
		lines = append(append(lines, "", m.paint.bold.Render(title)), rows...)
	}
	section("Windows", "no counter counts by this", m.windowRows(d.report.Counters))
	if len(d.report.Hot) > 0 {
		section("Hot keys", "", m.hotRows(d.report.Hot))
	}
	section("Current decision of each rule", "no rule judges by this", m.decisionRows(d.report.Rules))
	section("Bans", "not banned", m.banRows(d.report.Bans))
	return lines
}

// row returns a line of the key that is inspected.
func (m *topModel) row(style lipgloss.Style, format string, args ...any) string {
	return style.Render(clipped(fmt.Sprintf(format, args...), m.width))
}

func (m *topModel) windowRows(windows []api.KeyWindow) (rows []string) {
	for _, w := range windows {
		span := rulevalue.FormatDuration(w.Span.Duration())
		rows = append(rows, m.row(lipgloss.NewStyle(), "  %s last %s  %s", left(m.shown(w.Counter), 16), left(span, 5), bounded(w.Lo, w.Hi)))
	}
	return rows
}

func (m *topModel) decisionRows(decisions []api.KeyDecision) (rows []string) {
	for i := range decisions {
		d := &decisions[i].Decision
		style, text := m.paint.allowed, fmt.Sprintf("would allow, %s of %s left", count(uint64(max(d.Remaining, 0))), count(d.Limit))
		if d.Allowed && d.Limit == 0 {
			text = "would allow: " + noLimit
		}
		if banned := time.UnixMilli(int64(d.BannedUntil)); banned.After(m.theirs()) {
			style, text = m.paint.banned, "banned for "+lasting(banned.Sub(m.theirs()))
		} else if !d.Allowed && d.RetryAfter == 0 {
			style, text = m.paint.refused, "would refuse: "+storeAway
		} else if !d.Allowed {
			style, text = m.paint.refused, "would refuse, again in "+lasting(d.RetryAfter.Duration())
		}
		rows = append(rows, m.row(style, "  %s %s", left(m.shown(decisions[i].Rule), 24), text))
	}
	return rows
}

func (m *topModel) banRows(bans []api.Ban) (rows []string) {
	for i := range bans {
		b := &bans[i]
		rows = append(rows, m.row(m.paint.banned, "  %s %s left, since %s, by %s%s", left(m.shown(b.Rule), 24), lasting(b.Until.Sub(m.theirs())),
			stamp(b.Since), m.shown(b.Source), reasonText(m.shown(b.Reason))))
	}
	return rows
}

// hotRows is what is known of a key under hot rules: its state, its last day, and the
// processes that use it most.
func (m *topModel) hotRows(reports []api.HotKeyReport) (rows []string) {
	add := func(what, text string) {
		rows = append(rows, m.row(lipgloss.NewStyle(), "  %s %s", left(what, 24), text))
	}
	for i := range reports {
		k := &reports[i]
		state := "not hot"
		if k.Hot != nil {
			state = "hot for " + lasting(m.theirs().Sub(k.Hot.Since)) + ", " + rate(k.Hot.Rate) + "/s"
		}
		add(m.shown(k.Rule), state+", "+bounded(k.Lo, max(k.Lo, k.Hi))+" in "+rulevalue.FormatDuration(k.Span.Duration()))
		hours, used := make([]uint64, 24), uint64(0)
		for i, s := range k.Day {
			hours[i*len(hours)/len(k.Day)] += s.Count
			used += s.Count
		}
		if used > 0 {
			add("uses while hot, 24h", sparkline(hours, len(hours))+" "+count(used))
		}
		for _, p := range k.Processes[:min(len(k.Processes), 5)] {
			add("by "+m.shown(p.Name), rate(float64(p.Events)/60)+"/s in the last minute")
		}
	}
	return rows
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
