package cli

import (
	"runtime"
	"strconv"
	"strings"
	"unicode/utf8"
)

// utf8Terminal reports whether the terminal shows UTF-8, as the environment has it:
// the first of LC_ALL, LC_CTYPE and LANG that is set names the encoding. Windows has
// no such variables and shows it.
func utf8Terminal(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := getenv(name); locale != "" {
			_, encoding, _ := strings.Cut(locale, ".")
			encoding, _, _ = strings.Cut(encoding, "@")
			return strings.EqualFold(strings.ReplaceAll(encoding, "-", ""), "utf8")
		}
	}
	return runtime.GOOS == "windows"
}

// asciiOnly returns s with what is not ASCII escaped as in a Go string.
func asciiOnly(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

// drawn returns the frame for the terminal: in ASCII, each sign of the view
// is replaced by one of the same width.
func (p topPaint) drawn(frame string) string {
	if !p.ascii {
		return frame
	}
	return asciiSigns.Replace(frame)
}

var asciiSigns = strings.NewReplacer(
	"▁", "_", "▂", ".", "▃", ":", "▄", "-", "▅", "=", "▆", "+", "▇", "*", "█", "#",
	"▏", "|", "▎", "|", "▍", "|", "▌", "#", "▋", "#", "▊", "#", "▉", "#", "░", ".",
	"─", "-", "●", "*", "○", "o", "‖", "|", "…", "~", "–", "-", "×", "x",
)
