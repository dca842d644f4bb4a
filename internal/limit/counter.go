package limit

import (
	"math"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// Never is the [Counter.Wait] of a cost that does not fit at any time: the longest duration.
const Never time.Duration = math.MaxInt64

// Inline is how many times of a log lie in the record, before its block: what
// makes the record of a rule with one limit, with its head, two words of key and
// the newest time, one cache line.
const Inline = 3

// A window counts one limit in the words w of a record. All but words are called
// with the time of the last advance; each that takes blocks may ignore them.
type window interface {
	words() int
	advance(w []uint64, b *keytable.Blocks, t int64) (used uint64)
	used(w []uint64, b *keytable.Blocks, t int64) uint64
	charge(w []uint64, b *keytable.Blocks, t int64, cost uint64)
	refund(w []uint64, b *keytable.Blocks, t, at int64, cost uint64) (taken uint64)
	refundOldest(w []uint64, b *keytable.Blocks, t int64, cost uint64) (taken uint64)

	// until returns when no more than most is used; at t, used is, and that is more.
	until(w []uint64, b *keytable.Blocks, t int64, used, most uint64) int64

	// each is Counter.Each.
	each(w []uint64, b *keytable.Blocks, t int64, yield func(int64, uint64) bool)

	// appendState is Counter.AppendState, where something is used, and readState
	// Counter.ReadState, which clears w if r has failed.
	appendState(dst []byte, w []uint64, b *keytable.Blocks, t int64) []byte
	readState(r *snapshot.Reader, w []uint64, b *keytable.Blocks, t, now int64)
}

// A Counter is one limit, laid out in words of a record. It has no state but for
// what a calendar remembers of its zone, and is safe for concurrent use on
// different words. No method allocates, but for blocks and a new period.
//
// Where a method takes w, b and t, w are the counter's words of one record, which
// is locked; b is the table's [Counter.Blocks]; t is the time
// of the last Advance of w.
//
// Make one with [New]; the zero Counter is not usable.
type Counter struct {
	window window
	config Config
	most   uint64

	// The windows with methods of their own; nil if it is another.
	log      *log
	sliding  *sliding
	level    *level
	variable *variable
}

// New returns the Counter of c. Its error names the field that is wrong, its value
// and what is allowed.
func New(c Config) (Counter, error) {
	if err := c.validate(); err != nil {
		return Counter{}, err
	}
	m := Counter{config: c, most: c.Most(), window: nothing{}}
	switch {
	case c.N == 0:
	case c.Distinct:
		m.window = newDistinct(&c)
	case c.AtMost > 0:
		m.variable = newVariable(&c)
		m.window = m.variable
	default:
		m.window = methods[c.Algorithm].window(&c)
	}
	m.log, _ = m.window.(*log)
	m.sliding, _ = m.window.(*sliding)
	m.level, _ = m.window.(*level)
	return m, nil
}

// Words returns how many words of a record m takes.
func (m *Counter) Words() int { return m.window.words() }

// Blocks returns the Blocks of a table whose records m counts in, which take
// their memory from that budget, or nil if m needs none.
func (m *Counter) Blocks(budget *keytable.Budget) *keytable.Blocks {
	switch {
	case m.log != nil:
		return keytable.NewBlocks(int(m.log.n), Inline, budget)
	case m.sliding != nil:
		return keytable.NewSpill(Inline, m.sliding.blockWords(), budget)
	}
	if d, ok := m.window.(*distinct); ok {
		return d.blocks(budget)
	}
	return nil
}

// Most returns how much can be used: N, or the burst of the algorithms that have one.
func (m *Counter) Most() uint64 { return m.most }

// Advance removes what has left the window at t and returns how much is then
// used: what the window holds, or how full the bucket is, rounded up. It is above
// Most only after a Charge beyond it.
//
// The cost is the same for all counts, but for what is removed, each slot and
// each time once.
func (m *Counter) Advance(w []uint64, b *keytable.Blocks, t int64) uint64 {
	switch {
	case m.log != nil:
		return m.log.advance(w, b, t)
	case m.sliding != nil:
		return m.sliding.advance(w, b, t)
	}
	return m.window.advance(w, b, t)
}

// Used returns how much is used, as Advance did or as it is after a Charge.
func (m *Counter) Used(w []uint64, b *keytable.Blocks, t int64) uint64 {
	if m.log != nil {
		return uint64(b.Len(w))
	}
	return m.window.used(w, b, t)
}

// Reserve reserves memory for cost, and reports false if the budget of b has not
// enough. Only a log needs any: Sliding above SlidingExact can do without. It may take
// what is then not used; that is given back when the log next is empty.
func (m *Counter) Reserve(w []uint64, b *keytable.Blocks, cost uint64) bool {
	return m.log == nil || b.Reserve(w, int(min(cost, m.log.n)))
}

// Fits returns how much of cost can be reserved in words that have nothing
// counted, and reserves it.
func (m *Counter) Fits(w []uint64, b *keytable.Blocks, cost uint64) uint64 {
	if m.log == nil {
		return cost
	}
	return uint64(b.Fits(w, int(min(cost, m.log.n))))
}

// Charge counts cost at t, also beyond the limit: counts saturate, a log keeps
// the newest N, and a bucket counts at most its burst, or N if that is more, beyond
// its burst. It cannot fail after Reserve of as much; without, a log may drop its
// oldest times.
func (m *Counter) Charge(w []uint64, b *keytable.Blocks, t int64, cost uint64) {
	if m.sliding == nil || !m.sliding.addNewest(w, t, cost) {
		m.window.charge(w, b, t, cost)
	}
}

// Take is Advance, and Reserve and Charge if cost is no more than what is left of n, which
// is Most or less. It returns what is then left. charged is false, and nothing is
// charged, if cost is more than is left, or if there is no memory for it.
func (m *Counter) Take(w []uint64, b *keytable.Blocks, t int64, n, cost uint64) (left uint64, charged bool) {
	var used uint64
	switch {
	case m.log != nil:
		used = uint64(b.Expire(w, t-m.log.span))
	case m.sliding != nil:
		used = m.sliding.advance(w, b, t)
	default:
		used = m.window.advance(w, b, t)
	}
	left = n - min(used, n)
	switch {
	case cost > left:
		return left, false
	case cost == 1 && m.log != nil:
		if !b.Push(w, t) {
			return left, false
		}
		return left - 1, true
	case cost == 1 && m.sliding != nil && fits(w, 1):
		push(w, t)
		return left - 1, true
	case m.sliding != nil && m.sliding.addNewest(w, t, cost):
		return left - cost, true
	case !m.Reserve(w, b, cost):
		return left, false
	}
	m.Charge(w, b, t, cost)
	return left - cost, true
}

// Count is Advance, Reserve and Charge: it counts cost at t, beyond the limit too. It
// returns how much is then used. kept is false if there was no memory for all of cost,
// or for the times before.
func (m *Counter) Count(w []uint64, b *keytable.Blocks, t int64, cost uint64) (used uint64, kept bool) {
	switch {
	case cost == 1 && m.log != nil:
		b.Expire(w, t-m.log.span)
		if b.Push(w, t) {
			return uint64(b.Len(w)), true
		}
	default:
		m.Advance(w, b, t)
	}
	kept = m.Reserve(w, b, cost)
	m.Charge(w, b, t, cost)
	return m.Used(w, b, t), kept
}

// CountNewest is Count if t is in the newest slot of Sliding and no slot has left the
// window: it then adds cost to the slot. Otherwise it reports false and changes nothing.
func (m *Counter) CountNewest(w []uint64, t int64, cost uint64) (used uint64, ok bool) {
	if m.sliding == nil || t >= int64(w[ringLeaves]) || !m.sliding.addNewest(w, t, cost) {
		return 0, false
	}
	return w[ringSum], true
}

// Cut reports whether a bucket is so far beyond its burst at t that the last Charge
// may have been counted in part only. A caller of [Counter.RefundOldest] must
// remember this until the bucket is empty, for the words do not.
func (m *Counter) Cut(w []uint64, t int64) bool {
	return m.level != nil && m.level.cut(w, t) || m.variable != nil && m.variable.cut(w, t)
}

// SetN makes n the N of a bucket from t on: by that it drains until the next SetN. It does
// nothing unless the Config has AtMost, which n must not exceed. 0 is N of the Config.
func (m *Counter) SetN(w []uint64, t int64, n uint64) {
	if m.variable != nil {
		m.variable.setN(w, t, n)
	}
}

// Refund takes back at t what an earlier Charge counted at the time at, from the
// slot or the times it went to, and returns how much that was: nothing if it has
// left the window. Afterwards no less is used than if it had never been charged.
// The caller must take care that nothing is taken back twice.
//
// Where a count may have been cut, because it saturated or went beyond what is
// kept, nothing is taken back. What a bucket has drained since is not either.
func (m *Counter) Refund(w []uint64, b *keytable.Blocks, t, at int64, cost uint64) uint64 {
	return m.window.refund(w, b, t, at, cost)
}

// RefundOldest takes back at t up to cost of what is counted, the oldest first, and
// returns how much: for a caller that does not know when it was charged.
//
// It gives no credit: whichever cost of what is still counted is meant, at no later time
// less is used than if just that had never been charged, whatever comes until then. The
// proof is in docs/dev/proofs.md.
//
// It must not be called for a bucket that did not count all of a charge because it was
// too far beyond the burst, until it has been empty since, see [Counter.Cut]: what was
// not counted would be given back as well. A Fixed window whose first event is
// meant keeps its beginning. Where a count may have been cut, nothing is taken of
// it or of what is newer.
func (m *Counter) RefundOldest(w []uint64, b *keytable.Blocks, t int64, cost uint64) uint64 {
	return m.window.refundOldest(w, b, t, cost)
}

// Wait returns how long after t cost fits under n, if nothing is added: 0 if it
// does now, [Never] if it never will. It is exact: a nanosecond earlier it does
// not fit. Algorithms with a burst ignore n and use the burst.
func (m *Counter) Wait(w []uint64, b *keytable.Blocks, t int64, n, cost uint64) time.Duration {
	if m.level != nil || m.most == 0 {
		n = m.most
	}
	switch {
	case cost > n:
		return Never
	case cost == 0:
		return 0
	}
	return m.until(w, b, t, n-cost)
}

// Reset returns how long after t nothing is used any more, if nothing is added.
func (m *Counter) Reset(w []uint64, b *keytable.Blocks, t int64) time.Duration {
	switch {
	case m.log != nil && b.Len(w) > 0:
		return time.Duration(b.Newest(w) + m.log.span - t)
	case m.sliding != nil && listed(w) && w[0]&listLen > 0:
		return time.Duration(b.Newest(w) + m.sliding.list.span - t)
	case m.sliding != nil && slotted(w) && w[ringPlace]&ringNewestEmpty == 0:
		return time.Duration(m.sliding.ring.leaves(w, 0) - t)
	}
	return m.until(w, b, t, 0)
}

// until returns how long after t no more than most is used, if nothing is added.
func (m *Counter) until(w []uint64, b *keytable.Blocks, t int64, most uint64) time.Duration {
	if m.log != nil {
		if used := uint64(b.Len(w)); used > most {
			return time.Duration(m.log.until(w, b, t, used, most) - t)
		}
		return 0
	}
	if used := m.window.used(w, b, t); used > most {
		return time.Duration(m.window.until(w, b, t, used, most) - t)
	}
	return 0
}

// Keeps returns how long after t a Charge of cost at t would be counted, for the
// algorithms that have Blocks.
func (m *Counter) Keeps(w []uint64, b *keytable.Blocks, t int64, cost uint64) time.Duration {
	if m.sliding != nil {
		return m.sliding.keeps(w, t, cost)
	}
	return m.config.Span
}

// Delay returns how long after t the event that was charged last has to wait for
// its turn in a LeakyBucket, that of its last unit if it cost more than one. In
// all other algorithms no event waits.
func (m *Counter) Delay(w []uint64, _ *keytable.Blocks, t int64) time.Duration {
	switch {
	case m.config.Algorithm != LeakyBucket:
		return 0
	case m.variable != nil:
		return time.Duration(m.variable.until(w, nil, t, 0, 1) - t)
	case m.level == nil:
		return 0
	}
	at, rest := m.level.empty(w, t)
	return time.Duration(max(m.level.before(at, rest, 1)-t, 0))
}

// Clear removes everything and gives blocks back.
func (m *Counter) Clear(w []uint64, b *keytable.Blocks) {
	if b != nil {
		b.Clear(w)
		return
	}
	clear(w[:m.Words()])
}
