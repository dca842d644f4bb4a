package accesslog

import (
	"bytes"
	"fmt"

	"github.com/lately-go/lately/accesslog/internal/regex"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

// A regexReader reads lines by files of patterns. Each file gives an event, or none.
type regexReader struct {
	filters []filterReader
	line    []byte
	lower   []byte // the line in lower case, for texts that are found in any case
	next    int    // filter that was not asked yet

	entry     []byte // of a journal, as a line
	dated     bool   // the time is known: it is not in the line
	sec, nsec int64
}

// A filterReader has the matchers of a filter.
type filterReader struct {
	*filter
	times           []*regex.Matcher
	prefix          *regex.Matcher
	matches, ignore []*regex.Matcher
	value           []byte // of the field filter
	text            []byte // a line without its time
}

// An outcome is the result of a filter for a line.
type outcome uint8

const (
	otherLine outcome = iota
	badLine
	eventLine
)

func newRegexReader(filters *filters) *regexReader {
	if filters == nil {
		return nil
	}
	r := &regexReader{}
	for _, f := range filters.all {
		fr := filterReader{filter: f, value: []byte(f.name), matches: matchers(f.matches), ignore: matchers(f.ignores)}
		for _, t := range f.times {
			fr.times = append(fr.times, t.NewMatcher())
		}
		if f.prefix != nil {
			fr.prefix = f.prefix.NewMatcher()
		}
		r.filters = append(r.filters, fr)
	}
	return r
}

func matchers(patterns []*linePattern) (all []*regex.Matcher) {
	for _, p := range patterns {
		all = append(all, p.NewMatcher())
	}
	return all
}

// regex reads a line by patterns. A line that matches none of them is skipped; one that
// matches without a time is bad.
func (p *Parser) regex(line []byte, ev *match.Event) bool {
	r := p.patterns
	r.line, r.next, r.lower = line, 0, r.lower[:0]
	return p.nextFiltered(ev)
}

// nextFiltered sets ev to the event of the next filter that has one.
func (p *Parser) nextFiltered(ev *match.Event) bool {
	r := p.patterns
	p.skipped = true
	for r.next < len(r.filters) {
		f := &r.filters[r.next]
		r.next++
		if f.folds && len(r.lower) == 0 {
			r.lower = appendLower(r.lower, r.line)
		}
		if !f.mayMatch(r.line, r.lower) {
			continue
		}
		switch p.filtered(f, r, ev) {
		case eventLine:
			return true
		case badLine:
			p.skipped = false
		}
		ev.Reset()
	}
	return false
}

func appendLower(to, text []byte) []byte {
	for _, c := range text {
		if isUpper(c) {
			c |= 0x20
		}
		to = append(to, c)
	}
	return to
}

// mayMatch reports whether one of the patterns can match: of most lines none can.
func (f *filterReader) mayMatch(line, lower []byte) bool {
	if f.prefix != nil && !f.filter.prefix.PossibleAround(line, lower, f.words) {
		return false
	}
	if f.finder != nil {
		return f.finder.In(line)
	}
	for _, m := range f.filter.matches {
		if m.PossibleAround(line, lower, f.words) {
			return true
		}
	}
	return false
}

// filtered reads a line by one filter.
func (p *Parser) filtered(f *filterReader, r *regexReader, ev *match.Event) outcome {
	dated, text := -1, r.line
	if !r.dated {
		dated, text = f.cutTime(r.line)
	}
	if f.prefix != nil {
		if !f.prefix.Match(text) {
			if f.prefix.Exceeded() {
				return badLine
			}
			return otherLine
		}
		setGroups(ev, f.filter.prefix, f.prefix)
		if content := f.prefix.Group(f.filter.prefix.content); content != nil {
			text = content
		}
	}
	for i, m := range f.filter.matches {
		if !m.Begins(text) || !f.folds && !m.Possible(text, nil) || f.folds && !m.PossibleAround(r.line, r.lower, f.words) {
			continue
		}
		if !f.matches[i].Match(text) {
			if f.matches[i].Exceeded() {
				return badLine
			}
			continue
		}
		if f.ignored(text, r) || len(f.matches[i].Group(m.noFail)) > 0 {
			return otherLine
		}
		setGroups(ev, m, f.matches[i])
		if len(ev.Get(match.Client)) == 0 {
			return otherLine
		}
		ev.SetNamed("filter", f.value)
		eventfield.SplitPath(ev)
		return p.setTime(ev, f, r, dated)
	}
	return otherLine
}

// setTime sets the time of an event, which the pattern of that number has found.
func (p *Parser) setTime(ev *match.Event, f *filterReader, r *regexReader, dated int) outcome {
	sec, nsec, ok := r.sec, r.nsec, r.dated
	if !ok && dated >= 0 {
		sec, nsec, ok = p.patternTime(f.filter.times[dated], f.times[dated])
	}
	if !ok {
		return badLine
	}
	ev.Time = utc(sec, nsec)
	return eventLine
}

// ignored reports whether a pattern of ignore matches.
func (f *filterReader) ignored(text []byte, r *regexReader) bool {
	for i, m := range f.ignores {
		if m.PossibleAround(r.line, r.lower, f.words) && f.ignore[i].Match(text) {
			return true
		}
	}
	return false
}

// setGroups sets the fields of ev that have a value in a match. Of several groups with the
// name of a field the first one that has a value counts.
func setGroups(ev *match.Event, p *linePattern, m *regex.Matcher) {
	for i, g := range p.groups {
		v := m.Group(g.number)
		if len(v) == 0 || earlier(p.groups[:i], g.name, m) {
			continue
		}
		switch {
		case !g.known:
			ev.SetNamed(g.name, v)
		case g.field == match.Client:
			ev.Set(match.Client, clientAddress(v))
		default:
			ev.Set(g.field, v)
		}
	}
}

// earlier reports whether one of the groups of that name has a value.
func earlier(groups []patternGroup, name string, m *regex.Matcher) bool {
	for _, g := range groups {
		if g.name == name && len(m.Group(g.number)) > 0 {
			return true
		}
	}
	return false
}

// cutTime finds the time of a line, and returns the line without it, and the number of the pattern
// that has found the time, -1 for none.
func (f *filterReader) cutTime(line []byte) (dated int, text []byte) {
	for i, t := range f.filter.times {
		m := f.times[i]
		if !m.Match(line) {
			continue
		}
		from, to := m.Span(t.whole)
		if from == 0 {
			return i, line[to:]
		}
		f.text = append(append(f.text[:0], line[:from]...), line[to:]...)
		return i, f.text
	}
	return -1, line
}

// regexProblem returns the reason why a line is not an event.
func (f Format) regexProblem(line []byte) string {
	p, err := f.NewParser(Options{})
	if err != nil {
		return ""
	}
	if ev := new(match.Event); !p.Parse(line, ev) && p.skipped {
		return f.patternProblem(line)
	}
	for i := range p.patterns.filters {
		fr := &p.patterns.filters[i]
		if dated, _ := fr.cutTime(bytes.TrimSpace(line)); dated < 0 {
			return "it has no time that the patterns of " + fr.name + " know: add a line such as time %Y-%m-%d %H:%M:%S"
		}
	}
	return "its time is not one of the calendar, or the line takes the patterns too many steps"
}

// maxShown bounds the bytes of a line that a message shows.
const maxShown = 200

// patternProblem returns the reason why a line matches no pattern: what of a prefix it lacks, what the
// patterns saw of it, and which other format it has.
func (f Format) patternProblem(line []byte) string {
	if len(line) == 0 {
		return "it is empty"
	}
	p, _ := f.NewParser(Options{}) // the zero Options are good
	fr := &p.patterns.filters[0]
	_, text := fr.cutTime(line)
	problem := fmt.Sprintf("no match fits %q, which is the line without its time", text[:min(len(text), maxShown)])
	if fr.prefix != nil && !fr.prefix.Match(text) {
		problem = fmt.Sprintf("the prefix does not match %q, which is the line without its time", text[:min(len(text), maxShown)])
	}
	if nearest, ok := Detect(line); ok {
		problem += "; it is a line of the format " + nearest.String()
	}
	return problem
}
