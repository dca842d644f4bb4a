package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/match"
)

// An InputError is the error of Run when the files have events, but none that has a
// field that was asked for, or lines, but no event at all: a report would be one of
// zeros. Its sentences say what is wrong.
type InputError struct{ Sentences []string }

// Error returns the sentences, one in a line.
func (e *InputError) Error() string { return strings.Join(e.Sentences, "\n") }

// checkLines adds a problem for each file with lines of which none is an event or an
// ordinary line of another kind. It returns an error if no file is left.
func (r *run) checkLines(blocks []*parsed, report *Report) error {
	lines, known := make([]int64, len(r.Files)), make([]bool, len(r.Files))
	for _, b := range blocks {
		lines[b.file] += b.lines
		known[b.file] = known[b.file] || b.bad < b.lines || b.format.String() == "" // which is a problem already
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

// noEvents says that no line of a file could be read, and of its first line why.
func (r *run) noEvents(file int, lines int64) string {
	f := r.formats[file]
	text := fmt.Sprintf("%s: none of its %s is of format %s", r.Files[file], plural(int(lines), "line", "lines"), f)
	if why := f.Problem(r.firstLines[file]); why != "" {
		text += ": of the first one, " + why
	}
	return text + "; --bad shows lines, --format gives another format"
}

// checkFields adds a problem for the field by which the busiest are listed, if it was
// asked for, and for each what-if whose field no event has; these are left out. It
// returns an error if nothing else is left.
func (e *events) checkFields() error {
	if len(e.times) == 0 {
		return nil
	}
	lacks := func(field string) bool { return len(e.values[e.run.column(field)]) == 1 } // no value but none
	noKey := lacks(e.run.Key)
	if noKey && (e.run.keyGiven || e.run.Rules == nil && len(e.run.WhatIfs) == 0) {
		e.problem(fmt.Sprintf("--key %s: %s", e.run.Key, e.absent(e.run.Key)))
	}
	asked := e.run.WhatIfs
	e.run.WhatIfs = nil
	for _, w := range asked {
		if lacks(w.Key) {
			e.problem(fmt.Sprintf("--%s %s: %s", w.Kind, w.Text, e.absent(w.Key)))
			continue
		}
		e.run.WhatIfs = append(e.run.WhatIfs, w)
	}
	if noKey && e.run.Rules == nil && len(e.run.WhatIfs) == 0 {
		return &InputError{e.report.Problems}
	}
	return nil
}

// absent says that no event has the field, and which fields events can have.
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

// lacking returns what keeps a rule of the rules file from ever being about an event
// of the log: a field that no event has, or a key of fields that no event has
// together. It is empty if some event may match.
func (e *events) lacking(key match.Key, when match.When) string {
	condition, err := when.Compile()
	if err != nil || len(e.times) == 0 {
		return ""
	}
	missing, keyed := condition.Fields(), false
	lacks := key.EventFields()
	reader := e.newEventReader()
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

// checkRules adds a problem for each rule of the rules file that can be about no
// event, and returns which ones of the limits and bans, and of the hot rules, these
// are.
func (e *events) checkRules() (limits, hot []bool) {
	file := e.run.Rules
	limits, hot = make([]bool, file.Limits.Len()), make([]bool, file.Hot.Len())
	check := func(name string, key match.Key, when match.When) bool {
		why := e.lacking(key, when)
		if why != "" {
			e.problem(fmt.Sprintf("rule %q: %s", name, why))
		}
		return why != ""
	}
	for i := range limits {
		limits[i] = check(file.Limits.Rule(i).Name, file.Limits.Rule(i).Key, file.Limits.Rule(i).When)
	}
	for i := range hot {
		hot[i] = check(file.Hot.Rule(i).Name, file.Hot.Rule(i).Key, file.Hot.Rule(i).When)
	}
	return limits, hot
}

// firstLine returns a copy of the first line of data.
func firstLine(data []byte) []byte {
	line, _, _ := accesslog.CutLine(data)
	return slices.Clone(line)
}
