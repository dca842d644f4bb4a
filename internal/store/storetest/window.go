package storetest

import (
	"math/big"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A window is how one limit counts one key, by the definition of its algorithm:
// slow, and without structure in common with any store. Times never go back.
type window interface {
	// used returns how much is used at t, rounded up.
	used(t int64) uint64
	charge(t int64, cost uint64)
	// refund takes back at t what was charged at the time at.
	refund(t, at int64, cost uint64)
	// refundOldest takes back at t up to cost of what is counted, the oldest
	// first, and returns how much.
	refundOldest(t int64, cost uint64) uint64
	clone() window
}

// newWindow returns the window of l under a, with nothing counted.
func newWindow(r *ratelimit.Rule, l ratelimit.Limit, resolution int64) window {
	span := int64(l.Span)
	width := span / 64
	if span%60 == 0 {
		width = span / 60
	}
	switch a := r.Algorithm; {
	case a == ratelimit.Exact, a == ratelimit.InFlight, a == ratelimit.Sliding && l.N <= 128:
		return &trueWindow{span: span}
	case a == ratelimit.Sliding:
		return &spillWindow{slots: slotWindow{span: span, width: width, resolution: resolution}}
	case a == ratelimit.Weighted:
		return &slotWindow{span: span, width: width, resolution: resolution, weighted: true}
	case a == ratelimit.TwoBucket:
		return &slotWindow{span: span, width: span, resolution: resolution, weighted: true}
	case a == ratelimit.Fixed:
		return &fixedWindow{span: span}
	case a == ratelimit.Calendar:
		return &calendarWindow{limit: l, zone: r.Zone}
	}
	return newBucket(l)
}

// most returns how much a limit lets be used: its burst or N. A limit of 0 refuses
// all.
func most(l ratelimit.Limit) uint64 {
	if l.N != 0 && l.Burst != 0 {
		return l.Burst
	}
	return l.N
}

// A charge is what was counted at one time.
type charge struct {
	t    int64
	cost uint64
}

// charges are all that was charged and not taken back, oldest first.
type charges []charge

func (cs *charges) add(t int64, cost uint64) { *cs = append(*cs, charge{t, cost}) }

func (cs charges) clone() charges { return append(charges(nil), cs...) }

// take takes back up to cost of what was charged at times that are in, the oldest
// first, and returns how much.
func (cs charges) take(cost uint64, in func(t int64) bool) (all uint64) {
	for i := range cs {
		if c := &cs[i]; in(c.t) {
			taken := min(cost-all, c.cost)
			c.cost -= taken
			all += taken
		}
	}
	return all
}

// forget drops what was charged at t or before: it is for the sake of speed.
func (cs *charges) forget(t int64) {
	n := 0
	for n < len(*cs) && (*cs)[n].t <= t {
		n++
	}
	if n > 64 {
		*cs = (*cs)[n:].clone()
	}
}

// trueWindow counts what was charged in (t-span, t].
type trueWindow struct {
	charges
	span int64
}

func (w *trueWindow) used(t int64) (n uint64) {
	for i := len(w.charges) - 1; i >= 0 && w.charges[i].t > t-w.span; i-- {
		n += w.charges[i].cost
	}
	return n
}

func (w *trueWindow) charge(t int64, cost uint64) {
	w.forget(t - w.span)
	w.add(t, cost)
}

func (w *trueWindow) refund(t, at int64, cost uint64) {
	w.take(cost, func(c int64) bool { return c == at && c > t-w.span })
}

func (w *trueWindow) refundOldest(t int64, cost uint64) uint64 {
	return w.take(cost, func(c int64) bool { return c > t-w.span })
}

func (w *trueWindow) clone() window { return &trueWindow{w.charges.clone(), w.span} }

// fixedWindow counts from the first event on.
type fixedWindow struct {
	span, start int64
	n           uint64
}

func (w *fixedWindow) used(t int64) uint64 {
	if w.n > 0 && t-w.start < w.span {
		return w.n
	}
	return 0
}

func (w *fixedWindow) charge(t int64, cost uint64) {
	n := w.used(t)
	if n == 0 {
		w.start = t
	}
	w.n = n + cost
}

func (w *fixedWindow) refund(t, at int64, cost uint64) {
	if n := w.used(t); at >= w.start {
		w.n = n - min(cost, n)
	}
}

func (w *fixedWindow) refundOldest(t int64, cost uint64) uint64 {
	taken := min(cost, w.used(t))
	w.n = w.used(t) - taken
	return taken
}

func (w *fixedWindow) clone() window { c := *w; return &c }

// calendarWindow counts while the wall clock shows the same period.
type calendarWindow struct {
	limit ratelimit.Limit
	zone  *time.Location
	at    int64
	n     uint64
}

// shows is what the wall clock shows of a period, and in those that are shorter
// than a day, at which offset: an hour that is shown twice is two.
type shows struct {
	year, part, hour, minute, second, offset int
}

func (w *calendarWindow) shows(t int64) (s shows) {
	zone := w.zone
	if zone == nil {
		zone = time.UTC
	}
	at := time.Unix(0, t).In(zone)
	s = shows{year: at.Year(), part: at.YearDay(), hour: at.Hour(), minute: at.Minute(), second: at.Second()}
	_, s.offset = at.Zone()
	per := w.limit.Per
	if per == 0 {
		per = map[time.Duration]ratelimit.Period{
			time.Second: ratelimit.PerSecond, time.Minute: ratelimit.PerMinute, time.Hour: ratelimit.PerHour,
			24 * time.Hour: ratelimit.PerDay, 7 * 24 * time.Hour: ratelimit.PerWeek,
		}[w.limit.Span]
	}
	switch per {
	case ratelimit.PerMonth:
		return shows{year: s.year, part: int(at.Month())}
	case ratelimit.PerWeek:
		year, week := at.ISOWeek()
		return shows{year: year, part: week}
	case ratelimit.PerDay:
		return shows{year: s.year, part: s.part}
	case ratelimit.PerHour:
		s.minute, s.second = 0, 0
	case ratelimit.PerMinute:
		s.second = 0
	}
	return s
}

func (w *calendarWindow) used(t int64) uint64 {
	if w.n > 0 && w.shows(t) == w.shows(w.at) {
		return w.n
	}
	return 0
}

func (w *calendarWindow) charge(t int64, cost uint64) {
	w.n = w.used(t) + cost
	w.at = t
}

func (w *calendarWindow) refund(t, at int64, cost uint64) {
	if w.shows(at) == w.shows(t) {
		n := w.used(t)
		w.n = n - min(cost, n)
		w.at = t
	}
}

func (w *calendarWindow) refundOldest(t int64, cost uint64) uint64 {
	taken := min(cost, w.used(t))
	w.n, w.at = w.used(t)-taken, t
	return taken
}

func (w *calendarWindow) clone() window { c := *w; return &c }

// bucket is GCRA and LeakyBucket: a level that drains N in a span. It
// is kept exactly, in units of which a cost of one is a span, and N drain in a
// nanosecond.
type bucket struct {
	span, n *big.Int
	full    *big.Int // as of at
	burst   *big.Int // of costs
	at      int64
}

func newBucket(l ratelimit.Limit) *bucket {
	return &bucket{
		span: big.NewInt(int64(l.Span)), n: new(big.Int).SetUint64(l.N), full: new(big.Int),
		burst: new(big.Int).SetUint64(most(l)),
	}
}

// level returns how full the bucket is at t.
func (b *bucket) level(t int64) *big.Int {
	if b.full.Sign() == 0 {
		return new(big.Int)
	}
	drained := new(big.Int).Mul(b.n, big.NewInt(t-b.at))
	level := new(big.Int).Sub(b.full, drained)
	if level.Sign() < 0 {
		level.SetInt64(0)
	}
	return level
}

func (b *bucket) used(t int64) uint64 { return ceilDiv(b.level(t), b.span) }

// charge counts at most as much again beyond the burst, or N if that is more.
func (b *bucket) charge(t int64, cost uint64) {
	level := b.level(t)
	level.Add(level, new(big.Int).Mul(new(big.Int).SetUint64(cost), b.span))
	if most := b.most(); level.Cmp(most) > 0 {
		level = most
	}
	b.full, b.at = level, t
}

// most returns how full the bucket gets at most.
func (b *bucket) most() *big.Int {
	most := new(big.Int).Set(b.n)
	if b.burst.Cmp(most) > 0 {
		most.Set(b.burst)
	}
	return most.Add(most, b.burst).Mul(most, b.span)
}

// refund takes back what was charged, less what may have drained of it since.
func (b *bucket) refund(t, at int64, cost uint64) {
	back := new(big.Int).Mul(new(big.Int).SetUint64(cost), b.span)
	back.Sub(back, new(big.Int).Mul(b.n, big.NewInt(t-at)))
	if back.Sign() <= 0 {
		return
	}
	level := b.level(t)
	if level.Sub(level, back); level.Sign() < 0 {
		level.SetInt64(0)
	}
	b.full, b.at = level, t
}

// refundOldest leaves whole costs: what has drained of the oldest is not given back.
func (b *bucket) refundOldest(t int64, cost uint64) uint64 {
	used := b.used(t)
	taken := min(cost, used)
	if taken > 0 {
		b.full, b.at = new(big.Int).Mul(new(big.Int).SetUint64(used-taken), b.span), t
	}
	return taken
}

// delay returns how long after t the event charged last waits for its turn.
func (b *bucket) delay(t int64) time.Duration {
	ahead := b.level(t)
	if ahead.Sub(ahead, b.span); ahead.Sign() <= 0 {
		return 0
	}
	return time.Duration(ceilDiv(ahead, b.n))
}

func (b *bucket) clone() window {
	c := *b
	return &c // a bucket replaces its numbers, and changes none
}

// ceilDiv returns a/b rounded up; b is above 0.
func ceilDiv(a, b *big.Int) uint64 {
	q, r := new(big.Int).QuoRem(a, b, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsUint64() {
		return 1<<64 - 1
	}
	return q.Uint64()
}

// floor returns a/b rounded down; b is above 0.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
