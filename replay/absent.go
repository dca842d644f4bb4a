package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/match"
)

// An InputError is the error of [Run] if the files contain no event, or none with
// the fields of --key or of a rule. Each sentence is one problem.
type InputError struct{ Sentences []string }

// Error returns the sentences, one per line.
func (e *InputError) Error() string { return strings.Join(e.Sentences, "\n") }

// checkLines adds a problem for each file whose lines are all bad, or match no pattern. It returns an error
// if no other file is left.
func (r *run) checkLines(report *Report) error {
	none := report.Lines > 0
	for _, l := range r.logs {
		known := l.bad < l.lines && !l.matchesNothing() || l.unknown // a problem already
		none = none && !known
		if l.lines > 0 && !known {
			report.Problems = append(report.Problems, l.noEvents())
		}
	}
	if none {
		return &InputError{report.Problems}
	}
	return nil
}

// matchesNothing reports whether the format is patterns of the user, of which none matches: a
// log with nothing but ordinary lines is rarer than a mistake in them.
func (l *logFile) matchesNothing() bool {
	return l.bad+l.skipped == l.lines && hasPatterns(l.format)
}

// hasPatterns reports whether a format is patterns of the user.
func hasPatterns(f accesslog.Format) bool { return strings.Contains(f.String(), "regex:") }

// noEvents returns the problem of a file that has no event, and why its first line is none.
func (l *logFile) noEvents() string {
	text := fmt.Sprintf("%s: none of its %s is of format %s", l.path, plural(int(l.lines), "line", "lines"), l.format)
	if why := l.format.Problem(l.firstLine); why != "" {
		text += "; its first line: " + why
	} else if nearest, ok := accesslog.Detect(append(l.firstLine, '\n')); ok && nearest.String() != l.format.String() {
		text += fmt.Sprintf("; its first line is of format %s", nearest)
	}
	return text + "; --show-bad-lines shows lines, --format gives another format"
}

// checkRules adds a problem for the field by which the busiest are listed, if it was
// given and no event has it, and for each rule that can match no event of the log;
// such a rule is not reported. It removes the what-ifs of that kind, and returns an error
// if nothing is left.
func (e *events) checkRules() error {
	if e.report.Events == 0 {
		return nil
	}
	r := e.run
	noKey := e.noKey(r.key, e.top.keys)
	if noKey != "" && (r.keyGiven || len(e.judgings) == 0) {
		e.problem(fmt.Sprintf("--key %s: %s", r.Key, noKey))
	}
	for _, j := range e.judgings {
		for i, rule := range j.ruleset.rules() {
			unmatched := e.unmatched(rule)
			why := cmp.Or(unmatched, e.noKey(rule.key, j.columns[i]))
			if why == "" {
				continue
			}
			refuses := i < len(j.limits.Rules()) && j.requires(rule.key) && unmatched == ""
			if refuses {
				why += ": it refuses every event that matches it"
			}
			e.problem(fmt.Sprintf("%s: %s", j.title(rule.name), why))
			j.absent[rule.name] = !refuses
		}
	}
	e.judgings = slices.DeleteFunc(e.judgings, func(j *judging) bool { return j.option != "" && len(j.absent) > 0 })
	if noKey != "" && len(e.judgings) == 0 {
		return &InputError{e.report.Problems}
	}
	return nil
}

// hasNone reports whether no event has the field, which has a column.
func (e *events) hasNone(field string) bool { return len(e.values[e.run.column(field)]) == 1 }

// absent returns a sentence that no event has the field, and which fields events can have.
func (e *events) absent(field string) string {
	if located(field) && e.run.Locate != nil {
		return "no event has the field " + field + ": the files of --geo have it for no client of these logs"
	}
	if located(field) && e.run.Events != nil {
		return "no event has the field: " + unknownField(field, nil)
	}
	if e.run.Events != nil {
		return "no event has the field " + field
	}
	var fields []string
	for _, l := range e.run.logs {
		fields = append(fields, l.format.Fields()...)
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if !slices.Contains(fields, field) {
		return "no event has the field: " + unknownField(field, fields)
	}
	return fmt.Sprintf("no event has the field %s; fields of such a log are %s", field, strings.Join(fields, ", "))
}

// unmatched returns why the condition of a rule holds for no event, or "".
func (e *events) unmatched(rule commonRule) string {
	needed := when.Needs(&rule.when)
	if i := slices.IndexFunc(needed, e.hasNone); i >= 0 {
		return e.absent(needed[i])
	}
	return e.run.noLog(rule.when)
}

// noKey returns why no event has a key, or "" if one has.
func (e *events) noKey(key match.Key, keys *keyColumn) string {
	if len(keys.texts) > 1 {
		return ""
	}
	fields := keyvalue.Fields(key)
	if i := slices.IndexFunc(fields, e.hasNone); i >= 0 {
		return e.absent(fields[i])
	}
	return "no event has all fields of the key " + key.String()
}

// noLog returns that no log is one of those that a condition names, or "" if one is.
func (r *run) noLog(w match.When) string {
	if r.Events != nil {
		return ""
	}
	for _, field := range []string{eventfield.Log, eventfield.Format} {
		if len(w.Fields[field]) == 0 {
			continue
		}
		one, err := match.When{Fields: map[string][]string{field: w.Fields[field]}}.Compile()
		if err != nil {
			return ""
		}
		var values []string
		for _, l := range r.logs {
			var ev match.Event
			eventfield.SetOrigin(&ev, l.origin, l.format.String())
			if one.Holds(&ev) {
				return ""
			}
			values = append(values, string(ev.GetNamed(field)))
		}
		slices.Sort(values)
		return fmt.Sprintf("no log has the %s %s: it is %s", field, strings.Join(w.Fields[field], " or "), strings.Join(slices.Compact(values), ", "))
	}
	return ""
}

// firstLine returns a copy of the first line of data.
func firstLine(data []byte) []byte {
	line, _, _ := accesslog.CutLine(data)
	return slices.Clone(line)
}
