package regex

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
)

// checkPrefix begins the names of the groups that stand for checks in what Go's parser
// reads: it has no lookaround.
const checkPrefix = "__check"

func parseIndex(s string) int {
	n, _ := strconv.Atoi(s) // of a name that was made here
	return n
}

// A translation writes a pattern in the syntax of Go, with an empty group for each check.
type translation struct {
	source string
	depth  int
	out    strings.Builder
	checks []wantedCheck
}

// A wantedCheck is a check whose group is known by name only.
type wantedCheck struct {
	check
	group  string
	offset int
}

func (t *translation) fail(at int, format string, args ...any) error {
	return &Error{t.source, at, fmt.Sprintf(format, args...)}
}

func (t *translation) run() error {
	if at := strings.Index(t.source, checkPrefix); at >= 0 {
		return t.fail(at, "%s: must not be a part of a pattern", checkPrefix)
	}
	return t.part(0, len(t.source))
}

// part translates source[i:end].
func (t *translation) part(i, end int) error {
	for i < end {
		next, err := t.item(i, end)
		if err != nil {
			return err
		}
		i = next
	}
	return nil
}

// item translates what begins at i, and returns the index after it. Of a group that is
// only its begin.
func (t *translation) item(i, end int) (next int, err error) {
	switch c := t.source[i]; c {
	case '\\':
		return t.escape(i, end)
	case '[':
		next, ok := classEnd(t.source[:end], i)
		if !ok {
			return 0, t.fail(i, "missing closing ]")
		}
		t.out.WriteString(t.source[i:next])
		return next, nil
	case '(':
		close, ok := groupEnd(t.source[:end], i)
		if !ok {
			return 0, t.fail(i, "missing closing )")
		}
		if strings.HasPrefix(t.source[i:close], "(?") {
			return t.extension(i, close)
		}
		t.out.WriteString("(?:") // no group without a name is recorded
		return t.group(i+1, close)
	case ')':
		return 0, t.fail(i, "unexpected ): no group is open")
	case '{':
		if strings.HasPrefix(t.source[i:end], "{,") { // {,n} is {0,n}
			t.out.WriteString("{0")
			return i + 1, nil
		}
		fallthrough
	default:
		t.out.WriteByte(c)
		return i + 1, nil
	}
}

// group translates the rest of a group that is closed at close.
func (t *translation) group(i, close int) (next int, err error) {
	err = t.part(i, close)
	t.out.WriteByte(')')
	return close + 1, err
}

func (t *translation) escape(i, end int) (next int, err error) {
	if i+1 == end {
		return 0, t.fail(i, "a backslash at the end: must have a character after it")
	}
	switch c := t.source[i+1]; {
	case c == 'Z':
		t.out.WriteString(`\z`)
	case '1' <= c && c <= '9':
		return 0, t.fail(i, `\%c: unknown: give the group a name and refer to it by (?P=name)`, c)
	default:
		t.out.WriteString(t.source[i : i+2])
	}
	return i + 2, nil
}

// extension translates a group that begins with "(?".
func (t *translation) extension(i, close int) (next int, err error) {
	head := t.source[i:close]
	for _, l := range []struct {
		begin string
		kind  checkKind
	}{{"(?=", ahead}, {"(?!", notAhead}, {"(?<=", behind}, {"(?<!", notBehind}} {
		if strings.HasPrefix(head, l.begin) {
			return close + 1, t.lookaround(i+len(l.begin), close, l.kind)
		}
	}
	if name, ok := strings.CutPrefix(head, "(?P="); ok {
		t.check(wantedCheck{check: check{kind: same}, group: name, offset: i})
		return close + 1, nil
	}
	if rest, ok := strings.CutPrefix(head, "(?("); ok {
		name, _, _ := strings.Cut(rest, ")")
		return close + 1, t.condition(name, i, close)
	}
	if strings.HasPrefix(head, "(?#") {
		return close + 1, nil
	}
	if strings.HasPrefix(head, "(?P<") || strings.HasPrefix(head, "(?<") {
		n := strings.IndexByte(head, '>') + 1
		if n == 0 {
			return 0, t.fail(i, "missing > after the name of the group")
		}
		t.out.WriteString(head[:n])
		return t.group(i+n, close)
	}
	return t.flags(i, close)
}

// flags translates (?:...), (?flags) and (?flags:...). The flags u and a of Python, about
// letters that are not ASCII, are left out.
func (t *translation) flags(i, close int) (next int, err error) {
	n := i + 2
	for n < close && t.source[n] != ':' {
		n++
	}
	flags := strings.NewReplacer("u", "", "a", "").Replace(t.source[i+2 : n])
	if strings.Trim(flags, "imsU-") != "" {
		return 0, t.fail(i, "%s: unknown: must be (?:...), (?P<name>...), (?i), (?i:...), a lookaround or a condition", t.source[i:min(n+1, close+1)])
	}
	switch {
	case n < close:
		t.out.WriteString("(?" + flags + ":")
		return t.group(n+1, close)
	case flags != "":
		t.out.WriteString("(?" + flags + ")")
	}
	return close + 1, nil
}

// check writes the group that stands for a check.
func (t *translation) check(c wantedCheck) {
	fmt.Fprintf(&t.out, "(?P<%s%d>)", checkPrefix, len(t.checks))
	t.checks = append(t.checks, c)
}

func (t *translation) lookaround(from, to int, kind checkKind) error {
	if t.depth == maxDepth {
		return t.fail(from, "lookarounds in lookarounds: must be at most %d deep", maxDepth)
	}
	inner, err := compile(t.source[from:to], t.depth+1)
	if err != nil {
		in := err.(*Error) // of compile
		return t.fail(from+in.Offset, "%s", in.Problem)
	}
	c := check{kind: kind, inner: inner}
	if kind == behind || kind == notBehind {
		re, _ := syntax.Parse(t.source[from:to], syntax.Perl) // nil if it has checks
		ok := false
		if c.width, ok = width(re); !ok {
			return t.fail(from, "lookbehind: must have a fixed width in ASCII, without other lookarounds")
		}
	}
	t.check(wantedCheck{check: c, offset: from})
	return nil
}

// condition translates (?(name)yes|no).
func (t *translation) condition(name string, open, close int) error {
	from := open + len("(?(") + len(name) + len(")")
	if from > close {
		return t.fail(open, "missing ) after the name of the group")
	}
	bar := from
	for bar < close && t.source[bar] != '|' {
		end, ok := bar+1, true
		switch t.source[bar] {
		case '\\':
			end = bar + 2
		case '[':
			end, ok = classEnd(t.source[:close], bar)
		case '(':
			end, ok = groupEnd(t.source[:close], bar)
			end++
		}
		if !ok {
			return t.fail(bar, "missing closing bracket")
		}
		bar = min(end, close)
	}
	t.out.WriteString("(?:")
	t.check(wantedCheck{check: check{kind: isSet}, group: name, offset: open})
	if err := t.part(from, bar); err != nil {
		return err
	}
	t.out.WriteByte('|')
	t.check(wantedCheck{check: check{kind: notSet}, group: name, offset: open})
	err := t.part(min(bar+1, close), close)
	t.out.WriteByte(')')
	return err
}

// classEnd returns the index after the class that begins at s[i].
func classEnd(s string, i int) (end int, ok bool) {
	i++
	if i < len(s) && s[i] == '^' {
		i++
	}
	for first := i; i < len(s); i++ {
		switch {
		case s[i] == '\\':
			i++
		case s[i] == '[' && i+1 < len(s) && s[i+1] == ':':
			if n := strings.Index(s[i:], ":]"); n > 0 {
				i += n + 1
			}
		case s[i] == ']' && i > first:
			return i + 1, true
		}
	}
	return 0, false
}

// groupEnd returns the index of the bracket that closes the group that begins at s[i].
func groupEnd(s string, i int) (end int, ok bool) {
	depth := 0
	for i < len(s) {
		switch s[i] {
		case '\\':
			i++
		case '[':
			next, ok := classEnd(s, i)
			if !ok {
				return 0, false
			}
			i = next - 1
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i, true
			}
		}
		i++
	}
	return 0, false
}

// width returns the number of bytes that re matches, if it is fixed.
func width(re *syntax.Regexp) (n int, ok bool) {
	if re == nil {
		return 0, false
	}
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpBeginText, syntax.OpEndLine, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return 0, true
	case syntax.OpLiteral:
		return len(re.Rune), isASCII(re.Rune)
	case syntax.OpCharClass:
		return 1, isASCII(re.Rune)
	case syntax.OpCapture:
		return width(re.Sub[0])
	case syntax.OpRepeat:
		n, ok = width(re.Sub[0])
		return n * re.Min, ok && re.Min == re.Max
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			more, ok := width(sub)
			if !ok {
				return 0, false
			}
			n += more
		}
		return n, true
	case syntax.OpAlternate:
		n, ok = width(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			other, okOther := width(sub)
			ok = ok && okOther && other == n
		}
		return n, ok
	}
	return 0, false
}

func isASCII(runes []rune) bool {
	for _, r := range runes {
		if r > 0x7f {
			return false
		}
	}
	return true
}
