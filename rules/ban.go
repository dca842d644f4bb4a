package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rulevalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

var banKeys = []allowedKey{{"after", "20 refusals in 5m"}, {"for", "10m"}, {"factor", ""}, {"max", ""}, {"jitter", ""}, {"extend", ""}, {"remember", ""}}

// banRuleKeys are the keys of a rule of the section bans: what every rule has, and
// those of the ban.
var banRuleKeys = slices.Concat(ruleKeys, banKeys)

// readBanRule reads a rule of the section bans.
func (r *reader) readBanRule(n ast.Node) ratelimit.Rule {
	m := r.mapping(n, "ban", banRuleKeys)
	rule := r.readRule(m)
	rule.Ban = r.readBan(m)
	r.checkDistinct(m["after"], &rule)
	r.checkTrust(m["key"], &rule)
	if rule.Ban.Of == ratelimit.Refusals {
		r.fail(m["after"], `after: refusals: must be "N hits in DURATION" or "N distinct FIELD in DURATION" here, as this rule has no limit that refuses; or put the ban under a limit`)
	}
	return rule
}

// checkDistinct checks the field whose distinct values the ban of rule counts.
func (r *reader) checkDistinct(after ast.Node, rule *ratelimit.Rule) {
	if rule.Ban.Of != ratelimit.Distinct {
		return
	}
	if _, err := match.NewKey(r.fold, rule.Ban.Field); err != nil {
		r.fail(after, "after: distinct: %v", err)
	} else if !r.checkField(after, "after: distinct", rule.Ban.Field) {
		return
	} else if slices.Contains(rule.Key.Fields(), rule.Ban.Field) {
		r.fail(after, "after: distinct %s: the key has one value of it: must be another field", rule.Ban.Field)
	}
}

// readBan reads a ban from m, the values of its mapping.
func (r *reader) readBan(m map[string]ast.Node) *ratelimit.Ban {
	b, _ := one(r, m["after"], "after", parseAfter)
	mistakes := len(r.errs)
	if r.atMost(m["for"], "for", ban.MaxSteps) {
		b.Steps = all(r, m["for"], "for", rulevalue.Duration)
	}
	listed := m["for"] != nil && (len(b.Steps) > 1 || len(r.errs) > mistakes)
	first := time.Duration(0)
	if len(b.Steps) > 0 {
		first = b.Steps[0]
	}
	if len(b.Steps) == 1 {
		b.For, b.Steps = first, nil
	}
	b.Factor, _ = one(r, m["factor"], "factor", parseNumber("a number from 1 to 1000, such as 2 or 1.5", func(f float64) bool {
		probe := ratelimit.Ban{Span: time.Second, For: time.Second, Factor: f}
		return f != 0 && probe.Validate() == nil
	}))
	b.Max, _ = one(r, m["max"], "max", rulevalue.Duration)
	b.Jitter, _ = one(r, m["jitter"], "jitter", parseNumber("a share from 0 to 1, such as 0.2", func(f float64) bool { return f <= 1 }))
	b.Extend, _ = one(r, m["extend"], "extend", parseBool)
	b.Remember, _ = one(r, m["remember"], "remember", rulevalue.Duration)

	if m["factor"] != nil && len(b.Steps) > 1 {
		r.fail(m["factor"], "factor: not with a list in for, which says how long each ban is: must be left out")
	}
	probe := ratelimit.Ban{Span: time.Second, For: first, Max: b.Max, Jitter: b.Jitter}
	switch err := probe.Validate(); {
	case first == 0 || err == nil:
	case b.Max != 0 && b.Max < first:
		r.fail(m["max"], "max: %s: must be at least %s, the length of the first ban", rulevalue.FormatDuration(b.Max), rulevalue.FormatDuration(first))
	case m["jitter"] != nil:
		r.fail(m["jitter"], "%v", err)
	}
	if m["factor"] == nil && m["jitter"] == nil && !listed {
		for _, key := range []string{"max", "remember"} {
			if m[key] != nil {
				r.fail(m[key], `%s: no effect on bans of one length: must be left out, or have "factor: 2" beside it`, key)
			}
		}
	}
	return &b
}

// parseAfter parses "N hits in DURATION", "N refusals in DURATION" and "N distinct FIELD
// in DURATION".
func parseAfter(s string) (b ratelimit.Ban, err error) {
	w := strings.Fields(s)
	if len(w) == 5 && w[1] == "distinct" {
		b.Of, b.Field = ratelimit.Distinct, w[2]
		w = slices.Delete(w, 2, 3)
	}
	if len(w) == 4 && w[2] == "in" {
		switch strings.TrimSuffix(w[1], "s") {
		case "hit":
			b.Of = ratelimit.Hits
		case "refusal":
			b.Of = ratelimit.Refusals
		case "distinct":
			if b.Field == "" {
				return b, errors.New(`distinct: must be followed by a field, such as "20 distinct user in 10m"`)
			}
		default:
			return b, fmt.Errorf("%q: must be hits, refusals or distinct FIELD", rulevalue.Clip(w[1]))
		}
		b.After, b.Span, err = rulevalue.Pair(w[0], w[3])
		if err == nil && b.After > limit.MaxLog {
			err = fmt.Errorf("must be at most %d", limit.MaxLog)
		}
		return b, err
	}
	return b, errors.New(`must be "N hits in DURATION", "N refusals in DURATION" or "N distinct FIELD in DURATION", such as "600 hits in 1m"`)
}
