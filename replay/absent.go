package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

// An InputError is the error of Run if the files have no event, or none that has a
// field of --key or of a rule. Each sentence is one problem.
type InputError struct{ Sentences []string }

// Error returns the sentences, one in a line.
func (e *InputError) Error() string { return strings.Join(e.Sentences, "\n") }

// checkLines adds a problem for each file whose lines are all bad. It returns an error
// if no other file is left.
func (r *run) checkLines(blocks []*parsed, report *Report) error {
	lines, known := make([]int64, len(r.Files)), make([]bool, len(r.Files))
	for _, b := range blocks {
		lines[b.file] += b.lines
		known[b.file] = known[b.file] || b.bad < b.lines || b.format.String() == "" // a problem already
	}
	none := report.Lines > 0
	for file, n := range lines {
		none = none && !known[file]
		if n > 0 && !known[file] {
			report.Problems = append(report.Problems, r.noEvents(file, n))
		}
	}
	if none {
		return &InputError{report.Problems}
	}
	return nil
}

// noEvents returns the problem of a file of which no line could be read, and why the
// first could not.
func (r *run) noEvents(file int, lines int64) string {
	f := r.formats[file]
	text := fmt.Sprintf("%s: none of its %s is of format %s", r.Files[file], plural(int(lines), "line", "lines"), f)
	if why := f.Problem(r.firstLines[file]); why != "" {
		text += "; its first line: " + why
	}
	return text + "; --show-bad-lines shows lines, --format gives another format"
}

// checkRules adds a problem for the field by which the busiest are listed, if it was
// given and no event has it, and for each rule that can match no event of the log;
// such a rule is not reported. It returns an error if nothing else is left.
func (e *events) checkRules() error {
	if len(e.times) == 0 {
		return nil
	}
	r := e.run
	asked := len(r.rulesets) > 0
	noKey := e.hasNone(r.Key)
	if noKey && (r.keyGiven || !asked) {
		e.problem(fmt.Sprintf("--key %s: %s", r.Key, e.absent(r.Key)))
	}
	for i := range r.rulesets {
		e.checkRuleset(&r.rulesets[i])
	}
	r.rulesets = slices.DeleteFunc(r.rulesets, func(rs ruleset) bool { return rs.option != "" && len(rs.absent) > 0 })
	if noKey && len(r.rulesets) == 0 {
		return &InputError{e.report.Problems}
	}
	return nil
}

// hasNone reports whether no event has the field, which has a column.
func (e *events) hasNone(field string) bool { return len(e.values[e.run.column(field)]) == 1 }

func (e *events) checkRuleset(rs *ruleset) {
	for _, r := range rs.rules() {
		if why := e.lacking(r.key, r.when); why != "" {
			e.problem(fmt.Sprintf("%s: %s", rs.title(r.name), why))
			rs.absent[r.name] = true
		}
	}
}

// absent returns a sentence that no event has the field, and which fields events can have.
func (e *events) absent(field string) string {
	var fields []string
	for _, f := range e.run.formats {
		fields = append(fields, f.Fields()...)
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if !slices.Contains(fields, field) {
		return "no event has the field: " + unknownField(field, fields)
	}
	return fmt.Sprintf("no event has the field %s; fields of such a log are %s", field, strings.Join(fields, ", "))
}

// lacking returns what keeps a rule from matching any event of the log: a field that no
// event has, or a key of fields that no event has together. It is empty if some event
// may match.
func (e *events) lacking(key match.Key, when match.When) string {
	condition, err := when.Compile()
	if err != nil {
		return ""
	}
	missing, lacks, keyed := condition.Fields(), key.EventFields(), false
	reader := e.newEventReader(slices.Concat(missing, lacks))
	var buf []byte
	for i := range e.times {
		ev := reader.event(i)
		has := func(f string) bool { return len(ev.GetNamed(f)) > 0 }
		missing = slices.DeleteFunc(missing, has)
		if !keyed {
			lacks = slices.DeleteFunc(lacks, has)
			buf, keyed = key.Append(buf[:0], ev)
		}
		if keyed && len(missing) == 0 {
			return ""
		}
	}
	switch {
	case len(missing) > 0:
		return e.absent(missing[0])
	case len(lacks) > 0:
		return e.absent(lacks[0])
	}
	return "no event has all fields of the key " + key.String()
}

// firstLine returns a copy of the first line of data.
func firstLine(data []byte) []byte {
	line, _, _ := accesslog.CutLine(data)
	return slices.Clone(line)
}
