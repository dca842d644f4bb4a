package limit

import (
	"iter"
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

// Never is the [Counter.Wait] of a cost that does not fit at any time.
const Never time.Duration = -1

// Inline is how many times of a log lie in the record, before its block: what
// makes the record of a rule with one limit, with its head, two words of key and
// the newest time, one cache line.
const Inline = 3

// A Counter is one limit, laid out in words of a record. It has no state but for
// what a calendar remembers of its zone, and is safe for concurrent use on
// different words. No method allocates, but for blocks and a new period.
//
// Where a method takes w, b and t, w are the counter's words of one record, which
// is locked; b is the table's [Counter.Blocks]; t is the time
// of the last Advance of w.
//
// Make one with [New]; the zero Counter refuses all, like one for N = 0.
type Counter struct {
	form     form
	kind     Algorithm
	n, most  uint64
	span     int64
	ring     slotRing
	spill    spillRing
	buckets  buckets
	level    level
	fixed    fixed
	calendar *calendar
	config   Config
}

// A form is how the words are laid out; kinds share some.
type form uint8

const (
	formNone form = iota // N is 0
	formLog
	formSpill
	formRing
	formBuckets
	formLevel
	formFixed
	formCalendar
)

// New returns the Counter of c. Its error names the field that is wrong, its value
// and what is allowed.
func New(c Config) (Counter, error) {
	if err := c.validate(); err != nil {
		return Counter{}, err
	}
	m := Counter{kind: c.Algorithm, n: c.N, most: c.N, span: int64(c.Span), config: c}
	resolution := max(int64(c.Resolution), 1)
	switch {
	case c.N == 0:
	case c.Algorithm == Exact, c.Algorithm == InFlight, c.Algorithm == Sliding && c.N <= SlidingExact:
		m.form = formLog
	case c.Algorithm == Sliding:
		m.form = formSpill
		m.spill = newSpillRing(c.N, m.span, resolution)
	case c.Algorithm == Weighted:
		m.form = formRing
		m.ring = newSlotRing(c.N, m.span, resolution)
		m.ring.weighted = true
	case c.Algorithm == TwoBucket:
		m.form = formBuckets
		m.buckets = newBuckets(m.span, resolution)
	case c.Algorithm == Fixed:
		m.form = formFixed
		m.fixed = fixed{m.span}
	case c.Algorithm == Calendar:
		m.form = formCalendar
		m.calendar = &calendar{period: c.Period, zone: c.Zone}
		if c.Zone == nil {
			m.calendar.zone = time.UTC
		}
	default:
		if c.Burst != 0 {
			m.most = c.Burst
		}
		m.form = formLevel
		m.level = newLevel(c.N, m.most, m.span)
	}
	return m, nil
}

// Words returns how many words of a record m takes.
func (m *Counter) Words() int {
	switch m.form {
	case formNone:
		return 0
	case formLog:
		return 1 + min(Inline, int(m.n))
	case formSpill:
		return 1 + Inline
	case formRing:
		return ringHead + m.ring.words()
	case formLevel:
		return m.level.words()
	}
	return 2
}

// Blocks returns the Blocks of a table whose records m counts in, which take
// their memory from that budget, or nil if m needs none.
func (m *Counter) Blocks(budget *keytable.Budget) *keytable.Blocks {
	switch m.form {
	case formLog:
		return keytable.NewBlocks(int(m.n), Inline, budget)
	case formSpill:
		return keytable.NewSpill(Inline, m.spill.words(), budget)
	}
	return nil
}

// Log reports whether m counts in a log of its Blocks, see [keytable.NewBlocks].
func (m *Counter) Log() bool { return m.form == formLog }

// Most returns how much can be used: N, or the burst of the kinds that have one.
func (m *Counter) Most() uint64 { return m.most }

// Advance forgets what has left the window at t and returns how much is then
// used: what the window holds, or how full the bucket is, rounded up. It is above
// Most only after a Charge beyond it.
//
// The cost is the same for all counts, but for what is forgotten, each slot and
// each time once.
func (m *Counter) Advance(w []uint64, b *keytable.Blocks, t int64) uint64 {
	switch m.form {
	case formLog:
		return uint64(b.Expire(w, t-m.span))
	case formSpill:
		return m.spill.advance(w, b, t)
	case formRing:
		return m.ring.advance(w, w[ringHead:], t)
	case formBuckets:
		return m.buckets.advance(w, t)
	case formLevel:
		return m.level.used(w, t)
	case formFixed:
		return m.fixed.advance(w, t)
	case formCalendar:
		return m.calendar.advance(w, t)
	}
	return 0
}

// Used returns how much is used, as Advance did or as it is after a Charge.
func (m *Counter) Used(w []uint64, b *keytable.Blocks, t int64) uint64 {
	switch m.form {
	case formLog:
		return uint64(b.Len(w))
	case formSpill:
		return m.spill.used(w, t)
	case formRing:
		return m.ring.used(w, w[ringHead:], t)
	case formBuckets:
		return m.buckets.used(w, t)
	case formLevel:
		return m.level.used(w, t)
	case formFixed, formCalendar:
		return w[1]
	}
	return 0
}

// Room sees to it that cost can be charged, and reports false if that takes
// memory that the budget of b has not. Only a log takes any: Sliding above
// SlidingExact can do without. It may take what is then not used; that is given
// back when the log next is empty.
func (m *Counter) Room(w []uint64, b *keytable.Blocks, cost uint64) bool {
	return m.form != formLog || b.Room(w, int(min(cost, m.n)))
}

// Fits returns how much of cost there is Room for in words that have nothing
// counted, and makes it.
func (m *Counter) Fits(w []uint64, b *keytable.Blocks, cost uint64) uint64 {
	if m.form != formLog {
		return cost
	}
	return uint64(b.Fits(w, int(min(cost, m.n))))
}

// Charge counts cost at t, also beyond the limit: counts saturate, a log keeps
// the newest N, and a bucket counts at most its burst, or N if that is more, beyond
// its burst. It cannot fail
// after Room for as much; without, a log may forget its oldest times.
func (m *Counter) Charge(w []uint64, b *keytable.Blocks, t int64, cost uint64) {
	switch m.form {
	case formLog:
		for range min(cost, m.n+1) { // one more than there is room for is seen to be lost
			b.Add(w, t)
		}
	case formSpill:
		m.spill.charge(w, b, t, cost)
	case formRing:
		m.ring.charge(w, w[ringHead:], t, cost)
	case formBuckets:
		m.buckets.charge(w, cost)
	case formLevel:
		m.level.charge(w, t, cost)
	case formFixed:
		m.fixed.charge(w, t, cost)
	case formCalendar:
		m.calendar.charge(w, t, cost)
	}
}

// Push is Advance and a Charge of one at t, and returns how much is then used,
// where that is one more time in the words of a Sliding above SlidingExact: it
// always fits, and is counted for a span. ok is false, and nothing has changed,
// elsewhere.
func (m *Counter) Push(w []uint64, b *keytable.Blocks, t int64) (used uint64, ok bool) {
	if m.form != formSpill || !timed(w) || m.spill.advance(w, b, t) == Inline {
		return 0, false
	}
	push(w, t)
	return w[0] & spillTimes, true
}

// Cut reports whether a bucket is so far beyond its burst at t that the last Charge
// may have been counted in part only. Who gives back with [Counter.RefundOldest] has
// to know of each time until the bucket is empty, for the words do not.
func (m *Counter) Cut(w []uint64, t int64) bool { return m.form == formLevel && m.level.cut(w, t) }

// Refund takes back at t what an earlier Charge counted at the time at, from the
// slot or the times it went to, and returns how much that was: nothing if it has
// left the window. Afterwards no less is used than if it had never been charged.
// It is for the caller to see to it that nothing is taken back twice.
//
// Where a count may have been cut, because it saturated or went beyond what is
// kept, nothing is taken back. What a bucket has drained since is not either.
func (m *Counter) Refund(w []uint64, b *keytable.Blocks, t, at int64, cost uint64) uint64 {
	switch m.form {
	case formLog:
		if b.Lost(w) {
			return 0
		}
		return uint64(b.Remove(w, at, int(min(cost, m.n))))
	case formSpill:
		return m.spill.refund(w, b, t, at, cost)
	case formRing:
		return m.ring.refund(w, w[ringHead:], at, cost)
	case formBuckets:
		return m.buckets.refund(w, t, at, cost)
	case formLevel:
		return m.level.refund(w, t, at, cost)
	case formFixed:
		return m.fixed.refund(w, at, cost)
	case formCalendar:
		return m.calendar.refund(w, at, cost)
	}
	return 0
}

// Wait returns how long after t cost fits under n, if nothing is added: 0 if it
// does now, [Never] if it never will. It is exact: a nanosecond earlier it does
// not fit. The kinds with a burst take that for n.
func (m *Counter) Wait(w []uint64, b *keytable.Blocks, t int64, n, cost uint64) time.Duration {
	if m.form == formLevel || m.form == formNone {
		n = m.most
	}
	if cost > n {
		return Never
	}
	used := m.Used(w, b, t)
	if cost == 0 || used <= n-cost {
		return 0
	}
	return time.Duration(m.until(w, b, t, used, n-cost) - t)
}

// Reset returns how long after t nothing is used any more, if nothing is added.
func (m *Counter) Reset(w []uint64, b *keytable.Blocks, t int64) time.Duration {
	used := m.Used(w, b, t)
	if used == 0 {
		return 0
	}
	return time.Duration(m.until(w, b, t, used, 0) - t)
}

// Keeps returns how long after t a Charge of cost at t would be counted, for the
// kinds that have Blocks.
func (m *Counter) Keeps(w []uint64, b *keytable.Blocks, t int64, cost uint64) time.Duration {
	if m.form == formSpill {
		return m.spill.keeps(w, t, cost)
	}
	return time.Duration(m.span)
}

// until returns when no more than most is used; at t, used is, and that is more.
func (m *Counter) until(w []uint64, b *keytable.Blocks, t int64, used, most uint64) int64 {
	switch m.form {
	case formLog:
		switch most {
		case 0:
			return b.Newest(w) + m.span
		case used - 1:
			return int64(w[1]) + m.span // the oldest
		}
		return b.At(w, int(used-most)-1) + m.span
	case formSpill:
		return m.spill.until(w, b, most)
	case formRing:
		return m.ring.until(w, w[ringHead:], most)
	case formBuckets:
		return m.buckets.until(w, most)
	case formLevel:
		return m.level.until(w, t, most)
	case formFixed:
		return m.fixed.until(w)
	case formCalendar:
		return m.calendar.until(w)
	}
	return t
}

// Delay returns how long after t the event that was charged last has to wait for
// its turn in a LeakyBucket, that of its last unit if it cost more than one. In
// all other kinds no event waits.
func (m *Counter) Delay(w []uint64, _ *keytable.Blocks, t int64) time.Duration {
	if m.kind != LeakyBucket || m.form == formNone {
		return 0
	}
	at, rest := m.level.empty(w, t)
	return time.Duration(max(m.level.before(at, rest, 1)-t, 0))
}

// Clear forgets everything and gives blocks back.
func (m *Counter) Clear(w []uint64, b *keytable.Blocks) {
	if b != nil {
		b.Clear(w)
		return
	}
	clear(w[:m.Words()])
}

// Each yields what m holds, as times no later than t and counts, oldest first. To
// charge a counter of another Config with it, at these times, is to carry the
// counts over: see [Counter.Carry].
//
// A time is that of the event, or the latest it may have been: the last moment
// of a slot, or t. What a bucket has drained is not known any more; what is in it
// is yielded at t.
func (m *Counter) Each(w []uint64, b *keytable.Blocks, t int64) iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		switch m.form {
		case formLog:
			eachTime(w, b, yield)
		case formSpill:
			m.spill.each(w, b, t, yield)
		case formRing:
			m.ring.each(w, w[ringHead:], t, yield)
		case formBuckets:
			m.buckets.each(w, t, yield)
		default:
			if used := m.Used(w, b, t); used > 0 {
				if m.form == formFixed {
					t = int64(w[0]) // the window goes on
				}
				yield(t, used)
			}
		}
	}
}

// eachTime yields the times of a log, equal ones together.
func eachTime(w []uint64, b *keytable.Blocks, yield func(int64, uint64) bool) {
	for i, n := 0, b.Len(w); i < n; {
		at, count := b.At(w, i), 1
		for i+count < n && b.At(w, i+count) == at {
			count++
		}
		if !yield(at, uint64(count)) {
			return
		}
		i += count
	}
}
