package accesslog

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lately-go/lately/accesslog/internal/regex"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/file/fileperm"
	"github.com/lately-go/lately/internal/rule/spelling"
	"github.com/lately-go/lately/match"
)

// Limits of a file of patterns.
const (
	maxPatternFile = 256 << 10 // bytes
	maxPatterns    = 256
	maxProgram     = 100_000 // instructions of the patterns of a file
	maxFilters     = 64      // files of a format
)

var regexLines = &lineKind{parse: (*Parser).regex}

// Filters are those of a format. Each line is read by all of them.
type filters struct{ all []*filter }

// A filter is a file of patterns: lines of a log that match one of them are events.
type filter struct {
	name    string // of the file, without its ending
	times   []*timePattern
	prefix  *linePattern // nil: the patterns are about the whole line
	matches []*linePattern
	ignores []*linePattern
	words   bool // times are between characters that are not of words, or at the begin of the line
	folds   bool // some look for texts in lower case

	finder *regex.Finder // of what one of the matches needs; nil if that is not known
	size   int           // instructions of all patterns
}

// A linePattern is a pattern with the fields that its groups give.
type linePattern struct {
	*regex.Pattern
	groups  []patternGroup
	content int // group of a prefix that the other patterns are about, -1 for all of the line
	noFail  int // group that makes the line no event, -1 for none
}

// A patternGroup is a group of a pattern that is a field.
type patternGroup struct {
	number int
	name   string
	field  match.Field
	known  bool
}

// parseRegexFiles returns the format of one or more files of patterns, with a comma between.
func parseRegexFiles(list string) (Format, error) {
	f := Format{text: "regex:" + list, kind: regexLines, filters: &filters{}}
	names := strings.Split(list, ",")
	if len(names) > maxFilters {
		return Format{}, fmt.Errorf("accesslog: format regex: %d files: must be at most %d", len(names), maxFilters)
	}
	for _, name := range names {
		if name == "" {
			return Format{}, errors.New("accesslog: format regex: FILE: missing: must be a file of patterns, as in regex:shop.regex")
		}
		data, err := fileperm.ReadFile(name, maxPatternFile)
		if err != nil {
			return Format{}, fmt.Errorf("accesslog: format regex: %w", err)
		}
		one, err := ParsePatterns(name, data)
		if err != nil {
			return Format{}, err
		}
		f.filters.all = append(f.filters.all, one.filters.all...)
	}
	return f, nil
}

// ParsePatterns returns the format of a file of patterns with the text data; see
// [ParseFormat]. The error names file, line and column, and contains the pattern.
func ParsePatterns(file string, data []byte) (Format, error) {
	base := filepath.Base(file)
	f := &filter{name: strings.TrimSuffix(base, filepath.Ext(base))}
	n, count := 0, 0
	for text := range strings.Lines(string(data)) {
		n++
		text = strings.TrimRight(text, "\r\n\t ")
		if text == "" || text[0] == '#' {
			continue
		}
		if count++; count > maxPatterns {
			return Format{}, fmt.Errorf("accesslog: %s:%d: too many patterns (max %d)", file, n, maxPatterns)
		}
		if at, err := f.add(text); err != nil {
			return Format{}, fmt.Errorf("accesslog: %s:%d:%d: %w\n  %s\n  %s^", file, n, at+1, err, text, caretSpace(text, at))
		}
		if f.size > maxProgram {
			return Format{}, fmt.Errorf("accesslog: %s:%d: the patterns are too large: must compile to at most %d instructions", file, n, maxProgram)
		}
	}
	if len(f.matches) == 0 {
		return Format{}, fmt.Errorf("accesslog: %s: there is no line with match: must have one or more, such as match ^login failed from <HOST>", file)
	}
	if f.times == nil {
		f.times = defaultTimes()
	}
	var patterns []*regex.Pattern
	for _, m := range f.matches {
		patterns = append(patterns, m.Pattern)
	}
	f.words = !slices.ContainsFunc(f.times, func(t *timePattern) bool { return !t.words })
	f.finder = regex.NewFinder(patterns, f.words)
	return Format{text: "regex:" + file, kind: regexLines, filters: &filters{[]*filter{f}}}, nil
}

// caretSpace returns what stands below text[:at], so that a caret is below text[at].
func caretSpace(text string, at int) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, text[:min(at, len(text))])
}

// patternWords begin the lines of a file of patterns.
var patternWords = []string{"time", "prefix", "match", "ignore"}

// add adds a line of the file. The error is about the text from at on.
func (f *filter) add(line string) (at int, err error) {
	word := line[:len(line)-len(strings.TrimLeft(line, "abcdefghijklmnopqrstuvwxyz"))]
	text := strings.TrimLeft(line[len(word):], " \t")
	at = len(line) - len(text)
	if text == "" && slices.Contains(patternWords, word) {
		return len(line), fmt.Errorf("%s: missing: must have a pattern after it", word)
	}
	var offset int
	switch word {
	case "time":
		var times []*timePattern
		times, offset, err = parseTimes(text)
		f.times = append(f.times, times...)
	case "prefix":
		if f.prefix != nil {
			return 0, errors.New("prefix: a second one: must be given once")
		}
		f.prefix, offset, err = f.newPattern(text)
	case "match", "ignore":
		var p *linePattern
		if p, offset, err = f.newPattern(text); err != nil {
			break
		}
		if word == "match" {
			f.matches = append(f.matches, p)
		} else {
			f.ignores = append(f.ignores, p)
		}
	default:
		if near := spelling.Nearest(word, patternWords, 2); near != "" {
			return 0, fmt.Errorf("%q: unknown; did you mean %s?", word, near)
		}
		first, _, _ := strings.Cut(line, " ")
		return 0, fmt.Errorf("%.40q: unknown: a line must begin with one of %s, or # for a comment", first, strings.Join(patternWords, ", "))
	}
	return at + offset, err
}

// newPattern compiles a pattern of f. The error is about text[at:].
func (f *filter) newPattern(text string) (p *linePattern, at int, err error) {
	if p, at, err = newLinePattern(text); err == nil {
		f.size += p.Size()
		f.folds = f.folds || p.Folds()
	}
	return p, at, err
}

// The client of a line: an address, in brackets or without, or also the name of a host.
const (
	addressTag = `\[?(?:(?:::f{4,6}:)?(?P<client>` + ipv4Text + `)|(?P<client>` + ipv6Text + `))\]?`
	hostTag    = `(?:` + addressTag + `|(?P<client>[\w\-.^_]*\w))`
	ipv4Text   = `(?:\d{1,3}\.){3}\d{1,3}`
	ipv6Text   = `(?:[0-9a-fA-F]{1,4}::?|:){1,7}(?:[0-9a-fA-F]{1,4}|(?<=:):)`
)

var clientTags = strings.NewReplacer("<HOST>", hostTag, "<ADDR>", addressTag)

// newLinePattern compiles a pattern. The error is about text[at:].
func newLinePattern(text string) (p *linePattern, at int, err error) {
	compiled, err := regex.Compile(clientTags.Replace(text))
	if err != nil {
		return nil, offsetBeforeTags(text, err.(*regex.Error).Offset), errors.New(err.(*regex.Error).Problem)
	}
	p = &linePattern{Pattern: compiled, content: compiled.Group("content"), noFail: compiled.Group("nofail")}
	for number, name := range compiled.Names() {
		if name == "" || name[0] == '_' || name == "content" || name == "nofail" {
			continue
		}
		if name == "time" || name == "filter" {
			return nil, max(strings.Index(text, "<"+name+">"), 0), fmt.Errorf("group %q: must have another name: time is what a line with time has, and filter is the name of the file", name)
		}
		if name == eventfield.Log || name == eventfield.Format {
			return nil, max(strings.Index(text, "<"+name+">"), 0), fmt.Errorf("group %q: must have another name, as this one says which log an event is from", name)
		}
		g := patternGroup{number: number, name: name}
		g.field, g.known = eventfield.Named(name)
		p.groups = append(p.groups, g)
	}
	return p, 0, nil
}

// offsetBeforeTags returns the place in text of a place in the text with the tags replaced.
func offsetBeforeTags(text string, offset int) int {
	for i := range text {
		if len(clientTags.Replace(text[:i])) >= offset {
			return i
		}
	}
	return len(text)
}

// zoneless reports whether a time may name no zone.
func (fs *filters) zoneless() bool {
	return slices.ContainsFunc(fs.all, func(f *filter) bool {
		return slices.ContainsFunc(f.times, func(t *timePattern) bool { return !t.zoned() })
	})
}

// fields returns the names of the fields of the events, sorted.
func (fs *filters) fields() (names []string) {
	for _, f := range fs.all {
		names = append(names, f.fields()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fields returns the names of the fields of the events, perhaps more than once.
func (f *filter) fields() []string {
	names := []string{"client", "filter"}
	for _, p := range append([]*linePattern{f.prefix}, f.matches...) {
		if p != nil {
			for _, g := range p.groups {
				names = append(names, g.name)
			}
		}
	}
	return names
}
