package ratelimitheader

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A Rule is one rule in the terms of the draft.
type Rule struct {
	Name string // the name that clients see
	JSON string // Name as a JSON string

	shadow bool
	adapts bool // its N changes
	comes  int  // the limit whose N comes with the event, or -1
	limits []policy
}

// A Violation is the limit or ban that refused an event.
type Violation struct {
	Name  string // of the quota policy, or of the rule
	JSON  string // Name as a JSON string
	Quota uint64 // what the limit allows; 0 for a ban
	Ban   bool
}

func newRule(name string, r *ratelimit.Rule) Rule {
	q := Rule{Name: name, JSON: quoteJSON(name), shadow: r.Shadow, adapts: r.Adapt != nil}
	q.comes = slices.IndexFunc(r.Limits, func(l ratelimit.Limit) bool { return l.AtMost != 0 })
	for _, l := range r.Limits {
		own := name
		if len(r.Limits) > 1 {
			own += "/" + windowText(l, r.Algorithm)
		}
		q.limits = append(q.limits, newPolicy(own, l, r.Algorithm))
	}
	return q
}

// violation returns what refused the event of o.
func (r *Rule) violation(o *ratelimit.Outcome) Violation {
	if o.Banned || len(r.limits) == 0 {
		return Violation{Name: r.Name, JSON: r.JSON, Ban: true}
	}
	l := r.tightest(o)
	return Violation{Name: l.name, JSON: l.json, Quota: r.quota(l, o)}
}

// quota returns what l allowed when o was judged.
func (r *Rule) quota(l *policy, o *ratelimit.Outcome) uint64 {
	if (r.adapts || r.comes == o.LimitIndex && l == &r.limits[r.comes]) && !o.Skipped && !o.Banned {
		return o.Limit
	}
	return l.most
}

// tightest returns the limit that o is about. The rule has at least one limit. Without
// a LimitIndex, as in a decision that was sent over a network, it is the first limit of
// that size.
func (r *Rule) tightest(o *ratelimit.Outcome) *policy {
	at := o.LimitIndex
	if at >= len(r.limits) || r.limits[at].most != o.Limit && !r.adapts && at != r.comes {
		at = max(0, slices.IndexFunc(r.limits, func(l policy) bool { return l.most == o.Limit }))
	}
	return &r.limits[at]
}

// appendPolicies appends the rule's quota policies to the List at buf[start].
func (r *Rule) appendPolicies(buf []byte, start int, o *ratelimit.Outcome) []byte {
	for i := range r.limits {
		l := &r.limits[i]
		buf = comma(buf, start)
		if q := r.quota(l, o); q != l.most {
			buf = l.appendPolicy(buf, q)
		} else {
			buf = append(buf, l.policy...)
		}
	}
	return buf
}

// appendLimits appends the remaining quota of the rule's tightest limit, or, during a ban,
// of all of them, to the List at buf[start].
func (r *Rule) appendLimits(buf []byte, start int, o *ratelimit.Outcome, d *ratelimit.Decision) []byte {
	wait := r.resetAfter(o)
	if !d.Allowed {
		if o.RetryAfter != 0 {
			wait = o.RetryAfter
		}
		wait = min(wait, d.RetryAfter)
	}
	if !o.Banned {
		return r.tightest(o).appendLeft(comma(buf, start), o.Remaining, wait)
	}
	for i := range r.limits {
		buf = r.limits[i].appendLeft(comma(buf, start), 0, wait)
	}
	return buf
}

// resetAfter returns the longest time until the tightest limit is unused again. The
// ResetAfter of o is about the slowest limit.
func (r *Rule) resetAfter(o *ratelimit.Outcome) time.Duration {
	if len(r.limits) > 1 && !o.Banned {
		return min(o.ResetAfter, r.tightest(o).past)
	}
	return o.ResetAfter
}

// comma appends the separator of items, if the List at buf[start] has one already.
func comma(buf []byte, start int) []byte {
	if len(buf) > start {
		return append(buf, ", "...)
	}
	return buf
}

// windowText returns a limit's window for the name of its policy: "60s", "500ms",
// "day".
func windowText(l ratelimit.Limit, a ratelimit.Algorithm) string {
	switch {
	case a == ratelimit.InFlight:
		return "at-once"
	case l.Per != 0:
		return l.Per.String()
	case l.Span%time.Second == 0:
		return strconv.FormatInt(int64(l.Span/time.Second), 10) + "s"
	}
	return strconv.FormatInt(l.Span.Milliseconds(), 10) + "ms"
}

func quoteJSON(s string) string {
	b, _ := json.Marshal(s) // every string has a form
	return string(b)
}
