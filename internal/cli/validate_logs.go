package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/accesslog"
	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/rule/spelling"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/rules"
)

// impossibleLogs returns an error for each condition about log or format that no event of a log can
// meet, whichever logs are followed.
func impossibleLogs(file *rules.File) (all rules.Errors) {
	add := func(rule string, when match.When) {
		for _, problem := range logProblems(&when) {
			all = append(all, file.RuleError(rule, problem))
		}
	}
	for _, r := range file.Limits.Rules() {
		add(r.Name, r.When)
	}
	for i := range file.Hot {
		add(file.Hot[i].Name, file.Hot[i].When)
	}
	return all
}

func logProblems(w *match.When) (problems []string) {
	for _, log := range w.Fields[eventfield.Log] {
		if !isPattern(log) && log != "-" && !strings.HasPrefix(log, "/") && !strings.HasPrefix(log, "journal:") {
			problems = append(problems, fmt.Sprintf("log %q: no event has it: must be an absolute path, journal:UNIT, or - for the standard input, or begin with **, as in **/%s", log, log))
		}
	}
	for _, format := range w.Fields[eventfield.Format] {
		if names := accesslog.Formats(); !isPattern(format) && !strings.Contains(format, ":") && !slices.Contains(names, format) {
			problem := fmt.Sprintf("format %q: no event has it: must be one of %s, or a spec as it is given to --format", format, strings.Join(names, ", "))
			if near := spelling.Nearest(format, names, 2); near != "" {
				problem = fmt.Sprintf("format %q: no event has it; did you mean %s?", format, near)
			}
			problems = append(problems, problem)
		}
	}
	for _, others := range [][]match.When{w.Any, w.Not} {
		for i := range others {
			problems = append(problems, logProblems(&others[i])...)
		}
	}
	return problems
}

func isPattern(text string) bool {
	return strings.Contains(text, "*") || strings.HasPrefix(text, "(?i)")
}
