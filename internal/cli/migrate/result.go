package migrate

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/lately-go/lately/rules"
)

// A Result is a rules file, and what could not be put into it.
type Result struct {
	Rules    []byte
	Patterns []PatternFile // of the filters
	Notes    []Note        // in the order of the files and their lines
}

// A Note names a part of a line that a rules file cannot express, or expresses differently.
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
	bans  []ban
	allow []string
	notes []Note
	noted map[Note]bool
	names map[string]bool
	files []string // in the order of reading

	dir      fs.FS
	folder   string // of the files of patterns
	patterns []PatternFile
	tags     int // that were replaced
}

// A ban is a rule with the comment above it.
type ban struct{ comment, rule string }

func (b *builder) note(p place, format string, args ...any) {
	n := Note{p.file, p.line, fmt.Sprintf(format, args...)}
	if b.noted[n] {
		return // jail.local is read twice: after jail.conf, and after jail.d
	}
	if b.noted == nil {
		b.noted = make(map[Note]bool)
	}
	b.noted[n] = true
	b.notes = append(b.notes, n)
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

// add adds a ban. A rule that would be wrong is a note instead.
func (b *builder) add(p place, about, rule string) {
	if _, err := rules.Parse("rule", []byte("version: 1\nbans:\n  - "+rule+"\n")); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		b.note(p, "not imported: the rule would be wrong: %s", first)
		return
	}
	b.bans = append(b.bans, ban{about, rule})
}

// header is the beginning of the rules file.
const header = `# From fail2ban. The filter of a jail is a file of patterns, and its rule is about the events of this file. Test it on a log
# with lately replay --format regex:FILE --rules THIS LOG, and remove mode: shadow. fail2ban also ignores the addresses of its
# own machine (ignoreself): add them to allow.
version: 1

# As in the source, each IPv6 address is a client. Lately's default is /64, since one client often has a whole /64.
client: {ipv4: 32, ipv6: 128}
`

// result writes the rules file.
func (b *builder) result() *Result {
	var w strings.Builder
	w.WriteString(header)
	if len(b.bans) > 0 {
		w.WriteString("\nbans:\n")
	}
	for _, r := range b.bans {
		comment(&w, "  ", r.comment)
		w.WriteString("  - " + r.rule + "\n")
	}
	b.follow(&w)
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
	return &Result{Rules: []byte(w.String()), Patterns: b.patterns, Notes: b.notes}
}

// follow writes which log has which files of patterns.
func (b *builder) follow(w *strings.Builder) {
	var logs []string
	files := map[string][]string{}
	for _, p := range b.patterns {
		for _, log := range p.Logs {
			if files[log] == nil {
				logs = append(logs, log)
			}
			files[log] = append(files[log], path.Join(b.folder, p.Name))
		}
	}
	if len(logs) == 0 {
		return
	}
	w.WriteString("\n")
	comment(w, "", "The logs and their files of patterns, for --follow:")
	for _, log := range logs {
		comment(w, "", "  "+log+"=regex:"+strings.Join(files[log], ","))
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

// quoted writes text as a value of YAML.
func quoted(text string) string { return strconv.Quote(text) }
