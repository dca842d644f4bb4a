package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/lately-go/lately/api"
)

func TestUTF8Terminal(t *testing.T) {
	for _, c := range []struct {
		all, ctype, lang string
		want             bool
	}{
		{"", "", "C", false},
		{"", "", "POSIX", false},
		{"", "", "en_US", false},
		{"", "", "de_DE.ISO-8859-15@euro", false},
		{"", "", "en_US.UTF-8", true},
		{"", "", "ca_ES.utf8@valencia", true},
		{"", "", "C.UTF-8", true},
		{"C", "", "en_US.UTF-8", false},
		{"", "C", "en_US.UTF-8", false},
		{"", "en_US.UTF-8", "C", true},
		{"C.UTF-8", "C", "C", true},
	} {
		env := map[string]string{"LC_ALL": c.all, "LC_CTYPE": c.ctype, "LANG": c.lang}
		if got := utf8Terminal(func(name string) string { return env[name] }); got != c.want {
			t.Errorf("%v: %t; want %t", env, got, c.want)
		}
	}
}

// Every sign that the view draws with has one in ASCII, and no two steps of a spark
// line the same.
func TestASCIISigns(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range sparks {
		a := asciiSigns.Replace(string(r))
		if a[0] >= utf8.RuneSelf || len(a) != 1 || seen[a] {
			t.Errorf("%c is %s", r, a)
		}
		seen[a] = true
	}
	for _, end := range eighths[1:] {
		if a := asciiSigns.Replace(end); a != "|" && a != "#" {
			t.Errorf("%s is %s", end, a)
		}
	}
	if got := asciiOnly("/日本\u00e9?a=\\"); got != `/\u65e5\u672c\u00e9?a=\` {
		t.Errorf("a key is %s", got)
	}
}

// TestTopASCII has frames without anything but ASCII: the same as with more, but for
// the signs, and keys from outside escaped.
func TestTopASCII(t *testing.T) {
	for _, c := range []struct {
		name          string
		width, height int
		keys          []string
	}{{"ascii", 120, 36, nil}, {"ascii-narrow", 40, 30, nil}, {"ascii-help", 80, 24, []string{"?"}}, {"ascii-editing", 80, 24, []string{"/", "1"}}, {"ascii-too-small", 20, 5, nil}} {
		m := cannedModel(t, topPaint{}, c.width, c.height)
		keys(m, c.keys...)
		wide := m.View().Content
		m.paint.ascii = true
		frame := m.View().Content
		onlyASCII(t, frame)
		if strings.Count(frame, "?") != strings.Count(wide, "?") {
			t.Errorf("a sign without a form in ASCII:\n%s", frame)
		}
		for i, line := range strings.Split(wide, "\n") {
			if got := strings.Split(frame, "\n")[i]; lipgloss.Width(got) != lipgloss.Width(line) {
				t.Errorf("line %d is\n%s\nwant the width of\n%s", i, got, line)
			}
		}
		golden(t, c.name+".txt", strings.ReplaceAll(frame, " \n", "$\n")+"\n")
	}
}

// TestTopASCIIFits shows texts from outside.
func TestTopASCIIFits(t *testing.T) {
	paint := newTopPaint(true)
	paint.ascii = true
	m := cannedModel(t, paint, 0, 0)
	for _, text := range append(hostile, strings.Repeat("日本語/", 40)) {
		m.reading.hot[0].Key, m.reading.bans[0].Key, m.reading.top[0].Key = api.KeyOf(text), api.KeyOf(text), api.KeyOf(text)
		m.notice, m.filter, m.rules[0].Name, m.addr = text, "", text, text
		for _, width := range []int{24, 60, 120} {
			m.Update(tea.WindowSizeMsg{Width: width, Height: 40})
			fits(t, m.View().Content, width, 40)
			onlyASCII(t, m.View().Content)
		}
	}
}

func onlyASCII(t *testing.T, frame string) {
	t.Helper()
	if i := strings.IndexFunc(frame, func(r rune) bool { return r >= utf8.RuneSelf }); i >= 0 {
		t.Errorf("%q in\n%s", frame[i:min(i+8, len(frame))], frame)
	}
}
