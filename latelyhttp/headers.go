package latelyhttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/ratelimitheader"
)

// Headers is which fields tell clients of limits. The zero Headers is Draft11.
// Retry-After is sent with every refusal, whatever the choice.
type Headers uint8

const (
	// Draft11 is RateLimit-Policy and RateLimit as in
	// draft-ietf-httpapi-ratelimit-headers-11: an item for each limit of each
	// matching rule with q and w, and one for what is left of each rule's
	// tightest limit with r and t. The name of a policy is its rule's, with
	// the window behind it where the rule has several limits ("api/60s").
	//
	// w and t are seconds, rounded up. t is when the limit has forgotten all
	// that it counted, in a refusal when to try again; it never points beyond
	// Retry-After. Under an algorithm that counts in slots (Sliding above 128,
	// Weighted, TwoBucket) t and Retry-After may be longer than needed, and
	// than w, by [ratelimit.Limit.MaxLate]: a sixtieth of w for Sliding. A burst is told as a quota over the time in which it comes
	// back. An InFlight limit has the unit "concurrent-requests" and no w; q
	// of an adaptive limit is what holds now. There is no partition key, and
	// rules that only ban and shadow rules are not told of. The fields are
	// added to those that are there, since both are lists.
	Draft11 Headers = iota

	// Legacy is X-RateLimit-Limit, -Remaining and -Reset of the deciding
	// rule, with Reset in seconds from now. It has no Limit during a ban.
	Legacy

	// LegacyEpoch is Legacy with Reset in seconds since 1970.
	LegacyEpoch

	// NoHeaders sends none of them.
	NoHeaders

	numHeaders
)

const (
	policyField = "Ratelimit-Policy" // canonical, as http.Header has it
	limitField  = "Ratelimit"
)

// writeHeaders tells of v in h. buf is memory for it.
func (m *Middleware) writeHeaders(h http.Header, p *plan, v *Verdict, buf []byte) []byte {
	switch m.headers {
	case Draft11:
		return p.writeDraft(h, v, buf)
	case Legacy, LegacyEpoch:
		m.writeLegacy(h, v)
	}
	return buf
}

func (m *Middleware) writeLegacy(h http.Header, v *Verdict) {
	d := &v.Decision
	if d.Rule == "" || ratelimitheader.StoreFailed(d) {
		return
	}
	reset := ratelimitheader.Seconds(d.ResetAfter)
	if m.headers == LegacyEpoch {
		reset = time.Now().Add(d.ResetAfter + time.Second - 1).Unix()
	}
	if d.BannedUntil.IsZero() {
		h["X-Ratelimit-Limit"] = []string{strconv.FormatUint(d.Limit, 10)}
	}
	h["X-Ratelimit-Remaining"] = []string{strconv.FormatUint(d.Remaining, 10)}
	h["X-Ratelimit-Reset"] = []string{strconv.FormatInt(reset, 10)}
}

// writeDraft writes both fields of the draft into one string that they share.
func (p *plan) writeDraft(h http.Header, v *Verdict, buf []byte) []byte {
	buf, policies := p.policies.Append(buf[:0], v.Outcomes, &v.Decision)
	if policies == 0 {
		return buf
	}
	text := string(buf)
	values := []string{text[:policies], text[policies:]}
	addField(h, policyField, values[0:1:1])
	if len(buf) > policies {
		addField(h, limitField, values[1:2:2])
	}
	return buf
}

// addField adds one value to a list field.
func addField(h http.Header, name string, value []string) {
	if before := h[name]; len(before) > 0 {
		value = append(before, value...)
	}
	h[name] = value
}
