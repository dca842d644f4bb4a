package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
)

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

// passes reports whether one of these texts of a line matches the filter.
func (m *topModel) passes(texts ...string) bool {
	if m.filter == "" {
		return true
	}
	filter := strings.ToLower(m.filter)
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(strings.ToLower(t), filter) })
}
