package rules

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/ratelimit"
)

// What rules of the sections limits and bans have in common.
var ruleKeys = []string{"name: per-client", "key: client", "when", "mode", "on_store_failure"}

// readRule reads what rules of the sections limits and bans have in common.
func (r *reader) readRule(m map[string]ast.Node) ratelimit.Rule {
	rule := ratelimit.Rule{Name: r.readName(m["name"]), Key: r.readKey(m["key"]), When: r.readWhen(m["when"])}
	mode, _ := yamlfile.One(&r.Reader, m["mode"], "mode", yamlfile.OneOf("enforce", "shadow"))
	policy, _ := yamlfile.One(&r.Reader, m["on_store_failure"], "on_store_failure", yamlfile.OneOf(failPolicies...))
	rule.Shadow, rule.OnStoreFailure = mode == 1, ratelimit.FailPolicy(policy)
	return rule
}

var failPolicies = []string{ratelimit.FailLocal.String(), ratelimit.FailOpen.String(), ratelimit.FailClosed.String()}

var limitKeys = slices.Concat(ruleKeys, []string{
	"limit: 60 per 1m", "algorithm", "zone", "adapt", "count_refused", "ban",
})

// readLimit reads a rule of the section limits.
func (r *reader) readLimit(n ast.Node) ratelimit.Rule {
	m := r.Mapping(n, "limit", limitKeys)
	rule := r.readRule(m)
	algorithm, known := r.readAlgorithm(m["algorithm"])
	rule.Algorithm = algorithm
	switch m["limit"].(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		r.readLimitData(m["limit"], &rule, known)
	default:
		rule.Limits = r.readLimits(m["limit"], algorithm, known)
	}
	rule.Zone, _ = yamlfile.One(&r.Reader, m["zone"], "zone", parseZone)
	rule.CountRefused, _ = yamlfile.One(&r.Reader, m["count_refused"], "count_refused", yamlfile.Bool)
	if m["adapt"] != nil {
		rule.Adapt = r.readAdapt(m["adapt"])
		if len(rule.Limits) > 1 {
			r.Warn(m["adapt"], "adapt: one number for the %d limits of the rule, which have different spans", len(rule.Limits))
		}
	}
	if m["ban"] != nil {
		ban := r.Mapping(m["ban"], "ban", banKeys)
		rule.Ban = r.readBan(ban)
		r.checkTrust(m["key"], &rule)
	}
	if !known {
		clear(r.Places) // what its limits must be is unknown
	}
	return rule
}

// readAlgorithm reads the algorithm of a rule. It reports false after a mistake.
func (r *reader) readAlgorithm(n ast.Node) (a ratelimit.Algorithm, ok bool) {
	if n == nil {
		return a, true
	}
	s, _ := yamlfile.Text(n)
	if s == "" {
		r.Fail(n, "algorithm: %s: must be left out for the default", yamlfile.Describe(n))
		return a, false
	}
	a, err := limit.AlgorithmNamed(rulevalue.Clip(s))
	if err != nil {
		r.Fail(n, "%v", err)
	}
	return a, err == nil
}

// readLimits reads the limits of a rule with algorithm a. If a is not known, they may
// be of any form.
func (r *reader) readLimits(n ast.Node, a ratelimit.Algorithm, known bool) (limits []ratelimit.Limit) {
	parse := func(s string) (ratelimit.Limit, error) {
		if l, form, err := rulevalue.AnyLimit(s); !known && form != rulevalue.NoForm {
			return l, err
		}
		return rulevalue.LimitOf(s, a)
	}
	before := make(map[time.Duration]string)
	for at, limit := range yamlfile.Each(&r.Reader, n, "limit", parse) {
		text, _ := yamlfile.Text(at)
		if other, twice := before[limit.Window()]; twice {
			r.Fail(at, "limit: %q: must have another span than %q", rulevalue.Clip(text), rulevalue.Clip(other))
		}
		before[limit.Window()] = text
		limits = append(limits, limit)
	}
	return limits
}

// parseZone parses the name of a time zone. Local is rejected: a file must mean the
// same wherever it is read.
func parseZone(s string) (*time.Location, error) {
	const must = "must be the name of a time zone, such as Europe/Vienna or UTC"
	if s == "" || s == "Local" || strings.Trim(s, rulevalue.NameBytes+"/+") != "" {
		return nil, errors.New(must)
	}
	zone, err := time.LoadLocation(s)
	if err != nil {
		return nil, errors.New("not in the time zone database of this machine: " + must)
	}
	return zone, nil
}

var adaptKeys = []string{"steps: [2000 below 1000 per 1s, 1000 below 5000 per 1s]", "above: 500", "span", "smooth", "hysteresis"}

// readAdapt reads the adapt of a rule.
func (r *reader) readAdapt(n ast.Node) *ratelimit.Adapt {
	m := r.Mapping(n, "adapt", adaptKeys)
	adapt := new(ratelimit.Adapt)
	adapt.Steps = yamlfile.All(&r.Reader, m["steps"], "steps", parseStep)
	adapt.Above, _ = yamlfile.One(&r.Reader, m["above"], "above", rulevalue.Count)
	adapt.Span, _ = yamlfile.One(&r.Reader, m["span"], "span", rulevalue.Duration)
	adapt.Smooth, _ = yamlfile.One(&r.Reader, m["smooth"], "smooth", rulevalue.Duration)
	var ok bool
	if adapt.Hysteresis, ok = yamlfile.One(&r.Reader, m["hysteresis"], "hysteresis", yamlfile.Number("a share from 0 to less than 1, such as 0.2", nil)); ok && adapt.Hysteresis == 0 {
		adapt.Hysteresis = -1 // whose zero is the default
	}
	if m["hysteresis"] != nil && adapt.Smooth != 0 {
		r.Fail(m["hysteresis"], "hysteresis: no effect with smooth: must be left out")
	}
	return adapt
}

// parseStep parses "N below COUNT per DURATION", of which the second part is written like a limit.
// The traffic is a rate: events a second.
func parseStep(s string) (step ratelimit.AdaptStep, err error) {
	n, traffic, ok := strings.Cut(s, " below ")
	if !ok {
		return step, errors.New(`must be "N below COUNT per DURATION", such as "2000 below 1000 per 1s", or a list of them`)
	}
	if step.Limit, err = rulevalue.Part("limit", strings.TrimSpace(n)); err != nil {
		return step, err
	}
	below, err := rulevalue.ParseLimit(traffic)
	if err != nil {
		return step, err
	}
	fixed, ok := rulevalue.FixedSpan(below)
	if !ok {
		return step, errors.New("month: must be a span, such as 720h")
	}
	step.Below = float64(fixed.N) / fixed.Span.Seconds()
	return step, nil
}
