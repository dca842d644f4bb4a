// Package ratelimitheader writes the limits of a rule set, and the remaining quota, in
// the format of draft-ietf-httpapi-ratelimit-headers-11 (R. Polli, A. Martinez, D.
// Miller: RateLimit header fields for HTTP): a quota policy for each limit, and a
// service limit for each rule. latelyhttp writes them into header fields, latelygrpc
// into metadata.
package ratelimitheader

import (
	"iter"
	"net/http"
	"strconv"

	"github.com/lately-go/lately/ratelimit"
)

// Policies is a rule set in the terms of the draft. It does not change, and is safe
// for concurrent use. The zero Policies is for a set without rules.
type Policies struct {
	set     *ratelimit.Set
	rules   []Rule
	numbers map[string]int // of a rule, by the name it has in the set
}

// New returns the Policies of set. If hide is set, rules are named policy-1, policy-2
// and so on, after their position in the set.
func New(set *ratelimit.Set, hide bool) Policies {
	p := Policies{set: set, numbers: make(map[string]int, len(set.Rules()))}
	for n, r := range set.Rules() {
		name := r.Name
		if hide {
			name = "policy-" + strconv.Itoa(n+1)
		}
		p.rules = append(p.rules, newRule(name, r))
		p.numbers[r.Name] = n
	}
	return p
}

// rule returns the rule that o is about, or nil if p does not have it, because the
// rules changed after p was made.
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

// Known returns outcomes, which belong to d, if they are of this set. Otherwise it returns
// the outcome in d itself, for a refusal, in the same memory.
func (p *Policies) Known(outcomes []ratelimit.Outcome, d *ratelimit.Decision) []ratelimit.Outcome {
	switch {
	case len(outcomes) > 0 && outcomes[0].Set == p.set:
		return outcomes
	case d.Allowed:
		return outcomes[:0]
	}
	return p.Deciding(outcomes[:0], d)
}

// Deciding appends to outcomes the outcome in d about its rule, unless p does not have the
// rule, or d is a refusal because the store failed or the event lacks a field.
func (p *Policies) Deciding(outcomes []ratelimit.Outcome, d *ratelimit.Decision) []ratelimit.Outcome {
	n, ok := p.numbers[d.Rule]
	if !ok || StoreFailed(d) || d.Missing != "" {
		return outcomes
	}
	return append(outcomes, ratelimit.Outcome{
		Rule: n, Set: p.set, Refused: !d.Allowed, Banned: !d.BannedUntil.IsZero(), BannedUntil: d.BannedUntil,
		Limit: d.Limit, Remaining: d.Remaining, LimitIndex: d.LimitIndex, RetryAfter: d.RetryAfter, ResetAfter: d.ResetAfter,
	})
}

// StoreFailed reports whether d is a refusal because the store is unavailable. The
// refusals of limits have a RetryAfter, which may be Never.
func StoreFailed(d *ratelimit.Decision) bool {
	return !d.Allowed && d.RetryAfter == 0 && d.BannedUntil.IsZero()
}

// Append appends the two Lists of RFC 9651 that the draft has for a decision. The first, up to the
// returned length, is the RateLimit-Policy field: an item for each limit of each rule of outcomes.
// The second is the RateLimit field: the remaining quota of each rule's tightest limit, or 0 for
// each limit during a ban. Either may be empty. Shadow rules, rules that only ban, and rules of
// whose key the event lacks a field are in neither.
func (p *Policies) Append(buf []byte, outcomes []ratelimit.Outcome, d *ratelimit.Decision) (both []byte, policies int) {
	start := len(buf)
	for i := range outcomes {
		if r := p.rule(&outcomes[i]); r != nil && !r.shadow && outcomes[i].Missing == "" {
			buf = r.appendPolicies(buf, start, &outcomes[i])
		}
	}
	policies = len(buf)
	for i := range outcomes {
		o := &outcomes[i]
		if r := p.rule(o); r != nil && !r.shadow && !o.Skipped && o.Missing == "" && len(r.limits) > 0 {
			buf = r.appendLimits(buf, policies, o, d)
		}
	}
	return buf, policies
}

// Fields returns both Lists of [Policies.Append] as the values of their fields, each of
// one value, or nil for an empty List. They share one string. buf is memory to use.
func (p *Policies) Fields(buf []byte, outcomes []ratelimit.Outcome, d *ratelimit.Decision) (policies, limits []string, _ []byte) {
	buf, end := p.Append(buf[:0], outcomes, d)
	if end == 0 {
		return nil, nil, buf
	}
	text := string(buf)
	values := []string{text[:end], text[end:]}
	if end < len(text) {
		limits = values[1:]
	}
	return values[:1:1], limits, buf
}

// WriteHeader adds both Lists of [Policies.Append] to the header of a response. buf is memory to use.
func (p *Policies) WriteHeader(h http.Header, buf []byte, outcomes []ratelimit.Outcome, d *ratelimit.Decision) []byte {
	policies, limits, buf := p.Fields(buf, outcomes, d)
	addField(h, "Ratelimit-Policy", policies) // canonical, as http.Header has them
	addField(h, "Ratelimit", limits)
	return buf
}

// addField adds values to a list field.
func addField(h http.Header, name string, values []string) {
	if before := h[name]; len(before) > 0 {
		values = append(before, values...)
	}
	if len(values) > 0 {
		h[name] = values
	}
}

// Violated returns the rules that refused the event of d, in their order, each with the
// limit or ban that did. A banned event was refused by bans alone.
func (p *Policies) Violated(outcomes []ratelimit.Outcome, d *ratelimit.Decision) iter.Seq2[*ratelimit.Outcome, Violation] {
	banned := !d.BannedUntil.IsZero()
	return func(yield func(*ratelimit.Outcome, Violation) bool) {
		for i := range outcomes {
			o := &outcomes[i]
			r := p.rule(o)
			if r == nil || r.shadow || !o.Refused || o.Skipped || o.Missing != "" || o.Banned != banned {
				continue
			}
			if !yield(o, r.violation(o)) {
				return
			}
		}
	}
}
