package storetest

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/ring"
	"github.com/lately-go/lately/ratelimit"
)

// A window is one limit of one key by the definition of its algorithm: a list of what was
// charged, all of which is read for each answer. It is slow, and has no structure in
// common with any store. Times never go back.
type window struct {
	rule       *ratelimit.Rule
	limit      ratelimit.Limit
	span       int64
	width      int64 // of the slots, or 0
	resolution int64
	charges    []charge // since nothing was used, oldest first

	// Sliding above 128 counts times until there are more than three in the window, and
	// slots from then on, until they have all left. What was charged at spilled or before
	// had left by then.
	slots   bool
	spilled int64

	bucket *bucket // of GCRA and LeakyBucket, instead of all this
}

// A charge is what was counted at one time.
type charge struct {
	t    int64
	cost uint64
}

// newWindow returns the window of l, with nothing counted.
func newWindow(r *ratelimit.Rule, l ratelimit.Limit, resolution int64) *window {
	w := &window{rule: r, limit: l, span: int64(l.Span), resolution: resolution}
	switch r.Algorithm {
	case ratelimit.Sliding:
		if w.width = w.span / 64; w.span%60 == 0 {
			w.width = w.span / 60
		}
	case ratelimit.TwoBucket:
		w.width = w.span
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		w.bucket = &bucket{limit: l, n: l.N, level: new(big.Rat)}
	}
	w.slots = r.Algorithm == ratelimit.TwoBucket
	return w
}

// most returns how much a limit lets be used: its burst or N. A limit of 0 refuses
// all.
func most(l ratelimit.Limit) uint64 {
	if l.N != 0 && l.Burst != 0 {
		return l.Burst
	}
	return l.N
}

// mostFor is most for an event that brings N, if that is not 0.
func mostFor(l ratelimit.Limit, n uint64) uint64 {
	if n > 0 && l.AtMost > 0 {
		return cmp.Or(l.Burst, n)
	}
	return most(l)
}

func (w *window) clone() *window {
	c := *w
	c.charges = slices.Clone(w.charges)
	if w.bucket != nil {
		b := *w.bucket // which replaces its numbers, and changes none
		c.bucket = &b
	}
	return &c
}

// holds reports whether what was charged at the time at is in the window at t.
func (w *window) holds(at, t int64) bool {
	switch {
	case w.rule.Algorithm == ratelimit.Fixed:
		first := w.charges[0].t
		return at >= first && t-first < w.span
	case w.rule.Algorithm == ratelimit.Calendar:
		return w.shows(at) == w.shows(t)
	case w.slots:
		left, _ := w.left(ring.FloorDiv(at, w.width), t)
		return left > 0
	}
	return at > t-w.span
}

// together reports whether charges at these times are counted as one.
func (w *window) together(a, b int64) bool {
	switch {
	case w.rule.Algorithm == ratelimit.Fixed, w.rule.Algorithm == ratelimit.Calendar:
		return true
	case w.slots:
		return ring.FloorDiv(a, w.width) == ring.FloorDiv(b, w.width)
	}
	return a == b
}

// multiples returns how many times a clock of the window's resolution shows in
// [from, to].
func (w *window) multiples(from, to int64) int64 {
	return ring.FloorDiv(to, w.resolution) - ring.FloorDiv(from-1, w.resolution)
}

// left returns how many times of slot k are in the window at t, and how many
// there are.
func (w *window) left(k, t int64) (left, all int64) {
	from, to := k*w.width, (k+1)*w.width-1
	return max(w.multiples(max(from, t-w.span+1), to), 0), w.multiples(from, to)
}

// used returns how much is used at t, rounded up.
func (w *window) used(t int64) (n uint64) {
	if w.bucket != nil {
		return w.bucket.used(t)
	}
	weighted := w.rule.Algorithm == ratelimit.TwoBucket
	slots := map[int64]uint64{}
	for _, c := range w.charges {
		switch {
		case !w.holds(c.t, t):
		case weighted:
			slots[ring.FloorDiv(c.t, w.width)] += c.cost
		default:
			n += c.cost
		}
	}
	for k, sum := range slots {
		left, all := w.left(k, t)
		part := new(big.Int).Mul(big.NewInt(left), new(big.Int).SetUint64(sum))
		n += ceilDiv(part, big.NewInt(all))
	}
	return n
}

func (w *window) charge(t int64, cost uint64) {
	if w.bucket != nil {
		w.bucket.charge(t, cost)
		return
	}
	used := w.used(t)
	if used == 0 {
		w.charges = nil
	}
	if w.rule.Algorithm == ratelimit.Sliding && max(w.limit.N, w.limit.AtMost) > 128 {
		w.slots = w.slots && used > 0
		if inline := uint64(3); !w.slots && cost > inline-min(used, inline) {
			w.charges = slices.DeleteFunc(w.charges, func(c charge) bool { return !w.holds(c.t, t) })
			w.slots, w.spilled = true, t-w.span
		}
	}
	if n := len(w.charges); n > 64 && w.rule.Algorithm != ratelimit.Fixed { // for the sake of speed
		w.charges = slices.DeleteFunc(w.charges, func(c charge) bool { return !w.holds(c.t, t) })
	}
	w.charges = append(w.charges, charge{t, cost})
}

// same reports whether o counts the same limit.
func (w *window) same(o *window) bool {
	limit, other := w.limit, o.limit
	if limit.AtMost == 0 && other.AtMost == 0 {
		limit.Burst, other.Burst = most(limit), most(other)
	}
	return w.rule.Algorithm == o.rule.Algorithm && limit == other && w.rule.Zone.String() == o.rule.Zone.String()
}

// carry charges w, where nothing is counted, with what from holds at t.
func (w *window) carry(from *window, t int64) {
	if w.same(from) {
		rule := w.rule
		*w = *from.clone()
		w.rule = rule
		return
	}
	for _, c := range from.held(t) {
		if w.rule.Algorithm == ratelimit.Fixed && from.rule.Algorithm == ratelimit.Fixed {
			c.t = from.charges[0].t // the window keeps its beginning
		}
		w.charge(c.t, c.cost)
	}
}

// held returns what is used at t, at the times at which it came, or the latest at which it
// may have come by what the algorithm knows.
func (w *window) held(t int64) (all []charge) {
	switch w.rule.Algorithm {
	case ratelimit.GCRA, ratelimit.LeakyBucket, ratelimit.Fixed, ratelimit.Calendar:
		if used := w.used(t); used > 0 {
			all = []charge{{t, used}}
		}
		return all
	}
	for _, c := range w.charges {
		if !w.holds(c.t, t) {
			continue
		}
		if w.slots {
			end := (ring.FloorDiv(c.t, w.width) + 1) * w.width
			c.t = min(ring.FloorDiv(end-1, w.resolution)*w.resolution, t)
		}
		all = append(all, c)
	}
	return all
}

// refund takes back at t what was charged at the time at.
func (w *window) refund(t, at int64, cost uint64) {
	switch {
	case w.bucket != nil:
		w.bucket.refund(t, at, cost)
	case len(w.charges) == 0 || !w.holds(at, t):
	case w.rule.Algorithm == ratelimit.Sliding && w.slots && at <= w.spilled:
	default:
		w.take(t, cost, func(c int64) bool { return w.together(c, at) })
	}
}

// refundOldest takes back at t up to cost of what is counted, the oldest first, and
// returns how much.
func (w *window) refundOldest(t int64, cost uint64) uint64 {
	if w.bucket != nil {
		return w.bucket.refundOldest(t, cost)
	}
	return w.take(t, cost, func(int64) bool { return true })
}

// take takes back up to cost of what the window holds at t and was charged at times that
// are meant, the oldest first, and returns how much.
func (w *window) take(t int64, cost uint64, meant func(t int64) bool) (all uint64) {
	for i := range w.charges {
		if c := &w.charges[i]; w.holds(c.t, t) && meant(c.t) {
			taken := min(cost-all, c.cost)
			c.cost -= taken
			all += taken
		}
	}
	return all
}

// layouts are what the wall clock shows of the periods of a calendar, and of those that are
// shorter than a day at which offset: an hour that is shown twice is two.
var layouts = map[ratelimit.Period]string{
	ratelimit.PerSecond: "2006-01-02 15:04:05 -07:00:00",
	ratelimit.PerMinute: "2006-01-02 15:04 -07:00:00",
	ratelimit.PerHour:   "2006-01-02 15 -07:00:00",
	ratelimit.PerDay:    "2006-01-02",
	ratelimit.PerMonth:  "2006-01",
}

// shows returns the period of a calendar at t.
func (w *window) shows(t int64) string {
	at := time.Unix(0, t).In(cmp.Or(w.rule.Zone, time.UTC))
	if w.limit.Per == ratelimit.PerWeek {
		return fmt.Sprint(at.ISOWeek())
	}
	return at.Format(layouts[w.limit.Per])
}
