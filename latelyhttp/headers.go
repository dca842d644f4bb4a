package latelyhttp

import (
	"net/http"
	"strconv"
	"time"

	"github.com/lately-go/lately/internal/http/ratelimitheader"
)

// Headers selects the response fields about limits. The zero Headers is Draft11.
// Every refusal has Retry-After.
type Headers uint8

const (
	// Draft11 is RateLimit-Policy and RateLimit as in
	// draft-ietf-httpapi-ratelimit-headers-11: an item for each limit of each
	// matching rule with q and w, and one for the remaining quota of each rule's
	// tightest limit with r and t. The name of a policy is its rule's, with
	// the window behind it where the rule has several limits ("api/60s").
	//
	// w and t are seconds, rounded up. t is the time until the limit is unused
	// again, or in a refusal until a request can be allowed; it is never longer
	// than Retry-After. Under an algorithm that counts in slots (Sliding above
	// 128, TwoBucket) t and Retry-After may be longer than needed, and than w, by
	// [ratelimit.Limit.MaxLate]: a sixtieth of w for Sliding. A burst is a quota
	// over the time in which it is refilled. An InFlight limit has the unit
	// "concurrent-requests" and no w; q of an adaptive limit is its current
	// value. There is no partition key. Shadow rules, and rules that only ban,
	// have no item. Both fields are lists, and are added to existing ones.
	Draft11 Headers = iota

	// Legacy is X-RateLimit-Limit, -Remaining and -Reset of the deciding rule,
	// with Reset in seconds from now. During a ban, Limit is omitted.
	Legacy

	// LegacyEpoch is Legacy with Reset in seconds since 1970.
	LegacyEpoch

	// NoHeaders sends none of them.
	NoHeaders

	numHeaders
)

// writeHeaders sets the fields of v in h. buf is memory to use.
func (m *Middleware) writeHeaders(h http.Header, p *plan, v *Verdict, buf []byte) []byte {
	switch m.config.Headers {
	case Draft11:
		return p.Policies.WriteHeader(h, buf, v.Outcomes, &v.Decision)
	case Legacy, LegacyEpoch:
		m.writeLegacy(h, v)
	}
	return buf
}

func (m *Middleware) writeLegacy(h http.Header, v *Verdict) {
	d := &v.Decision
	if d.Rule == "" || d.Missing != "" || ratelimitheader.StoreFailed(d) {
		return
	}
	reset := ratelimitheader.Seconds(d.ResetAfter)
	if m.config.Headers == LegacyEpoch {
		reset = time.Now().Add(d.ResetAfter + time.Second - 1).Unix()
	}
	if d.BannedUntil.IsZero() {
		h["X-Ratelimit-Limit"] = []string{strconv.FormatUint(d.Limit, 10)}
	}
	h["X-Ratelimit-Remaining"] = []string{strconv.FormatUint(d.Remaining, 10)}
	h["X-Ratelimit-Reset"] = []string{strconv.FormatInt(reset, 10)}
}
