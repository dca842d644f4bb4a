package ratelimitheader

import (
	"iter"
	"strconv"

	"github.com/lately-go/lately/ratelimit"
)

// Policies is a rule set as clients are told of it. It does not change, and is safe
// for concurrent use. The zero Policies is that of a set without rules.
type Policies struct {
	set     *ratelimit.Set
	rules   []Rule
	numbers map[string]int // of a rule, by the name it has in the set
}

// New returns the Policies of set. With hide, rules are called policy-1, policy-2
// and so on by their place in the set, and not by their names.
func New(set *ratelimit.Set, hide bool) Policies {
	p := Policies{set: set, numbers: make(map[string]int, set.Len())}
	for n := range set.Len() {
		r := set.Rule(n)
		name := r.Name
		if hide {
			name = "policy-" + strconv.Itoa(n+1)
		}
		p.rules = append(p.rules, newRule(name, r))
		p.numbers[r.Name] = n
	}
	return p
}

// rule returns the rule that o is about, or nil if it is none of these: the rules
// were changed between the making of p and the decision.
func (p *Policies) rule(o *ratelimit.Outcome) *Rule {
	if o.Rule >= len(p.rules) {
		return nil
	}
	return &p.rules[o.Rule]
}

// Named returns the rule with that name in the set, or nil.
func (p *Policies) Named(name string) *Rule {
	n, ok := p.numbers[name]
	if !ok {
		return nil
	}
	return &p.rules[n]
}

// Known returns outcomes, those of d, if they are of this set. Else it is what d itself
// says of a refusal, in the same memory.
func (p *Policies) Known(outcomes []ratelimit.Outcome, d *ratelimit.Decision) []ratelimit.Outcome {
	switch {
	case len(outcomes) > 0 && outcomes[0].Set == p.set:
		return outcomes
	case d.Allowed:
		return outcomes[:0]
	}
	return p.Deciding(outcomes[:0], d)
}

// Deciding appends to outcomes what d says of its rule, if that is one of these and
// it was not refused for a store that failed.
func (p *Policies) Deciding(outcomes []ratelimit.Outcome, d *ratelimit.Decision) []ratelimit.Outcome {
	n, ok := p.numbers[d.Rule]
	if !ok || StoreFailed(d) {
		return outcomes
	}
	return append(outcomes, ratelimit.Outcome{
		Rule: n, Set: p.set, Refused: !d.Allowed, Banned: !d.BannedUntil.IsZero(), BannedUntil: d.BannedUntil,
		Limit: d.Limit, Remaining: d.Remaining, LimitIndex: d.LimitIndex, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter,
	})
}

// StoreFailed reports whether d is the refusal of a rule that is closed while its
// store is away. The refusals of limits have a RetryAfter, or Never.
func StoreFailed(d *ratelimit.Decision) bool {
	return !d.Allowed && d.RetryAfter == 0 && d.BannedUntil.IsZero()
}

// Append appends the two Lists of RFC 9651 that the draft has for a decision: the
// RateLimit-Policy field, an item for each limit of each rule of outcomes, and behind
// it the RateLimit field, what is left of each rule's tightest limit, or during a ban
// that nothing is left of any. Either may be empty; the first ends at the returned
// length. Rules that only ban and shadow rules are not told of.
func (p *Policies) Append(buf []byte, outcomes []ratelimit.Outcome, d *ratelimit.Decision) (both []byte, policies int) {
	start := len(buf)
	for i := range outcomes {
		if r := p.rule(&outcomes[i]); r != nil && !r.shadow {
			buf = r.appendPolicies(buf, start, &outcomes[i])
		}
	}
	policies = len(buf)
	for i := range outcomes {
		o := &outcomes[i]
		if r := p.rule(o); r != nil && !r.shadow && !o.Skipped && len(r.limits) > 0 {
			buf = r.appendLimits(buf, policies, o, d)
		}
	}
	return buf, policies
}

// Violated is the rules that refused the event of d, in their order, each with the
// limit that did, or nil for a ban. A banned event was refused by bans alone.
func (p *Policies) Violated(outcomes []ratelimit.Outcome, d *ratelimit.Decision) iter.Seq2[*ratelimit.Outcome, Violation] {
	banned := !d.BannedUntil.IsZero()
	return func(yield func(*ratelimit.Outcome, Violation) bool) {
		for i := range outcomes {
			o := &outcomes[i]
			r := p.rule(o)
			if r == nil || r.shadow || !o.Refused || o.Skipped || o.Banned != banned {
				continue
			}
			if !yield(o, r.violation(o)) {
				return
			}
		}
	}
}
