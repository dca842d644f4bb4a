package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/ratelimit"
)

var banKeys = []string{"after: 20 refusals in 5m", "for: 10m", "factor", "max", "jitter", "extend", "remember"}

// banRuleKeys are the keys of a rule of the section bans: what every rule has, and
// those of the ban.
var banRuleKeys = slices.Concat(ruleKeys, banKeys)

// readBanRule reads a rule of the section bans.
func (r *reader) readBanRule(n ast.Node) ratelimit.Rule {
	m := r.Mapping(n, "ban", banRuleKeys)
	rule := r.readRule(m)
	rule.Ban = r.readBan(m)
	r.checkTrust(m["key"], &rule)
	if rule.Ban.Of == ratelimit.Refusals {
		r.Fail(m["after"], `after: refusals: must be "N hits in DURATION" or "N distinct FIELD in DURATION" here, as this rule has no limit that refuses; or put the ban under a limit`)
	}
	return rule
}

// readBan reads a ban from m, the values of its mapping.
func (r *reader) readBan(m map[string]ast.Node) *ratelimit.Ban {
	b, ok := yamlfile.One(&r.Reader, m["after"], "after", parseAfter)
	if ok && b.Of == ratelimit.Distinct && !r.checkField(m["after"], "after: distinct", b.Field) {
		delete(r.Places, "after")
	}
	mistakes := len(r.errs)
	b.Steps = yamlfile.All(&r.Reader, m["for"], "for", rulevalue.Duration)
	listed := m["for"] != nil && (len(b.Steps) > 1 || len(r.errs) > mistakes)
	if len(b.Steps) == 1 {
		b.For, b.Steps = b.Steps[0], nil
	}
	b.Factor, _ = yamlfile.One(&r.Reader, m["factor"], "factor", yamlfile.Number("a number from 1 to 1000, such as 2 or 1.5", func(f float64) bool { return f != 0 }))
	b.Max, _ = yamlfile.One(&r.Reader, m["max"], "max", rulevalue.Duration)
	b.Jitter, _ = yamlfile.One(&r.Reader, m["jitter"], "jitter", yamlfile.Number("a share from 0 to 1, such as 0.2", nil))
	b.Extend, _ = yamlfile.One(&r.Reader, m["extend"], "extend", yamlfile.Bool)
	b.Remember, _ = yamlfile.One(&r.Reader, m["remember"], "remember", rulevalue.Duration)
	if m["factor"] == nil && m["jitter"] == nil && !listed {
		for _, key := range []string{"max", "remember"} {
			if m[key] != nil {
				r.Fail(m[key], `%s: no effect on bans of one length: must be left out, or have "factor: 2" beside it`, key)
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
		return b, err
	}
	return b, errors.New(`must be "N hits in DURATION", "N refusals in DURATION" or "N distinct FIELD in DURATION", such as "600 hits in 1m"`)
}
