package replay

import (
	"fmt"
	"strings"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A WhatIf is one rule in short form, judged alone. Its keys are values of
// fields, unchanged, or networks of clients.
type WhatIf struct {
	Text string // as given: its name in the report
	Kind Kind
	Key  string // see [Config.Key]; "" means the replay's key (for hot: object)
	N    uint64
	Span time.Duration
	Per  ratelimit.Period // instead of Span, for a limit; a span if the algorithm is not calendar
	For  time.Duration    // length of a ban
}

// A Kind is the kind of a rule in a report.
type Kind string

// The kinds of rules in a report.
const (
	Limit Kind = "limit"
	Ban   Kind = "ban"
	Hot   Kind = "hot"
)

// forms is how each kind is written.
var forms = map[Kind]string{
	Limit: "N/SPAN or N/PERIOD, such as 60/1m or 1000/day",
	Ban:   "N/SPAN:DURATION, such as 100/5m:1h",
	Hot:   "N/SPAN or KEY:N/SPAN, such as 200/1m or client:200/1m",
}

// ParseWhatIf parses the short form of a rule: N/SPAN or N/PERIOD for a limit,
// N/SPAN:DURATION for a ban, N/SPAN or FIELD:N/SPAN for a hot rule. "N per SPAN" is the
// same as N/SPAN.
func ParseWhatIf(kind Kind, text string) (WhatIf, error) {
	w := WhatIf{Text: text, Kind: kind}
	fail := func(what string) (WhatIf, error) {
		return WhatIf{}, fmt.Errorf("--%s: %q: %s: must be %s", kind, text, what, forms[kind])
	}
	rest := text
	if kind == Hot {
		if key, after, ok := strings.Cut(text, ":"); ok {
			if key == "" {
				return fail("the field before ':' is empty")
			}
			w.Key, rest = key, after
		}
	}
	if kind == Ban {
		i := strings.LastIndexByte(rest, ':')
		if i < 0 {
			return fail("the length of the ban is missing")
		}
		var err error
		if w.For, err = rulevalue.ParseDuration(rest[i+1:]); err != nil {
			return fail(err.Error())
		}
		rest = rest[:i]
	}
	if !strings.Contains(rest, "/") && !strings.Contains(rest, " per ") {
		return fail("the span is missing")
	}
	limit, err := rulevalue.ParseLimit(rest)
	if err != nil {
		return WhatIf{}, fmt.Errorf("--%s: %q: %w", kind, text, err)
	}
	if kind != Limit {
		var fixed bool
		if limit, fixed = rulevalue.FixedSpan(limit); !fixed {
			return fail("a month has no fixed length")
		}
	}
	w.N, w.Span, w.Per = limit.N, limit.Span, limit.Per
	return w, nil
}

// option returns the option that gives w.
func (w WhatIf) option() string { return fmt.Sprintf("--%s %s", w.Kind, w.Text) }

// ruleset returns the rule of w as a set of its own. Its limits count by algorithm a.
func (w WhatIf) ruleset(key match.Key, a ratelimit.Algorithm, countRefused bool) (ruleset, error) {
	rule := ratelimit.Rule{Name: w.Text, Key: key}
	switch w.Kind {
	case Hot:
		return newRuleset(w.option(), nil, []hotkey.Rule{{Name: w.Text, Key: key, Threshold: w.N, Span: w.Span, Exact: w.N <= limit.MaxLog}})
	case Ban:
		rule.Ban = &ratelimit.Ban{After: w.N, Of: ratelimit.Hits, Span: w.Span, For: w.For}
	default:
		rule.Algorithm, rule.CountRefused = a, countRefused
		limit, fixed := ratelimit.Limit{N: w.N, Span: w.Span, Per: w.Per}, true
		if a != ratelimit.Calendar {
			limit, fixed = rulevalue.FixedSpan(limit)
		}
		if !fixed {
			return ruleset{}, fmt.Errorf("month: must be a span, such as 720h, with algorithm %s; only --algorithm calendar counts by months", a)
		}
		rule.Limits = []ratelimit.Limit{limit}
	}
	return newRuleset(w.option(), []ratelimit.Rule{rule}, nil)
}
