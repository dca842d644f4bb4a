package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/client"
	"github.com/lately-go/lately/internal/test/must"
)

// golden compares a frame with the file of that name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "top", name)
	if *update {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want := must.Get(os.ReadFile(path))(t)
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// fits fails for a frame that is larger than its screen, or has on it anything but
// printable characters and styles.
func fits(t *testing.T, frame string, width, height int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) > height {
		t.Errorf("%d lines of %d", len(lines), height)
	}
	for i, line := range lines {
		if w := lipgloss.Width(line); w > width {
			t.Errorf("%d×%d: line %d has %d cells: %q", width, height, i, w, line)
		}
		for _, r := range unstyled(t, line) {
			if !strconv.IsPrint(r) {
				t.Errorf("%d×%d: line %d has %q", width, height, i, r)
			}
		}
	}
}

// unstyled takes the styles from a line. Any other sequence is a failure.
func unstyled(t *testing.T, line string) string {
	t.Helper()
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(line, "\x1b")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r != '[' && r != ';' && (r < '0' || r > '9') })
		if !strings.HasPrefix(after, "[") || end < 0 || after[end] != 'm' {
			t.Fatalf("a sequence other than a style in %q", line)
		}
		line = after[end+1:]
	}
}

func keys(m *topModel, names ...string) {
	for _, name := range names {
		k := tea.KeyPressMsg{Text: name}
		switch name {
		case "enter":
			k = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			k = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "backspace":
			k = tea.KeyPressMsg{Code: tea.KeyBackspace}
		case "tab":
			k = tea.KeyPressMsg{Code: tea.KeyTab}
		case "down":
			k = tea.KeyPressMsg{Code: tea.KeyDown}
		case "up":
			k = tea.KeyPressMsg{Code: tea.KeyUp}
		case "pgdown":
			k = tea.KeyPressMsg{Code: tea.KeyPgDown}
		default:
			k.Code = []rune(name)[0]
		}
		m.Update(k)
	}
}

// TestTopFrames has the frames at several sizes and after some keys.
func TestTopFrames(t *testing.T) {
	for _, tt := range []struct {
		name          string
		width, height int
		keys          []string
	}{
		{"wide", 120, 36, nil},
		{"usual", 80, 24, nil},
		{"low", 80, 12, nil},
		{"narrow", 40, 30, nil},
		{"tiny", 24, 6, nil},
		{"too-small", 20, 5, nil},
		{"by-name", 100, 24, []string{"s", "s"}},
		{"filter", 100, 24, []string{"/", "x", "backspace", "1", "4", "enter"}},
		{"filter-editing", 80, 24, []string{"/", "A", "D", "a"}},
		{"filter-nothing", 80, 24, []string{"/", "z", "z", "z", "enter"}},
		{"help", 80, 24, []string{"?"}},
		{"span-too-long", 80, 24, []string{"6"}},
		{"paused", 80, 24, []string{"p"}},
		{"focus-keys", 80, 24, []string{"tab", "down", "down"}},
		{"focus-keys-end", 80, 24, []string{"tab", "pgdown", "pgdown", "pgdown"}},
		{"focus-bans", 80, 24, []string{"tab", "tab", "tab"}},
		{"focus-wide", 120, 24, []string{"tab", "tab", "down"}},
		{"focus-narrow", 40, 20, []string{"tab", "tab", "tab", "tab"}},
		{"ban", 100, 24, []string{"tab", "tab", "down", "b", "backspace", "d"}},
		{"unban", 80, 24, []string{"tab", "tab", "tab", "u"}},
		{"inspect", 80, 30, []string{"tab", "tab", "down", "enter"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := cannedModel(t, topPaint{}, tt.width, tt.height)
			keys(m, tt.keys...)
			frame := m.View().Content
			fits(t, frame, tt.width, tt.height)
			golden(t, tt.name+".txt", strings.ReplaceAll(frame, " \n", "·\n")+"\n")
			styled := cannedModel(t, newTopPaint(true), tt.width, tt.height)
			keys(styled, tt.keys...)
			if got := unstyled(t, styled.View().Content); got != frame {
				t.Errorf("with styles\n%s\nwithout\n%s", got, frame)
			}
		})
	}
}

// TestTopInspected has the answers about a key of limits and about a hot key.
func TestTopInspected(t *testing.T) {
	s := cannedServer(t, nil)
	c := must.Get(client.New(s.URL, client.Config{}))(t)
	defer c.Close()
	for name, steps := range map[string][]string{"inspected": {"tab", "tab", "down", "enter"}, "inspected-hot": {"tab", "tab", "tab", "tab", "enter"}} {
		m := cannedModel(t, topPaint{}, 80, 30)
		keys(m, steps...)
		m.Update(inspect(t.Context(), c, m.detail))
		frame := m.View().Content
		fits(t, frame, 80, 30)
		golden(t, name+".txt", strings.ReplaceAll(frame, " \n", "·\n")+"\n")
	}
}

// TestTopFits has a screen of every size: no frame is larger.
func TestTopFits(t *testing.T) {
	m := cannedModel(t, newTopPaint(true), 0, 0)
	m.reading.hot[0].Key = api.KeyOf(strings.Repeat("日本語/", 40))
	m.reading.bans[0].Key = api.KeyOf(strings.Repeat("x", 5000), "\x1b[2J")
	for width := 0; width < 140; width += 3 {
		for height := 0; height < 50; height++ {
			m.Update(tea.WindowSizeMsg{Width: width, Height: height})
			fits(t, m.View().Content, width, max(height, 1))
		}
	}
}

// hostile is texts that must not reach a terminal unescaped.
var hostile = []string{
	"\x1b[2J\x1b[H", "\x1b]0;title\a", "\x9b31m", "a\nb\r\tc", "\u202egpj.exe", "\u2066x\u2069", "\xff\xfe", "\x00", "\u200b", "\u00a0",
	"e" + strings.Repeat("\u0301", 400), strings.Repeat("👩‍👩‍👧", 50), "\x1bP+q544e\x1b\\", "\u0085\u2028\u2029", "", strings.Repeat("\x1b", 4000),
}

// TestTopHostile has hostile texts wherever the answer of a server may contain them.
func TestTopHostile(t *testing.T) {
	for i, text := range hostile {
		m := cannedModel(t, newTopPaint(true), 120, 40)
		r := m.reading
		m.addr, r.status.Version, r.status.Rules.File, r.counter = text, text, text, text
		r.counters[0].Name, m.rules[0].Name, m.rules[0].Sentence = text, text, text
		r.top[0].Key, r.bans[0].Key, r.bans[0].Rule = api.KeyOf(text, text), api.KeyOf(text), text
		r.hot[0].Key, r.hot[0].Rule = api.KeyOf(text), text
		m.filter = ""
		for _, width := range []int{120, 60, 24} {
			m.width = width
			fits(t, m.View().Content, width, 40)
			r.status.Rules.Error = text + "!"
			m.notice = text
			fits(t, m.View().Content, width, 40)
			r.status.Rules.Error, m.notice = "", ""
			m.live, m.lost = false, fmt.Errorf("%s", text)
			fits(t, m.View().Content, width, 40)
			m.live, m.unread = true, m.lost
			fits(t, m.View().Content, width, 40)
			keys(m, "/")
			m.Update(tea.KeyPressMsg{Text: text})
			fits(t, m.View().Content, width, 40)
			keys(m, "esc")
		}
		if t.Failed() {
			t.Fatalf("text %d, %.40q", i, text)
		}
	}
	// The control: a planted sequence is found.
	if s := visible("\x1b[2J"); s == "\x1b[2J" || strconv.IsPrint('\u202e') {
		t.Errorf("visible leaves %q", s)
	}
}

func TestTopTexts(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{count(0), "0"},
		{count(999), "999"},
		{count(1000), "1,000"},
		{count(999999), "999,999"},
		{count(1e6), "1 M"},
		{count(1234567), "1.23 M"},
		{count(2.5e9), "2.5 G"},
		{bounded(5, 5), "5"},
		{bounded(5, 1200), "5–1,200"},
		{rate(0), "0"},
		{rate(0.001), "<0.01"},
		{rate(0.5), "0.5"},
		{rate(12.34), "12.3"},
		{rate(1234.5), "1,235"},
		{size(0), "0 B"},
		{size(1023), "1023 B"},
		{size(1536), "1.5 KiB"},
		{size(256 << 20), "256 MiB"},
		{size(1 << 60), "1048576 TiB"},
		{lasting(-5), "0s"},
		{lasting(59e9), "59s"},
		{lasting(1), "1s"},
		{lasting(61e9), "1m 01s"},
		{lasting(3660e9), "1h 01m"},
		{lasting(90000e9), "1d 01h"},
		{clipped("abc", 3), "abc"},
		{clipped("abcd", 3), "ab…"},
		{clipped("abc", 0), ""},
		{clipped("日本語", 5), "日本…"},
		{clipped("日本語", 4), "日…"},
		{left("a", 3), "a  "},
		{right("a", 3), "  a"},
		{left("日本語", 4), "日… "},
		{sparkline([]uint64{0, 1, 50, 100}, 9), "▁▂▅█"},
		{sparkline([]uint64{9, 0, 0}, 2), "▁▁"},
		{sparkline(nil, 5), ""},
		{sparkline([]uint64{1}, -1), ""},
		{bar(0, 10, 5), ""},
		{bar(0.001, 10, 5), "▏"},
		{bar(10, 10, 5), "█████"},
		{bar(20, 10, 5), "█████"},
		{bar(5, 10, 5), "██▌"},
		{bar(1, 0, 5), ""},
		{shown("a", "b"), "a, b"},
		{shown("\x1b"), `\x1b`},
		{shown(strings.Repeat("é", 2000)), strings.Repeat("é", 1024) + "…"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
