package replay

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// A WhatIf is one rule in short form, judged as if it were alone: its keys are
// the text of a field as it stands.
type WhatIf struct {
	Text string // as it was given, its name in the report
	Kind Kind
	Key  string // field; "" means the replay's key (for hot: object)
	N    uint64
	Span time.Duration
	Per  ratelimit.Period // in place of Span, of a limit by the calendar in UTC
	For  time.Duration    // length of a ban
}

// A Kind is what a rule does.
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
// N/SPAN:DURATION for a ban, N/SPAN or FIELD:N/SPAN for a hot rule.
func ParseWhatIf(kind Kind, text string) (WhatIf, error) {
	w := WhatIf{Text: text, Kind: kind}
	fail := func(what string) (WhatIf, error) {
		return WhatIf{}, fmt.Errorf("--%s is %q: %s; allowed is %s", kind, text, what, forms[kind])
	}
	rest := text
	if kind == Hot {
		if key, after, ok := strings.Cut(text, ":"); ok {
			switch {
			case key == "":
				return fail("the field before ':' is empty")
			case strings.Contains(key, "|"):
				return fail("a key with alternatives needs a rules file")
			}
			w.Key, rest = key, after
		}
	}
	n, span, ok := strings.Cut(rest, "/")
	if !ok {
		return fail("there is no '/'")
	}
	var err error
	if w.N, err = strconv.ParseUint(n, 10, 64); err != nil {
		return fail(fmt.Sprintf("%q is no count", n))
	}
	if kind == Ban {
		var long string
		if span, long, ok = strings.Cut(span, ":"); !ok {
			return fail("the length of the ban is missing")
		}
		if w.For, err = rules.ParseDuration(long); err != nil {
			return fail(err.Error())
		}
	}
	if period, err := ratelimit.PeriodNamed(span); err == nil && kind == Limit {
		w.Per = period
		return w, nil
	}
	if w.Span, err = rules.ParseDuration(span); err != nil {
		return fail(err.Error())
	}
	return w, nil
}

// limit returns the limit of a what-if that limits.
func (w WhatIf) limit() ratelimit.Limit { return ratelimit.Limit{N: w.N, Span: w.Span, Per: w.Per} }

// limitRule returns the rule of a limit or a ban.
func (w WhatIf) limitRule(a ratelimit.Algorithm, countRefused bool) (ratelimit.Rule, error) {
	key, err := match.NewKey(match.Fold{Off: true}, w.Key)
	if err != nil {
		return ratelimit.Rule{}, err
	}
	r := ratelimit.Rule{Name: w.Text, Key: key}
	if w.Kind == Ban {
		r.Ban = &ratelimit.Ban{After: w.N, Of: ratelimit.Hits, Span: w.Span, For: w.For}
		return r, nil
	}
	r.Algorithm, r.CountRefused = a, countRefused
	r.Limits = []ratelimit.Limit{w.limit()}
	return r, nil
}

// hotRule returns the rule of a hot what-if.
func (w WhatIf) hotRule() (hotkey.Rule, error) {
	key, err := match.NewKey(match.Fold{Off: true}, w.Key)
	if err != nil {
		return hotkey.Rule{}, err
	}
	return hotkey.Rule{Name: w.Text, Key: key, Threshold: w.N, Span: w.Span}, nil
}

// validate checks w as its rule would be, without judging anything.
func (w WhatIf) validate(a ratelimit.Algorithm) error {
	var err error
	switch {
	case w.Per != 0 && a != ratelimit.Calendar:
		err = fmt.Errorf("a %s is a period of the calendar, which algorithm %s does not count by; give --algorithm calendar or a span, such as 24h", w.Per, a)
	case w.Kind == Hot:
		var r hotkey.Rule
		if r, err = w.hotRule(); err == nil {
			_, err = hotkey.NewSet(r)
		}
	default:
		var r ratelimit.Rule
		if r, err = w.limitRule(a, false); err == nil {
			_, err = ratelimit.NewSet(ratelimit.SetConfig{}, r)
		}
	}
	if err != nil {
		return fmt.Errorf("--%s %s: %w", w.Kind, w.Text, err)
	}
	return nil
}
