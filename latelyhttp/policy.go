package latelyhttp

import (
	"math"
	"strconv"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A rulePolicy is one rule as clients are told of it.
type rulePolicy struct {
	shadow bool
	adapts bool   // its N changes
	json   string // the rule's name, a JSON string
	limits []limitPolicy
}

// A limitPolicy is one limit: a quota policy of the draft.
type limitPolicy struct {
	most uint64        // what it allows at once: N, or the burst
	past time.Duration // how long it remembers, at most
	name string        // an RFC 9651 String
	json string
	item string // of RateLimit-Policy: before, most, after
	tail string // of item, what follows most
}

// newRulePolicy names rule i for clients.
func newRulePolicy(r *ratelimit.Rule, i int, hide bool) rulePolicy {
	name := r.Name
	if hide {
		name = "policy-" + strconv.Itoa(i+1)
	}
	p := rulePolicy{shadow: r.Shadow, adapts: r.Adapt != nil, json: quoteJSON(name)}
	for _, l := range r.Limits {
		own := name
		if len(r.Limits) > 1 {
			own += "/" + windowText(l, r.Algorithm)
		}
		p.limits = append(p.limits, newLimitPolicy(own, l, r.Algorithm))
	}
	return p
}

// newLimitPolicy returns the policy of l. A burst is told as a quota too, over
// the time in which it comes back: 10 a second with a burst of 100 is 100 in 10
// seconds.
func newLimitPolicy(name string, l ratelimit.Limit, a ratelimit.Algorithm) limitPolicy {
	p := limitPolicy{most: l.N, past: l.Window(), name: quoteSF(name), json: quoteJSON(name)}
	if l.Burst > 0 {
		p.most = l.Burst
		p.past = scaled(p.past, l.Burst, l.N)
	}
	p.tail = ";w=" + strconv.FormatInt(seconds(p.past), 10)
	switch {
	case a == ratelimit.InFlight:
		p.tail = `;qu="concurrent-requests"`
	case a == ratelimit.TwoBucket:
		p.past *= 2
	case (a == ratelimit.Sliding || a == ratelimit.Weighted) && l.N > 64:
		p.past += p.past/60 + 1 // the slot that the window cuts through
	}
	p.item = string(p.appendItem(nil, p.most))
	return p
}

// scaled returns d * n / per, at most MaxSpan.
func scaled(d time.Duration, n, per uint64) time.Duration {
	x := float64(d) * float64(n) / float64(max(per, 1))
	return time.Duration(math.Ceil(min(x, float64(ratelimit.MaxSpan))))
}

func (l *limitPolicy) appendItem(buf []byte, quota uint64) []byte {
	buf = append(buf, l.name...)
	buf = append(buf, ";q="...)
	buf = strconv.AppendUint(buf, min(quota, maxSFInteger), 10)
	return append(buf, l.tail...)
}

// windowText returns a limit's window as the name of its policy has it: "60s",
// "500ms", "day".
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

// tightest returns the limit that o is about.
func (p *rulePolicy) tightest(o *ratelimit.Outcome) *limitPolicy {
	for i := range p.limits {
		if p.limits[i].most == o.Limit {
			return &p.limits[i]
		}
	}
	return &p.limits[0]
}

// appendPolicies appends the items of RateLimit-Policy for one rule.
func (p *rulePolicy) appendPolicies(buf []byte, o *ratelimit.Outcome) []byte {
	for i := range p.limits {
		buf = comma(buf, 0)
		if p.adapts && !o.Skipped && !o.Banned {
			buf = p.limits[i].appendItem(buf, o.Limit)
		} else {
			buf = append(buf, p.limits[i].item...)
		}
	}
	return buf
}

// appendLimits appends the items of RateLimit for one rule: its tightest limit,
// or, during a ban, all of them. The field begins at buf[start].
func (p *rulePolicy) appendLimits(buf []byte, start int, o *ratelimit.Outcome, d *ratelimit.Decision) []byte {
	wait := o.ResetAfter
	if !d.Allowed {
		if o.RetryAfter != 0 {
			wait = o.RetryAfter
		}
		if d.RetryAfter >= 0 {
			wait = min(wait, d.RetryAfter)
		}
	}
	if o.Banned {
		for i := range p.limits {
			buf = appendLimit(buf, start, p.limits[i].name, 0, wait)
		}
		return buf
	}
	l := p.tightest(o)
	if len(p.limits) > 1 {
		wait = min(wait, l.past) // ResetAfter is that of the slowest
	}
	return appendLimit(buf, start, l.name, o.Remaining, wait)
}

func appendLimit(buf []byte, start int, name string, left uint64, wait time.Duration) []byte {
	buf = append(comma(buf, start), name...)
	buf = append(buf, ";r="...)
	buf = strconv.AppendUint(buf, min(left, maxSFInteger), 10)
	if wait > 0 { // Never has no end to tell of
		buf = append(buf, ";t="...)
		buf = strconv.AppendInt(buf, seconds(wait), 10)
	}
	return buf
}
