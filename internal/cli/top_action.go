package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// A topAction is a change of a ban that the user has requested.
type topAction struct {
	rule   string
	key    []string
	length time.Duration // of a ban; 0 ends one
}

// topDone is the answer to a topAction.
type topDone struct{ notice string }

// A topPrompt asks under which rule, and for how long, before anything is changed.
type topPrompt struct {
	line  topLine
	rules []string // under which the key can be banned
	rule  int
	ban   bool
	text  string // the duration
}

// startPrompt opens the question whether to ban, or unban, the chosen key.
func (m *topModel) startPrompt(ban bool) {
	line, ok := m.chosen()
	if !ok {
		m.notice = chooseFirst
		return
	}
	p := &topPrompt{line: line, ban: ban, text: "1h"}
	for i := range m.rules {
		if r := &m.rules[i]; r.Kind != "hot" && len(line.fields) > 0 && slices.Equal(r.Fields, line.fields) {
			p.rules = append(p.rules, r.Name)
		}
	}
	if len(p.rules) == 0 {
		m.notice = "no limit or ban counts by " + strings.Join(line.fields, ", ") + ": the key cannot be banned"
		return
	}
	p.rule = max(0, slices.Index(p.rules, line.rule))
	m.prompt = p
}

// promptText returns the question.
func (m *topModel) promptText() string {
	p := m.prompt
	rule := m.shown(p.rules[p.rule])
	if len(p.rules) > 1 {
		rule += " (tab: another)"
	}
	key := clipped(m.shown(p.line.key...), max(m.width/3, 12))
	if p.ban {
		return "ban " + key + " under " + rule + " for " + m.shown(p.text) + "▏  enter bans, esc does not"
	}
	return "unban " + key + " under " + rule + "?  enter unbans, esc does not"
}

// answer handles a key while a question is open.
func (m *topModel) answer(k tea.KeyPressMsg) tea.Cmd {
	p := m.prompt
	switch k.String() {
	case "esc":
		m.prompt = nil
	case "tab":
		p.rule = (p.rule + 1) % len(p.rules)
	case "enter":
		return m.confirm()
	default:
		if p.ban {
			p.text = edited(p.text, k, 16)
		}
	}
	return nil
}

// confirm bans or unbans the key.
func (m *topModel) confirm() tea.Cmd {
	p := m.prompt
	m.prompt = nil
	a := topAction{rule: p.rules[p.rule], key: p.line.key}
	if p.ban {
		var err error
		if a.length, err = rulevalue.ParseDuration(p.text); err != nil {
			m.notice = fmt.Sprintf("duration %q: must be such as 10m, 1h or 7d", p.text)
			return nil
		}
	}
	return m.act(a)
}

// perform changes a ban on the server.
func perform(ctx context.Context, c *client.Client, a topAction) topDone {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	key := shown(a.key...)
	if a.length > 0 {
		b, err := c.Ban(ctx, a.rule, a.length, "by hand, from top", a.key...)
		if err != nil {
			return topDone{"not banned: " + err.Error()}
		}
		return topDone{fmt.Sprintf("%s is banned under %s for %s", shown(b.Values()...), a.rule, rulevalue.FormatDuration(a.length))}
	}
	n, err := c.Unban(ctx, a.rule, a.key...)
	switch {
	case err != nil:
		return topDone{"not unbanned: " + err.Error()}
	case n == 0:
		return topDone{fmt.Sprintf("%s was not banned under %s", key, a.rule)}
	}
	return topDone{fmt.Sprintf("%s is unbanned under %s", key, a.rule)}
}

// edit changes the filter.
func (m *topModel) edit(k tea.KeyPressMsg) {
	switch k.String() {
	case "enter":
		m.editing = false
	case "esc":
		m.editing, m.filter = false, ""
	default:
		m.filter = edited(m.filter, k, maxFilter)
	}
}

// edited returns a line of text after a key, in at most that many bytes.
func edited(text string, k tea.KeyPressMsg, most int) string {
	switch name := k.String(); {
	case name == "ctrl+u":
		return ""
	case name == "backspace":
		_, size := utf8.DecodeLastRuneInString(text)
		return text[:len(text)-size]
	case len(text)+len(k.Text) <= most:
		return text + k.Text
	}
	return text
}
