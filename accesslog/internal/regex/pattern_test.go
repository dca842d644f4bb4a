package regex

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/lately-go/lately/internal/test/must"
)

// Groups of the first match, with '-' for one that has no part in it.
func groups(t *testing.T, text, in string) string {
	t.Helper()
	p := must.Get(Compile(text))(t)
	m := p.NewMatcher()
	if !m.Match([]byte(in)) {
		return "no match"
	}
	var all []string
	for i, name := range p.Names() {
		if v := m.Group(i); v != nil {
			all = append(all, name+"="+string(v))
		} else {
			all = append(all, name+"-")
		}
	}
	return strings.Join(all, " ")
}

// The results equal those of Python's re.
func TestConstructsOfPython(t *testing.T) {
	for _, test := range []struct{ pattern, in, want string }{
		{`(?P<a>x+)(?!y)`, "xxxy", "=xx a=xx"},
		{`^(?!ab)\w+`, "abc", "no match"},
		{`^(?!ab)\w+`, "acb", "=acb"},
		{`(?=ACCEPT|RESULT)(?P<c>.+)`, "x RESULT y", "=RESULT y c=RESULT y"},
		{`(?<=:)b`, "ab:b", "=b"},
		{`(?<!:)b`, ":bb", "=b"},
		{`^(?:(?! from ).)*$`, "a from b", "no match"},
		{`^(?P<u>(?:(?! from ).)*?) from (?P<h>\S+)$`, "a fro b from c", "=a fro b from c u=a fro b h=c"},
		{`(?P<a>\w+) (?P=a)$`, "xy zz zz", "=zz zz a=zz"},
		{`^(?P<q>')?(?P<w>\w+)(?(q)'|)$`, "'ab'", "='ab' q=' w=ab"},
		{`^(?P<q>')?(?P<w>\w+)(?(q)'|)$`, "'ab", "no match"},
		{`^(?P<q>')?(?P<w>\w+)(?(q)')$`, "ab", "=ab q- w=ab"},
		{`^(?:(?P<s>\S+)|.*?) from (?P<h>\S+)(?(s): |$)`, "root from 192.0.2.1", "=root from 192.0.2.1 s- h=192.0.2.1"},
		{`^(?:(?P<s>\S+)|.*?) from (?P<h>\S+)(?(s): |$)`, "root from 192.0.2.1: x", "=root from 192.0.2.1:  s=root h=192.0.2.1"},
		{`a(?#no)b\Z`, "ab", "=ab"},
		{`^a{,2}b`, "aab", "=aab"},
		{`(?iu)É`, "é", "=é"},
		{`x(?=(?!y)z)`, "xz", "=x"},
		{`[]a]+(?=[)])`, "]a)", "=]a"},
	} {
		if got := groups(t, test.pattern, test.in); got != test.want {
			t.Errorf("%s in %q: %s, want %s", test.pattern, test.in, got, test.want)
		}
	}
}

func TestErrorsHavePositions(t *testing.T) {
	for text, want := range map[string]string{
		"ab(c":                             "at byte 3: missing closing )",
		"ab)c":                             "at byte 3: unexpected ): no group is open",
		"a[b":                              "at byte 2: missing closing ]",
		`a\`:                               "at byte 2: a backslash at the end: must have a character after it",
		`(a)\1`:                            `at byte 4: \1: unknown: give the group a name and refer to it by (?P=name)`,
		`(?P=x)`:                           `at byte 1: unknown group "x": must be the name of a group of the pattern`,
		`a(?>b)`:                           `at byte 2: (?>b): unknown: must be (?:...), (?P<name>...), (?i), (?i:...), a lookaround or a condition`,
		`ab(?<=c*)`:                        "at byte 7: lookbehind: must have a fixed width in ASCII, without other lookarounds",
		`ab**`:                             "at byte 3: invalid nested repetition operator: **",
		`a(?=b(c)`:                         "at byte 2: missing closing )",
		`a(?=b[c)`:                         "at byte 2: missing closing )",
		`a(?!b**)`:                         "at byte 6: invalid nested repetition operator: **",
		strings.Repeat("a", MaxText+1):     "at byte 8193: too long (max 8192 bytes)",
		`(?:(?:\w{100}){100}){10}`:         "at byte 9: invalid repeat count: {100}",
		strings.Repeat(`\w{1000}`, 20):     "at byte 1: too large: must compile to at most 10000 instructions",
		strings.Repeat("(?=", 10) + "))))": "at byte 1: missing closing )",
	} {
		_, err := Compile(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// A lookahead in a loop reads the text again and again: the work for one text is bounded.
func TestWorkIsBounded(t *testing.T) {
	p := must.Get(Compile(`^(?:(?=.*.*x)a)*b`))(t)
	m := p.NewMatcher() // each of the a has an x after it
	if m.Match(append(bytes.Repeat([]byte("a"), 1<<15), 'x')) || !m.Exceeded() {
		t.Error("a text that takes too long has a match, or is not reported")
	}
	if !m.Match([]byte("aaxb")[3:]) || m.Exceeded() {
		t.Error("the text after it has no match")
	}
}

func TestRequired(t *testing.T) {
	for text, want := range map[string]string{
		`^Failed \S+ for`:              "Failed ",
		`^(?:Connection|Disconnect) `:  "Connection|Disconnect",
		`a?b*`:                         "",
		`(?:ab|c?)d`:                   "d",
		`(?i)login failed`:             "login failed",
		`(?i)desks`:                    "de",
		`\w+(?=never)x`:                "x",
		`(?(a)longer|b)(?P<a>x)(?:yz)`: "yz",
	} {
		p := must.Get(Compile(text))(t)
		var got []string
		for _, l := range p.required {
			got = append(got, string(l.text))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q, want %s", text, got, want)
		}
	}
}

// FuzzMatch compares with Go's regexp on patterns that it reads, too. On others, nothing but
// the required texts and the bound of work is checked.
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{`^(?P<a>\S+) (?P<b>.*?)( x)?$`, "1 2 x"},
		{`(?P<a>a|ab)(?P<b>c|bcd)(?P<c>d*)`, "abcd"},
		{`(?i)fOo\b[^x-z]+`, "bar Foo é1"},
		{`(?:(?! from ).)*`, "x from y"},
		{`(?P<x>y*)*(?(x)a|b)(?P=x)`, "yyayy"},
		{`(?P<a>(?:a*)+)+$`, "aaaaaaaaaaaaaaaaab"},
		{`(?m)^b$|\Bc\b`, "a\nb\nac"},
		{`^(?P<a>|b|cd|c|(?P<b>e*)*|f)x{2,3}$`, "cxx"},
		{`(?P<a>(?:ab|a|abc)(?:c|bcd)?)(?P<b>$|d)`, "abcd"},
		{`x(?P<a>` + strings.Repeat("long", 20) + `)+`, "x" + strings.Repeat("long", 40)},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, text, in string) {
		if len(text) > 200 || len(in) > 200 {
			return
		}
		p, err := Compile(text)
		if err != nil {
			e := err.(*Error)
			if e.Offset < 0 || e.Offset > len(text) || e.Problem == "" {
				t.Fatalf("%+v", e)
			}
			return
		}
		m := p.NewMatcher()
		got := m.Match([]byte(in))
		if got && !p.Possible([]byte(in), []byte(strings.ToLower(in))) {
			t.Fatalf("%q matches %q, which lacks each of %v", text, in, p.required)
		}
		if want, err := regexp.Compile(text); err == nil && len(p.checks) == 0 && utf8.ValidString(in) && !strings.Contains(text, `\Z`) && !strings.Contains(text, "{,") {
			compare(t, text, in, m, got, want)
		}
	})
}

func compare(t *testing.T, text, in string, m *Matcher, got bool, want *regexp.Regexp) {
	t.Helper()
	loc := want.FindStringSubmatchIndex(in)
	if got != (loc != nil) {
		t.Fatalf("%q in %q: %v, want %v", text, in, got, loc)
	}
	if !got {
		return
	}
	n := -1
	for i, name := range want.SubexpNames() {
		if i > 0 && name == "" {
			continue
		}
		n++
		if m.slots[2*n] != loc[2*i] || m.slots[2*n+1] != loc[2*i+1] {
			t.Fatalf("%q in %q: group %q is %v, want %v", text, in, name, m.slots[2*n:2*n+2], loc[2*i:2*i+2])
		}
	}
}
