package windowtest

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// A Limit is one limit of one key by the definition of its algorithm. Times never go back.
type Limit struct {
	limit.Config
	Width int64 // of the slots of Sliding above 128 and of TwoBucket

	charges Charges // since nothing was used

	// Sliding above 128 counts times until there are more than three in the window, and slots from then on, until they have
	// all left. Charges at spilled or before had left by then.
	slots   bool
	spilled int64

	bucket *bucket // of GCRA and LeakyBucket, instead of all this
}

// New returns the Limit of c, with nothing counted.
func New(c limit.Config) *Limit {
	c.Resolution = max(c.Resolution, 1)
	l := &Limit{Config: c, Width: int64(c.Span), slots: c.Algorithm == limit.TwoBucket}
	switch c.Algorithm {
	case limit.Sliding:
		if l.Width /= 64; c.Span%60 == 0 {
			l.Width = int64(c.Span / 60)
		}
	case limit.GCRA, limit.LeakyBucket:
		l.bucket = &bucket{c: c, n: c.N, level: new(big.Rat)}
	}
	return l
}

// Clone returns a copy.
func (l *Limit) Clone() *Limit {
	c := *l
	if c.charges = slices.Clone(l.charges); l.bucket != nil {
		b := *l.bucket // which replaces its numbers, and changes none
		c.bucket = &b
	}
	return &c
}

// FloorDiv returns a/b, rounded down.
func FloorDiv(a, b int64) int64 {
	if r := a % b; r < 0 {
		return (a - r - b) / b
	}
	return a / b
}

// holds reports whether a charge at the time at is in the window at t.
func (l *Limit) holds(at, t int64) bool {
	switch {
	case l.Algorithm == limit.Fixed:
		first := l.charges[0].At
		return at >= first && t-first < int64(l.Span)
	case l.Algorithm == limit.Calendar:
		return l.shows(at) == l.shows(t)
	case l.slots:
		left, _ := l.left(FloorDiv(at, l.Width), t)
		return left > 0
	}
	return at > t-int64(l.Span)
}

// together reports whether charges at these times are counted as one.
func (l *Limit) together(a, b int64) bool {
	switch {
	case l.Algorithm == limit.Fixed, l.Algorithm == limit.Calendar:
		return true
	case l.slots:
		return FloorDiv(a, l.Width) == FloorDiv(b, l.Width)
	}
	return a == b
}

// multiples returns how many times a clock of the limit's resolution shows in [from, to].
func (l *Limit) multiples(from, to int64) int64 {
	return FloorDiv(to, int64(l.Resolution)) - FloorDiv(from-1, int64(l.Resolution))
}

// left returns how many times in slot k are in the window at t, and how many there are.
func (l *Limit) left(k, t int64) (left, all int64) {
	from, to := k*l.Width, (k+1)*l.Width-1
	return max(l.multiples(max(from, t-int64(l.Span)+1), to), 0), l.multiples(from, to)
}

// Used returns how much is used at t, rounded up.
func (l *Limit) Used(t int64) (n uint64) {
	switch {
	case l.bucket != nil:
		return l.bucket.used(t)
	case l.Algorithm != limit.TwoBucket:
		return l.charges.Sum(func(at int64) bool { return l.holds(at, t) })
	}
	for k := FloorDiv(t, l.Width) - 1; k*l.Width <= t; k++ {
		sum := l.charges.Sum(func(at int64) bool { return FloorDiv(at, l.Width) == k })
		left, all := l.left(k, t)
		part := new(big.Int).Mul(big.NewInt(left), new(big.Int).SetUint64(sum))
		n += ceilDiv(part, big.NewInt(max(all, 1)))
	}
	return n
}

// Charge counts cost at t.
func (l *Limit) Charge(t int64, cost uint64) {
	if l.bucket != nil {
		l.bucket.charge(t, cost)
		return
	}
	used, gone := l.Used(t), func(at int64) bool { return !l.holds(at, t) }
	if used == 0 {
		l.charges = nil
	}
	if l.Algorithm == limit.Sliding && max(l.N, l.AtMost) > 128 {
		l.slots = l.slots && used > 0
		if inline := uint64(3); !l.slots && cost > inline-min(used, inline) {
			l.charges.Drop(gone)
			l.slots, l.spilled = true, t-int64(l.Span)
		}
	}
	if len(l.charges) > 64 && l.Algorithm != limit.Fixed { // for speed
		l.charges.Drop(gone)
	}
	l.charges.Add(t, cost)
}

// Same reports whether o counts the same.
func (l *Limit) Same(o *Limit) bool {
	a, b := l.Config, o.Config
	if a.AtMost == 0 && b.AtMost == 0 {
		a.Burst, b.Burst = most(a), most(b)
	}
	sameZone := a.Zone.String() == b.Zone.String()
	a.Zone, b.Zone = nil, nil
	return a == b && sameZone
}

// Carry charges l, where nothing is counted, with what from holds at t.
func (l *Limit) Carry(from *Limit, t int64) {
	if l.Same(from) {
		*l = *from.Clone()
		return
	}
	for _, c := range from.Held(t) {
		if l.Algorithm == limit.Fixed && from.Algorithm == limit.Fixed {
			c.At = from.charges[0].At // the window keeps its beginning
		}
		l.Charge(c.At, c.N)
	}
}

// Held returns the used amount at t, at the times at which it came, or the latest at which it may have come by what the
// algorithm keeps.
func (l *Limit) Held(t int64) (all Charges) {
	switch l.Algorithm {
	case limit.GCRA, limit.LeakyBucket, limit.Fixed, limit.Calendar:
		if used := l.Used(t); used > 0 {
			all.Add(t, used)
		}
		return all
	}
	for _, c := range l.charges {
		if !l.holds(c.At, t) {
			continue
		}
		if l.slots {
			end := (FloorDiv(c.At, l.Width) + 1) * l.Width
			c.At = min(FloorDiv(end-1, int64(l.Resolution))*int64(l.Resolution), t)
		}
		all = append(all, c)
	}
	return all
}

// Refund takes back at t a charge at the time at.
func (l *Limit) Refund(t, at int64, cost uint64) {
	switch {
	case l.bucket != nil:
		l.bucket.refund(t, at, cost)
	case len(l.charges) == 0 || !l.holds(at, t):
	case l.Algorithm == limit.Sliding && l.slots && at <= l.spilled:
	default:
		l.charges.Take(cost, func(c int64) bool { return l.holds(c, t) && l.together(c, at) })
	}
}

// RefundOldest takes back at t up to cost of the counted amount, the oldest first, and returns how much.
func (l *Limit) RefundOldest(t int64, cost uint64) uint64 {
	if l.bucket != nil {
		return l.bucket.refundOldest(t, cost)
	}
	return l.charges.Take(cost, func(c int64) bool { return l.holds(c, t) })
}

// SetN makes n, or the N of the Config if that is 0, what a bucket with AtMost drains by from t on.
func (l *Limit) SetN(t int64, n uint64) {
	if l.bucket != nil && l.AtMost > 0 {
		l.bucket.setN(t, cmp.Or(n, l.N))
	}
}

// Full reports whether l is a bucket that cannot hold more.
func (l *Limit) Full() bool { return l.bucket != nil && l.bucket.level.Cmp(l.bucket.full()) >= 0 }

// Delay returns how long after t the event charged last to a bucket waits for its turn.
func (l *Limit) Delay(t int64) time.Duration { return l.bucket.delay(t) }

// periods format each calendar period in local time. Periods below a day include the UTC
// offset, so that an hour that is shown twice counts as two.
var periods = map[limit.Period]string{
	limit.Second: "2006-01-02 15:04:05 -07:00:00",
	limit.Minute: "2006-01-02 15:04 -07:00:00",
	limit.Hour:   "2006-01-02 15 -07:00:00",
	limit.Day:    "2006-01-02",
	limit.Month:  "2006-01",
}

// shows returns the period of a calendar at t.
func (l *Limit) shows(t int64) string { return Shown(l.Period, t, cmp.Or(l.Zone, time.UTC)) }

// Shown returns the period at t as the wall clock of zone shows it.
func Shown(p limit.Period, t int64, zone *time.Location) string {
	at := time.Unix(0, t).In(zone)
	if p == limit.Week {
		return fmt.Sprint(at.ISOWeek())
	}
	return at.Format(periods[p])
}
