package limit_test

import (
	"math"
	"math/big"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// A model is the definition of a kind: slow, and without structure in common
// with the counter. used may be asked about any time that is not before the last
// charge.
type model interface {
	charge(t int64, cost uint64)
	refund(at int64, cost uint64) // of what was charged, once
	used(t int64) uint64
}

func newModel(m *limit.Counter, c limit.Config) model {
	resolution := max(int64(c.Resolution), 1)
	switch {
	case c.Algorithm == limit.Exact, c.Algorithm == limit.InFlight, c.Algorithm == limit.Sliding && c.N <= 128:
		return &windowModel{span: int64(c.Span)}
	case c.Algorithm == limit.Sliding:
		return &spillModel{slots: slotModel{span: int64(c.Span), width: int64(c.Span) / int64(m.Slots()), resolution: resolution}}
	case c.Algorithm == limit.TwoBucket:
		return &slotModel{span: int64(c.Span), width: int64(c.Span) / int64(m.Slots()), resolution: resolution, weighted: true}
	case c.Algorithm == limit.Fixed:
		return &fixedModel{span: int64(c.Span)}
	case c.Algorithm == limit.Calendar:
		zone := c.Zone
		if zone == nil {
			zone = time.UTC
		}
		return &calendarModel{period: c.Period, zone: zone}
	}
	most := new(big.Int).Mul(new(big.Int).SetUint64(m.Most()), big.NewInt(int64(c.Span)))
	most, rest := most.QuoRem(most, new(big.Int).SetUint64(c.N), new(big.Int))
	more := most.Int64() + int64(rest.Sign())
	return &levelModel{n: c.N, span: c.Span, most: most.Int64() + max(more, int64(c.Span))}
}

type charge struct {
	t    int64
	cost uint64
}

// charges are all that was charged and not taken back.
type charges []charge

func (cs *charges) charge(t int64, cost uint64) { *cs = append(*cs, charge{t, cost}) }

func (cs *charges) refund(at int64, cost uint64) {
	for i := range *cs {
		if c := &(*cs)[i]; c.t == at {
			taken := min(cost, c.cost)
			c.cost -= taken
			cost -= taken
		}
	}
}

// windowModel counts what was charged in (t-span, t].
type windowModel struct {
	charges
	span int64
}

func (m *windowModel) used(t int64) (n uint64) {
	for i := len(m.charges) - 1; i >= 0 && m.charges[i].t > t-m.span; i-- {
		n += m.charges[i].cost
	}
	return n
}

// slotModel counts the slots of which a representable time is in the window:
// in full, or for the part of their representable times that is.
type slotModel struct {
	charges
	span, width, resolution int64
	weighted                bool
}

// multiples returns how many multiples of resolution are in [from, to].
func (m *slotModel) multiples(from, to int64) int64 {
	return floorDiv(to, m.resolution) - floorDiv(from-1, m.resolution)
}

func (m *slotModel) used(t int64) (n uint64) {
	sums := map[int64]uint64{}
	for i := len(m.charges) - 1; i >= 0 && m.charges[i].t > t-m.span-m.width; i-- {
		sums[floorDiv(m.charges[i].t, m.width)] += m.charges[i].cost
	}
	for k, sum := range sums {
		from, to := k*m.width, (k+1)*m.width-1
		inside, all := m.multiples(max(from, t-m.span+1), to), m.multiples(from, to)
		switch {
		case inside <= 0:
		case m.weighted:
			part := new(big.Rat).SetFrac64(inside, all)
			n += ceil(part.Mul(part, new(big.Rat).SetUint64(sum)))
		default:
			n += sum
		}
	}
	return n
}

// spillModel counts times while there are no more of them in the window than
// limit.Inline, and slots from then on until these have all left. What left by its
// time never counts in a slot.
type spillModel struct {
	slots   slotModel // without what has left by its time
	spilled bool
}

func (m *spillModel) charge(t int64, cost uint64) {
	if m.used(t) == 0 {
		m.slots.charges, m.spilled = nil, false
	}
	if used := m.used(t); !m.spilled && (cost > limit.Inline || used+cost > limit.Inline) {
		live := windowModel{m.slots.charges, m.slots.span}
		live.charges = slices.DeleteFunc(live.charges, func(c charge) bool { return c.t <= t-live.span })
		m.slots.charges, m.spilled = live.charges, true
	}
	m.slots.charge(t, cost)
}

func (m *spillModel) refund(at int64, cost uint64) { m.slots.refund(at, cost) }

func (m *spillModel) used(t int64) uint64 {
	if m.spilled {
		return m.slots.used(t)
	}
	times := windowModel{m.slots.charges, m.slots.span}
	return times.used(t)
}

func ceil(r *big.Rat) uint64 {
	n := new(big.Int).Add(r.Num(), r.Denom())
	n.Sub(n, big.NewInt(1))
	n.Div(n, r.Denom())
	if !n.IsUint64() {
		return math.MaxUint64
	}
	return n.Uint64()
}

// fixedModel counts from the first event on.
type fixedModel struct {
	charges
	span int64
}

func (m *fixedModel) used(t int64) (n uint64) {
	start := int64(math.MinInt64)
	for _, c := range m.charges {
		if n == 0 || c.t-start >= m.span {
			start, n = c.t, 0
		}
		n += c.cost
	}
	if n == 0 || t-start >= m.span {
		return 0
	}
	return n
}

// refund ends the window if nothing is left in it: what is taken back has never
// been, unless the window that it began is still there.
func (m *fixedModel) refund(at int64, cost uint64) {
	last := m.charges[len(m.charges)-1].t
	before := m.used(last)
	// Merge the current window into its first charge, which keeps its start.
	start, i := m.charges[len(m.charges)-1].t, len(m.charges)
	for k, n, from := 0, uint64(0), int64(0); k < len(m.charges); k++ {
		if c := m.charges[k]; n == 0 || c.t-from >= m.span {
			from, n, i, start = c.t, 0, k, c.t
		}
		n += m.charges[k].cost
	}
	if at < start {
		return
	}
	m.charges = append(m.charges[:i], charge{start, before - min(cost, before)})
}

// calendarModel counts what was charged while the wall clock showed what it
// shows now.
type calendarModel struct {
	charges
	period limit.Period
	zone   *time.Location
}

func (m *calendarModel) used(t int64) (n uint64) {
	now := shown(m.period, t, m.zone)
	for i := len(m.charges) - 1; i >= 0 && shown(m.period, m.charges[i].t, m.zone) == now; i-- {
		n += m.charges[i].cost
	}
	return n
}

// shown returns what the wall clock shows, down to the period. Hours are shown
// with their offset, so that one shown twice is two.
func shown(p limit.Period, t int64, zone *time.Location) string {
	now := time.Unix(0, t).In(zone)
	switch p {
	case limit.Second:
		return now.Format("2006-01-02 15:04:05 -070000")
	case limit.Minute:
		return now.Format("2006-01-02 15:04 -070000")
	case limit.Hour:
		return now.Format("2006-01-02 15 -070000")
	case limit.Day:
		return now.Format("2006-01-02")
	case limit.Week:
		year, week := now.ISOWeek()
		return time.Date(year, 0, week, 0, 0, 0, 0, time.UTC).String()
	}
	return now.Format("2006-01")
}

// levelModel is a bucket that drains n in a span, in exact rationals, and is
// never so full that it would take longer than most.
type levelModel struct {
	charges
	n    uint64
	span time.Duration
	most int64
	full *big.Rat // after the last charge, unless one was taken back
}

func (m *levelModel) charge(t int64, cost uint64) {
	m.full = m.fill(m.level(t), cost)
	m.charges.charge(t, cost)
}

func (m *levelModel) refund(at int64, cost uint64) {
	m.charges.refund(at, cost)
	m.full = nil
}

// level returns how full the bucket is at t, exactly.
func (m *levelModel) level(t int64) *big.Rat {
	if m.full != nil {
		return m.drain(new(big.Rat).Set(m.full), t-m.charges[len(m.charges)-1].t)
	}
	full, last := new(big.Rat), t
	for i, c := range m.charges {
		if i == 0 {
			last = c.t
		}
		m.drain(full, c.t-last)
		m.fill(full, c.cost)
		last = c.t
	}
	return m.drain(full, t-last)
}

func (m *levelModel) fill(full *big.Rat, cost uint64) *big.Rat {
	full.Add(full, new(big.Rat).SetUint64(cost))
	if most := m.drains(m.most); full.Cmp(most) > 0 {
		full.Set(most)
	}
	return full
}

func (m *levelModel) drain(full *big.Rat, ns int64) *big.Rat {
	full.Sub(full, m.drains(ns))
	if full.Sign() < 0 {
		full.SetInt64(0)
	}
	return full
}

// drains returns how much drains in that time.
func (m *levelModel) drains(ns int64) *big.Rat {
	rate := new(big.Rat).SetFrac(new(big.Int).SetUint64(m.n), big.NewInt(int64(m.span)))
	return rate.Mul(rate, new(big.Rat).SetInt64(ns))
}

func (m *levelModel) used(t int64) uint64 { return ceil(m.level(t)) }
