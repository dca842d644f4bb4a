package latelygrpc

import (
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/lately-go/lately/ratelimit"
)

// The metadata of draft-ietf-httpapi-ratelimit-headers-11.
const (
	policyField = "ratelimit-policy"
	limitField  = "ratelimit"
)

// A rulePolicy is one rule as clients are told of it.
type rulePolicy struct {
	name    string
	subject string // what it counts by; empty when hidden
	shadow  bool
	adapts  bool // N is what the outcome says
	limits  []limitPolicy
}

// A limitPolicy is one limit: a quota policy of the draft.
type limitPolicy struct {
	n      uint64
	most   time.Duration // how long it remembers, at most
	name   string
	quoted string // name, as an RFC 9651 String
	window string // parameters behind q
}

// newRulePolicy names rule n for clients. A rule with several limits has its
// name with the window behind it for each: "api/60s".
func newRulePolicy(r *ratelimit.Rule, n int, hide bool) rulePolicy {
	p := rulePolicy{name: r.Name, subject: r.Key.String(), shadow: r.Shadow, adapts: r.Adapt != nil}
	if hide {
		p.name, p.subject = "policy-"+strconv.Itoa(n+1), ""
	}
	for _, l := range r.Limits {
		window := l.Window()
		limit := limitPolicy{n: l.N, most: window + window/60 + 1, name: p.name, window: ";w=" + strconv.FormatInt(seconds(window), 10)}
		if r.Algorithm == ratelimit.InFlight {
			limit.window = `;qu="concurrent-requests"`
		}
		if len(r.Limits) > 1 {
			limit.name += "/" + windowText(l)
		}
		limit.quoted = quote(limit.name)
		p.limits = append(p.limits, limit)
	}
	return p
}

// quota returns the limit's N under which o was judged.
func (p *rulePolicy) quota(l *limitPolicy, o *ratelimit.Outcome) uint64 {
	if p.adapts && o.Limit > 0 && !o.Banned {
		return o.Limit
	}
	return l.n
}

// tightest returns the limit that o is about, or nil when a ban is all there is.
func (p *rulePolicy) tightest(o *ratelimit.Outcome) *limitPolicy {
	for i := range p.limits {
		if p.limits[i].n == o.Limit {
			return &p.limits[i]
		}
	}
	if len(p.limits) == 0 {
		return nil
	}
	return &p.limits[0]
}

// addLimits adds to md what the draft says of v: an item for each limit of each
// matching rule, and one for what is left of each rule's tightest limit. Rules
// that only ban and shadow rules are not shown. buf is memory for it.
func (p *plan) addLimits(md metadata.MD, v *Verdict, buf []byte) []byte {
	buf = buf[:0]
	for i := range v.Outcomes {
		if r := p.rule(&v.Outcomes[i]); r != nil && !r.shadow {
			buf = r.appendPolicies(buf, &v.Outcomes[i])
		}
	}
	policies := len(buf)
	if policies == 0 {
		return buf
	}
	for i := range v.Outcomes {
		o := &v.Outcomes[i]
		if r := p.rule(o); r != nil && !r.shadow && !o.Skipped && len(r.limits) > 0 {
			buf = r.appendLimits(buf, policies, o, &v.Decision)
		}
	}
	text := string(buf)
	values := []string{text[:policies], text[policies:]}
	md[policyField] = values[0:1:1]
	if len(buf) > policies {
		md[limitField] = values[1:2:2]
	}
	return buf
}

// appendPolicies appends the rule's limits.
func (p *rulePolicy) appendPolicies(buf []byte, o *ratelimit.Outcome) []byte {
	for i := range p.limits {
		l := &p.limits[i]
		buf = append(comma(buf, 0), l.quoted...)
		buf = append(buf, ";q="...)
		buf = strconv.AppendUint(buf, min(p.quota(l, o), maxInteger), 10)
		buf = append(buf, l.window...)
	}
	return buf
}

// appendLimits appends what is left of the rule's tightest limit, or, during a
// ban, that nothing is left of any. The list begins at buf[start].
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
	if !o.Banned {
		l := p.tightest(o)
		if len(p.limits) > 1 {
			wait = min(wait, l.most) // ResetAfter is that of the slowest
		}
		return appendLimit(buf, start, l.quoted, o.Remaining, wait)
	}
	for i := range p.limits {
		buf = appendLimit(buf, start, p.limits[i].quoted, 0, wait)
	}
	return buf
}

func appendLimit(buf []byte, start int, name string, left uint64, wait time.Duration) []byte {
	buf = append(comma(buf, start), name...)
	buf = append(buf, ";r="...)
	buf = strconv.AppendUint(buf, min(left, maxInteger), 10)
	if wait > 0 { // Never has no end to tell of
		buf = append(buf, ";t="...)
		buf = strconv.AppendInt(buf, seconds(wait), 10)
	}
	return buf
}

// comma appends what stands between the items of a list that begins at start.
func comma(buf []byte, start int) []byte {
	if len(buf) > start {
		return append(buf, ", "...)
	}
	return buf
}

// roundUp returns d rounded up to a multiple of unit.
func roundUp(d, unit time.Duration) time.Duration {
	if down := d.Truncate(unit); down < d {
		return down + unit
	}
	return d
}

// seconds returns d in seconds, rounded up.
func seconds(d time.Duration) int64 { return int64(roundUp(d, time.Second) / time.Second) }

// windowText returns a window as the name of a policy has it: "60s", "500ms",
// "month".
func windowText(l ratelimit.Limit) string {
	switch {
	case l.Per != 0:
		return l.Per.String()
	case l.Span%time.Second == 0:
		return strconv.FormatInt(int64(l.Span/time.Second), 10) + "s"
	}
	return strconv.FormatInt(l.Span.Milliseconds(), 10) + "ms"
}

// maxInteger is the largest Integer of RFC 9651.
const maxInteger = 999_999_999_999_999

// quote returns s as a String of RFC 9651. These have printable ASCII only: any
// other byte is written as %XX.
func quote(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b.Write([]byte{'\\', c})
		case c < ' ' || c > '~':
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
