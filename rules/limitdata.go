package rules

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/yamlfile"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

var limitDataKeys = []string{"default: 60 per 1m", "from", "by", "plans", "at_most"}

// readLimitData reads a limit that is data, the mapping n, of rule, whose algorithm may not be known.
func (r *reader) readLimitData(n ast.Node, rule *ratelimit.Rule, known bool) {
	mistakes := len(r.errs)
	m := r.Mapping(n, "limit", limitDataKeys)
	if m == nil || m["default"] == nil || !known {
		return
	}
	limits := r.readLimits(m["default"], rule.Algorithm, true)
	if len(limits) != 1 {
		if len(limits) > 1 {
			r.Fail(m["default"], "default: %d limits: must be one", len(limits))
		}
		return
	}
	l := limits[0]
	parse := likeDefault(rule.Algorithm, l)
	l.AtMost, _ = yamlfile.One(&r.Reader, m["at_most"], "at_most", parse)
	r.readLimitBy(n, m, rule, &l, parse)
	if l.AtMost == 0 && len(r.errs) == mistakes {
		r.Fail(n, "limit: missing key at_most: must be given, as in \"at_most: 10000 per 1m\": it bounds the number and the memory of a key")
	}
	rule.Limits = []ratelimit.Limit{l}
}

// readLimitBy reads where N of l comes from, in the values m of the mapping n.
func (r *reader) readLimitBy(n ast.Node, m map[string]ast.Node, rule *ratelimit.Rule, l *ratelimit.Limit, parse func(string) (uint64, error)) {
	from, by, plans := m["from"], m["by"], m["plans"]
	switch {
	case from != nil && by != nil:
		r.Fail(by, "limit: from and by: must be one of them: from is a field that has the number, by one that has the name of a plan")
	case (by != nil) != (plans != nil):
		r.Fail(n, "limit: by and plans: must be given together, as in \"by: plan, plans: {free: 60 per 1m, pro: 600 per 1m}\"")
	case from != nil:
		rule.LimitBy = r.readLimitField(from, "from", rule.Key)
	case by != nil:
		rule.LimitBy = r.readLimitField(by, "by", rule.Key)
		r.readPlans(plans, rule, l, parse)
	}
}

// readLimitField reads the field that has N, or the name of a plan. A client must not choose its
// own limit: it must not be able to make the field up, unless the plan is that of the key itself.
func (r *reader) readLimitField(n ast.Node, what string, key match.Key) *ratelimit.LimitBy {
	by := new(ratelimit.LimitBy)
	name, ok := yamlfile.One(&r.Reader, n, what, yamlfile.NonEmpty)
	if !ok || !r.checkField(n, what, name) || what == "from" && !r.checkUnhashed(n, what, "a digest is no number", name) {
		return by
	}
	by.Field = name
	i := slices.IndexFunc(r.fields, func(s match.Source) bool { return s.Field == name })
	if i >= 0 && intake.FromRequest(&r.fields[i]) && !r.fields[i].Trusted && (what == "from" || !slices.Contains(key.Fields(), name)) {
		r.Fail(n, "%s: field %q: a client can make up its values, and so choose its limit: must be trusted, as in \"%s\", if a proxy sets or checks it",
			what, name, declaration(&r.fields[i], "trusted: true"))
	}
	return by
}

// likeDefault returns a parser of numbers that take the place of N in l, a limit under a: in
// digits, or as a limit with the span of l.
func likeDefault(a ratelimit.Algorithm, l ratelimit.Limit) func(string) (uint64, error) {
	return func(s string) (uint64, error) {
		n, err := rulevalue.Count(s)
		if err != nil {
			other, err := rulevalue.LimitOf(s, a)
			if err != nil {
				return 0, err
			}
			if other.Window() != l.Window() || other.Burst != 0 && other.Burst != l.Burst {
				return 0, errors.New("must have the span and the burst of the default, as a key has one window")
			}
			n = other.N
		}
		if n == 0 {
			return 0, errors.New("must be 1 or more")
		}
		_, err = limit.New(limit.Config{Algorithm: a, N: n, Span: l.Span, Burst: l.Burst, Period: l.Per})
		return n, err
	}
}

// planMap is plans that are in the rules file.
type planMap map[string]uint64

// N implements the Plans of [ratelimit.LimitBy].
func (p planMap) N(value []byte) (n uint64, ok bool) {
	n, ok = p[string(value)]
	return n, ok
}

// readPlans reads the plans of rule: a mapping of their names, or the name of a file. Without at_most, that of l
// becomes the largest of the mapping.
func (r *reader) readPlans(n ast.Node, rule *ratelimit.Rule, l *ratelimit.Limit, parse func(string) (uint64, error)) {
	field := rule.LimitBy.Field
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		if r.isHashed(field) {
			r.Fail(n, "plans: field %q: its values are hashed, and the rules file is shown to clients of the server: must be a file, as in \"plans: plans.txt\"", field)
			return
		}
	default:
		name, ok := yamlfile.One(&r.Reader, n, "plans", func(s string) (string, error) {
			if s == "" {
				return "", errors.New("must be a mapping of plans, such as \"{free: 60 per 1m, pro: 600 per 1m}\", or a file")
			}
			return s, nil
		})
		if !ok || l.AtMost == 0 { // without at_most, which a file needs, every number would be too large
			return
		}
		var hashed *hashedPlans
		if r.isHashed(field) {
			hashed = &hashedPlans{algorithm: rule.Algorithm, limit: *l}
		}
		rule.LimitBy.Plans = r.readPlanFile(n, name, l.AtMost, hashed, parse)
		return
	}
	plans, most := planMap{}, l.N
	pairs, _ := r.Pairs(n, "plans", "")
	for _, p := range pairs {
		limit, ok := yamlfile.One(&r.Reader, p.Value, "plan "+rulevalue.Clip(p.Key), parse)
		switch {
		case ok && l.AtMost > 0 && limit > l.AtMost:
			r.Fail(p.Value, "plan %s: %s: must be at most %d, which is at_most", rulevalue.Clip(p.Key), yamlfile.Describe(p.Value), l.AtMost)
		case ok:
			plans[p.Key], most = limit, max(most, limit)
		}
	}
	if l.AtMost == 0 {
		l.AtMost = most
	}
	rule.LimitBy.Plans = plans
}

// Words implements [sentence.Plans].
func (p planMap) Words(field string) string {
	return fmt.Sprintf("the plan in the field %s has (%s)", field, planNames(p))
}

// planNames returns some of the plans with their numbers, the smallest first.
func planNames(p planMap) string {
	const shown = 6
	var all []string
	for name := range p {
		all = append(all, name)
	}
	slices.SortFunc(all, func(a, b string) int {
		if p[a] != p[b] {
			return int(min(max(int64(p[a])-int64(p[b]), -1), 1))
		}
		return strings.Compare(a, b)
	})
	var words []string
	for _, name := range all[:min(len(all), shown)] {
		words = append(words, fmt.Sprintf("%s %d", rulevalue.Clip(name), p[name]))
	}
	if more := len(all) - shown; more > 0 {
		words = append(words, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(words, ", ")
}
