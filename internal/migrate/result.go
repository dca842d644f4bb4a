package migrate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lately-go/lately/rules"
)

// A Source is one file of another tool.
type Source struct {
	Name string
	Data []byte
}

// A Result is a rules file, and what could not be put into it.
type Result struct {
	Rules []byte
	Notes []Note // in the order of the files and their lines
}

// A Note says what of one line a rules file cannot express, or expresses differently.
type Note struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// String returns "file:line: text".
func (n Note) String() string { return fmt.Sprintf("%s:%d: %s", n.File, n.Line, n.Text) }

// A place is a line of a file.
type place struct {
	file string
	line int
}

func (p place) String() string { return p.file + ":" + strconv.Itoa(p.line) }

// A builder collects the rules of a file.
type builder struct {
	header []string // comments
	limits []entry
	bans   []entry
	allow  []string
	notes  []Note
	names  map[string]bool
	files  []string // in the order of reading
}

// An entry is a rule with the comments above it. A rule that is only a template is "".
type entry struct {
	comments []string
	rule     string
}

func (b *builder) note(p place, format string, args ...any) {
	b.notes = append(b.notes, Note{p.file, p.line, fmt.Sprintf(format, args...)})
}

// name returns a name for a rule that is as much like text as it may be, and that no other
// rule has.
func (b *builder) name(text string) string {
	const most = 56
	base := strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)) {
			return r
		}
		return '-'
	}, text)
	base = cmp.Or(strings.Trim(base[:min(len(base), most)], "-"), "rule")
	name := base
	for i := 2; b.names[name]; i++ {
		name = base + "-" + strconv.Itoa(i)
	}
	if b.names == nil {
		b.names = map[string]bool{}
	}
	b.names[name] = true
	return name
}

// add adds a rule to one of the sections. A rule that would be wrong is a note instead.
func (b *builder) add(p place, to *[]entry, about, rule string) {
	name := "limits"
	if to == &b.bans {
		name = "bans"
	}
	text := "version: 1\n" + name + ":\n  - " + rule + "\n"
	if _, err := rules.Parse("rule", []byte(text)); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		b.note(p, "not imported: the rule would be wrong: %s", first)
		return
	}
	*to = append(*to, entry{[]string{about}, rule})
}

// result writes the rules file.
func (b *builder) result() *Result {
	var w strings.Builder
	for _, line := range b.header {
		comment(&w, "", line)
	}
	w.WriteString("version: 1\n\n")
	comment(&w, "", "One IPv6 address is one client, as there. The default of Lately is its /64, which one client can have whole.")
	w.WriteString("client: {ipv4: 32, ipv6: 128}\n")
	section(&w, "limits", b.limits)
	section(&w, "bans", b.bans)
	if len(b.allow) > 0 {
		fmt.Fprintf(&w, "\nallow: [%s]\n", strings.Join(b.allow, ", "))
	}
	slices.SortStableFunc(b.notes, func(x, y Note) int {
		return cmp.Or(cmp.Compare(slices.Index(b.files, x.File), slices.Index(b.files, y.File)), cmp.Compare(x.Line, y.Line))
	})
	if len(b.notes) > 0 {
		w.WriteString("\n")
		comment(&w, "", "Not expressed, or expressed differently:")
		for _, n := range b.notes {
			comment(&w, "", "  "+n.String())
		}
	}
	return &Result{Rules: []byte(w.String()), Notes: b.notes}
}

// section writes the rules of a section. A section of templates only is a comment as a whole.
func section(w *strings.Builder, name string, entries []entry) {
	if len(entries) == 0 {
		return
	}
	w.WriteString("\n")
	if !slices.ContainsFunc(entries, func(e entry) bool { return e.rule != "" }) {
		w.WriteString("# ")
	}
	w.WriteString(name + ":\n")
	for _, e := range entries {
		for _, c := range e.comments {
			comment(w, "  ", c)
		}
		if e.rule != "" {
			w.WriteString("  - " + e.rule + "\n")
		}
	}
}

// comment writes a line of a comment, in which all that is not printable is escaped.
func comment(w *strings.Builder, indent, text string) {
	w.WriteString(indent + "# ")
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		if unicode.IsPrint(r) {
			w.WriteRune(r)
		} else {
			w.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	w.WriteString("\n")
}

// whenAll returns the part of a rule with its conditions.
func whenAll(conditions []string) string {
	if len(conditions) == 0 {
		return ""
	}
	return ", when: {" + strings.Join(conditions, ", ") + "}"
}

// quoted writes text as a value of YAML.
func quoted(text string) string { return strconv.Quote(text) }
