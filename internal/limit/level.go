package limit

import (
	"encoding/binary"
	"math"
	"math/bits"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// A level is the window of GCRA and LeakyBucket: how full a bucket is that drains n in a span, without rounding. It
// is kept as the time at which the bucket will be empty, the "theoretical arrival
// time" of GCRA (ATM Forum, Traffic Management 4.0, 1996):
//
//	0  that time, as keytable.Stamp has it, rounded down
//	1  the rest, in 1/n ns; only if n does not divide the span
//
// So nothing drifts, whatever n and the span. What is charged beyond the burst
// counts up to as much again, or up to n more if that is more: after one span, or
// as long as the burst takes to drain, an event fits again.
type level struct {
	n, burst uint64
	span     uint64
	wide     bool // whether there is word 1

	// most is the furthest that the time of empty is ahead. Being twice what the
	// burst takes, at least, it is not reached by charges that fit: see refund.
	most int64
}

func newLevel(c *Config) window {
	l := &level{n: c.N, burst: c.Most(), span: uint64(c.Span), wide: uint64(c.Span)%c.N != 0}
	drain, rest := l.takes(l.burst)
	more := drain
	if rest > 0 {
		more++
	}
	l.most = drain + max(more, int64(c.Span))
	return l
}

func (l *level) words() int {
	if l.wide {
		return 2
	}
	return 1
}

// takes returns how long it takes to drain cost: ns and rest/n nanoseconds, or
// math.MaxInt64 if it is longer.
func (l *level) takes(cost uint64) (ns int64, rest uint64) {
	hi, lo := bits.Mul64(cost, l.span)
	if hi >= l.n {
		return math.MaxInt64, 0
	}
	q, rest := bits.Div64(hi, lo, l.n)
	if q > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(q), rest
}

// empty returns when the bucket will be empty, if that is after t; t otherwise.
func (l *level) empty(w []uint64, t int64) (at int64, rest uint64) {
	at = keytable.Time(w[0])
	if at < t {
		return t, 0
	}
	if l.wide {
		rest = w[1]
	}
	return at, rest
}

func (l *level) set(w []uint64, at int64, rest uint64) {
	w[0] = keytable.Stamp(at)
	if l.wide {
		w[1] = rest
	}
}

func (l *level) advance(w []uint64, _ *keytable.Blocks, t int64) uint64 { return l.used(w, nil, t) }

// used returns how full the bucket is at t, rounded up.
func (l *level) used(w []uint64, _ *keytable.Blocks, t int64) uint64 {
	if keytable.Time(w[0]) < t {
		return 0
	}
	at, rest := l.empty(w, t)
	return l.drains(at-t, rest, true)
}

// drains returns how much drains in ns and rest/n nanoseconds, rounded down or
// up.
func (l *level) drains(ns int64, rest uint64, up bool) uint64 {
	hi, lo := bits.Mul64(uint64(ns), l.n)
	lo, carry := bits.Add64(lo, rest, 0)
	hi += carry
	if up {
		lo, carry = bits.Add64(lo, l.span-1, 0)
		hi += carry
	}
	switch {
	case hi == 0:
		return lo / l.span
	case hi >= l.span:
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, l.span)
	return q
}

func (l *level) charge(w []uint64, _ *keytable.Blocks, t int64, cost uint64) {
	at, rest := l.empty(w, t)
	ns, more := l.takes(cost)
	if rest += more; rest >= l.n { // both are below n, which has 63 bits
		rest -= l.n
		ns = min(ns, math.MaxInt64-1) + 1
	}
	if ns >= t+l.most-at {
		at, rest = t+l.most, 0
	} else {
		at += ns
	}
	l.set(w, at, rest)
}

// refund takes back, at t, what was charged at an earlier time, less what may
// have drained of it since, and returns how much, rounded down.
//
// What has drained of the charge cannot be told from what would have drained anyway, so the
// bucket drains what is taken back first, and there is no credit. Nor is there one for what
// was not charged because it was too far beyond the burst: then the bucket seems to be empty
// no sooner than most after at, which never holds if all charges fitted. docs/dev/proofs.md
// has the proof.
func (l *level) refund(w []uint64, _ *keytable.Blocks, t, at int64, cost uint64) uint64 {
	empty, rest := l.empty(w, t)
	ns, more := l.takes(cost)
	if empty == t && rest == 0 || empty-at >= l.most || ns < t-at {
		return 0
	}
	ns -= t - at
	if full := empty - t; ns > full || ns == full && more >= rest {
		taken := l.drains(full, rest, false)
		l.set(w, t, 0)
		return taken
	}
	left, under := empty-ns, rest-more
	if rest < more {
		left, under = left-1, under+l.n
	}
	l.set(w, left, under)
	return l.drains(ns, more, false)
}

// cut reports whether the bucket is at its most at t, so that what was charged may
// have been cut.
func (l *level) cut(w []uint64, t int64) bool {
	at, _ := l.empty(w, t)
	return at-t >= l.most
}

func (l *level) until(w []uint64, _ *keytable.Blocks, t int64, _, most uint64) int64 {
	at, rest := l.empty(w, t)
	return l.before(at, rest, most)
}

// before returns the time before at + rest/n nanoseconds by as long as cost takes
// to drain, rounded up.
func (l *level) before(at int64, rest, cost uint64) int64 {
	ns, more := l.takes(cost)
	at -= ns
	if rest > more {
		at++
	}
	return at
}

// refundOldest leaves whole units: the oldest, which has drained in part, goes
// with what is left of it.
func (l *level) refundOldest(w []uint64, _ *keytable.Blocks, t int64, cost uint64) uint64 {
	used := l.used(w, nil, t)
	if cost == 0 || used == 0 {
		return 0
	}
	taken := min(cost, used)
	ns, rest := l.takes(used - taken)
	l.set(w, t+ns, rest)
	return taken
}

func (l *level) each(w []uint64, _ *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	if used := l.used(w, nil, t); used > 0 {
		yield(t, used)
	}
}

// appendState appends how long after t the bucket will be empty.
func (l *level) appendState(dst []byte, w []uint64, _ *keytable.Blocks, t int64) []byte {
	at, rest := l.empty(w, t)
	dst = binary.AppendUvarint(dst, uint64(at-t)+1)
	if l.wide {
		dst = binary.AppendUvarint(dst, rest)
	}
	return dst
}

func (l *level) readState(r *snapshot.Reader, w []uint64, _ *keytable.Blocks, t, now int64) {
	ns := r.UpTo(uint64(l.most) + 1)
	if ns == 0 {
		return
	}
	rest := uint64(0)
	if l.wide {
		rest = r.UpTo(l.n - 1)
	}
	l.set(w, min(t, now)+int64(ns-1), rest)
}
