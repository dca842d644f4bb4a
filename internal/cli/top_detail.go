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
	"github.com/lately-go/lately/rules"
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

// inspectChosen shows the chosen key instead of the panels.
func (m *topModel) inspectChosen() tea.Cmd {
	line, ok := m.chosen()
	if !ok {
		m.notice = "choose a key first: tab goes to a panel of keys, up and down to a key"
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
	add := func(style func(...string) string, format string, args ...any) {
		text := clipped(fmt.Sprintf(format, args...), m.width)
		lines = append(lines, style(text))
	}
	plain := lipgloss.NewStyle().Render
	switch {
	case d.err != nil:
		add(m.paint.wrong.Render, "not read: %s", m.shown(d.err.Error()))
	case d.report == nil:
		add(m.paint.dim.Render, "reading")
	}
	if d.report == nil {
		return lines
	}
	lines = append(lines, "", m.paint.bold.Render("Windows"))
	for _, w := range d.report.Counters {
		add(plain, "  %s last %s  %s", left(m.shown(w.Counter), 16), left(rules.FormatDuration(w.Span.Duration()), 5), bounded(w.Lo, w.Hi))
	}
	if len(d.report.Counters) == 0 {
		add(m.paint.dim.Render, "  no counter counts by this")
	}
	if len(d.report.Hot) > 0 {
		lines = append(lines, "", m.paint.bold.Render("Hot keys"))
	}
	for i := range d.report.Hot {
		for _, text := range m.hotDetail(&d.report.Hot[i]) {
			add(plain, "  %s", text)
		}
	}
	lines = append(lines, "", m.paint.bold.Render("What each rule would decide now"))
	for _, r := range d.report.Rules {
		style, text := m.paint.allowed.Render, fmt.Sprintf("would allow, %s of %s left", count(uint64(max(r.Decision.Remaining, 0))), count(r.Decision.Limit))
		x, banned := &r.Decision, time.UnixMilli(int64(r.Decision.BannedUntil))
		switch {
		case banned.After(m.theirs()):
			style, text = m.paint.banned.Render, "banned for "+lasting(banned.Sub(m.theirs()))
		case !x.Allowed:
			style, text = m.paint.refused.Render, "would refuse, again in "+lasting(x.RetryAfter.Duration())
		}
		add(style, "  %s %s", left(m.shown(r.Rule), 24), text)
	}
	if len(d.report.Rules) == 0 {
		add(m.paint.dim.Render, "  no rule judges by this")
	}
	lines = append(lines, "", m.paint.bold.Render("Bans"))
	for _, b := range d.report.Bans {
		add(m.paint.banned.Render, "  %s %s left, since %s, by %s%s", left(m.shown(b.Rule), 24), lasting(b.Until.Sub(m.theirs())),
			b.Since.UTC().Format(time.DateTime), m.shown(b.Source), reasonText(m.shown(b.Reason)))
	}
	if len(d.report.Bans) == 0 {
		add(m.paint.dim.Render, "  not banned")
	}
	return lines
}

// hotDetail is what is known of a key under a hot rule: its state, its last day, and the
// processes that use it most.
func (m *topModel) hotDetail(k *api.HotKeyReport) []string {
	state := "not hot"
	if k.Hot != nil {
		state = "hot for " + lasting(m.theirs().Sub(k.Hot.Since)) + ", " + rate(k.Hot.Rate) + "/s"
	}
	text := left(m.shown(k.Rule), 24) + " " + state + ", " + bounded(k.Lo, max(k.Lo, k.Hi)) + " in " + rules.FormatDuration(k.Span.Duration())
	hours, used := make([]uint64, 24), uint64(0)
	for i, s := range k.Day {
		hours[i*len(hours)/len(k.Day)] += s.Count
		used += s.Count
	}
	lines := []string{text}
	if used > 0 {
		lines = append(lines, left("uses while hot, 24h", 24)+" "+sparkline(hours, len(hours))+" "+count(used))
	}
	for _, p := range k.Processes[:min(len(k.Processes), 5)] {
		lines = append(lines, left("by "+m.shown(p.Name), 24)+" "+rate(float64(p.Events)/60)+"/s in the last minute")
	}
	return lines
}

func reasonText(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
