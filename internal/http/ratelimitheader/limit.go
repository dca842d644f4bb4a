package ratelimitheader

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

// A policy is one limit in the terms of the draft: a quota policy.
type policy struct {
	most   uint64        // the most it allows at once: N, or the burst
	past   time.Duration // the longest time for which it counts an event
	name   string
	json   string // name as a JSON string
	quoted string // name as a String of RFC 9651
	window string // the parameters behind q
	policy string // the item of RateLimit-Policy
}

// newPolicy returns the policy of l. A burst is a quota over the time in which it is
// refilled: 10 a second with a burst of 100 is 100 in 10 seconds.
func newPolicy(name string, l ratelimit.Limit, a ratelimit.Algorithm) policy {
	q := policy{most: l.N, past: l.Window(), name: name, json: quoteJSON(name), quoted: quote(name)}
	if l.Burst > 0 {
		q.most = l.Burst
		q.past = scaled(q.past, l.Burst, l.N)
	}
	q.window = ";w=" + strconv.FormatInt(Seconds(q.past), 10)
	if a == ratelimit.InFlight {
		q.window = `;qu="concurrent-requests"`
	}
	q.past += l.MaxLate(a)
	q.policy = string(q.appendPolicy(nil, q.most))
	return q
}

// scaled returns d * n / per, at most MaxSpan.
func scaled(d time.Duration, n, per uint64) time.Duration {
	x := float64(d) * float64(n) / float64(max(per, 1))
	return time.Duration(math.Ceil(min(x, float64(limit.MaxSpan))))
}

func (l *policy) appendPolicy(buf []byte, quota uint64) []byte {
	buf = append(buf, l.quoted...)
	buf = append(buf, ";q="...)
	buf = strconv.AppendUint(buf, min(quota, maxInteger), 10)
	return append(buf, l.window...)
}

// appendLeft appends the service limit: how much is left, and how long until that
// changes, unless it never does.
func (l *policy) appendLeft(buf []byte, left uint64, wait time.Duration) []byte {
	buf = append(buf, l.quoted...)
	buf = append(buf, ";r="...)
	buf = strconv.AppendUint(buf, min(left, maxInteger), 10)
	if 0 < wait && wait < ratelimit.Never {
		buf = append(buf, ";t="...)
		buf = strconv.AppendInt(buf, Seconds(wait), 10)
	}
	return buf
}

// maxInteger is the largest Integer of RFC 9651.
const maxInteger = 999_999_999_999_999

// Seconds returns d, which is not negative, in seconds, rounded up, so that a client
// that waits that long has waited long enough.
func Seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

// quote returns s as a String of RFC 9651, which has printable ASCII only: any other
// byte becomes %XX.
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
