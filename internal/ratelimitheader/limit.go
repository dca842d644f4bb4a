package ratelimitheader

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A limit is one limit as clients are told of it: a quota policy of the draft.
type limit struct {
	most   uint64        // what it allows at once: N, or the burst
	past   time.Duration // how long it remembers, at most
	name   string
	json   string // name as a JSON string
	quoted string // name as a String of RFC 9651
	window string // the parameters behind q
	policy string // the item of RateLimit-Policy
}

// newLimit returns the policy of l. A burst is told as a quota too, over the time in
// which it comes back: 10 a second with a burst of 100 is 100 in 10 seconds.
func newLimit(name string, l ratelimit.Limit, a ratelimit.Algorithm) limit {
	q := limit{most: l.N, past: l.Window(), name: name, json: quoteJSON(name), quoted: quote(name)}
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
	return time.Duration(math.Ceil(min(x, float64(ratelimit.MaxSpan))))
}

func (l *limit) appendPolicy(buf []byte, quota uint64) []byte {
	buf = append(buf, l.quoted...)
	buf = append(buf, ";q="...)
	buf = strconv.AppendUint(buf, min(quota, maxInteger), 10)
	return append(buf, l.window...)
}

// appendLeft appends the service limit: how much is left, and how long until that
// changes. Never has no end to tell of.
func (l *limit) appendLeft(buf []byte, left uint64, wait time.Duration) []byte {
	buf = append(buf, l.quoted...)
	buf = append(buf, ";r="...)
	buf = strconv.AppendUint(buf, min(left, maxInteger), 10)
	if wait > 0 {
		buf = append(buf, ";t="...)
		buf = strconv.AppendInt(buf, Seconds(wait), 10)
	}
	return buf
}

// maxInteger is the largest Integer of RFC 9651.
const maxInteger = 999_999_999_999_999

// Seconds returns d in seconds, rounded up: who waits as told has waited long enough.
// d is not negative.
func Seconds(d time.Duration) int64 {
	s := int64(d / time.Second)
	if d%time.Second > 0 {
		s++
	}
	return s
}

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
