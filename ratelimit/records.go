package ratelimit

import (
	"iter"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/sketch"
	"github.com/lately-go/lately/internal/limit"
)

// records is the keyed table of one rule: what it holds of each key, and how.
//
// The words of a record are the newest time it was judged at, as keytable.Stamp has
// it, and then those of each counter. Its flag says that one of its buckets was cut,
// see limit.Counter.Cut, and that not all have been empty since.
type records struct {
	keytable.Plain

	layout   layout
	number   uint64 // in the order in which the tables were made
	table    *keytable.Table
	bans     *ban.Table
	rule     uint32        // in bans
	banned   *atomic.Int64 // bans of the rule
	budget   *keytable.Budget
	counters []recordCounter // of the limits, then of the ban
	limits   []recordCounter // the first of these
	ban      *recordCounter  // the last, or nil
	words    int

	// now is the newest time at which a key was added: a record whose
	// windows are empty then may be evicted.
	now atomic.Int64

	// expired is the newest time at which a record was evicted because its windows
	// were empty. A key that is added is judged at expired at the earliest, so one
	// that comes back with an earlier time finds its windows as empty as they were.
	expired atomic.Int64

	// adapt is what the limits follow, or nil.
	adapt atomic.Pointer[adapter]

	// from is the table before, while its keys are being carried over.
	from atomic.Pointer[records]

	resets *resetLog

	copies sync.Pool // *[]uint64, of the words of a record

	sketchBytes atomic.Int64 // taken from the budget
	sketchPlan  []sketch.Config
	sketchMu    sync.Mutex // one makes them
	sketches    atomic.Pointer[[]*sketch.Window]
}

// A recordCounter is a counter with its place in a record.
type recordCounter struct {
	limit.Counter
	at     int
	most   uint64           // of a limit, how much may be used: N, or its burst
	blocks *keytable.Blocks // or nil
	view   *keytable.Blocks // the same, for a copy of the record
	fixed  bool             // its window begins with its first event
}

const wordNewest = 0

// blockShare is which share of the budget is kept for logs that outgrow their
// record.
const blockShare = 4

// newRecords returns an empty table for a rule of a Set of that many.
func newRecords(m *memory, rule uint32, l layout, rules int) (*records, error) {
	counters, err := l.counters(m.config.Resolution)
	if err != nil {
		return nil, err
	}
	rs := &records{layout: l, number: m.tables, bans: m.bans, rule: rule, banned: m.bans.Of(rule), budget: m.budget, resets: &resetLog{id: m.tables}}
	rs.now.Store(math.MinInt64)
	rs.expired.Store(math.MinInt64)
	rs.copies.New = func() any { return new([]uint64) }
	rs.place(counters)
	keep := int64(0)
	if m.config.Budget != unbounded {
		if rs.gather() != nil {
			keep = m.config.Budget / blockShare
		}
		rs.reserveSketches(m.config.Budget / int64(sketchShare*max(rules, 1)))
	}
	rs.table, err = keytable.New(m.seed, keytable.Config{
		Words: rs.words, Budget: m.budget, Reserve: keep, Policy: rs,
		Gather: rs.gather(),
	})
	return rs, err
}

// place gives each counter its words of a record.
func (rs *records) place(counters []limit.Counter) {
	rs.words = wordNewest + 1
	for i, mt := range counters {
		rm := recordCounter{Counter: mt, at: rs.words, blocks: mt.Blocks(rs.budget)}
		if rm.blocks != nil {
			rm.view = rm.blocks.View()
		}
		if i < len(rs.layout.limits) {
			if rm.most = mt.Most(); !rs.layout.algorithm.Bursts() {
				rm.most = rs.layout.limits[i].N
			}
			rm.fixed = rs.layout.algorithm == Fixed
		}
		rs.words += mt.Words()
		rs.counters = append(rs.counters, rm)
	}
	n := len(rs.layout.limits)
	rs.limits = rs.counters[:n]
	if rs.layout.ban.Span > 0 {
		rs.ban = &rs.counters[n]
	}
}

// Expired reports whether nothing that the record has counted is still in a
// window.
func (rs *records) Expired(r keytable.Record) bool {
	w, now := r.Words(), rs.now.Load()
	over := rs.over(w, keytable.Time(w[wordNewest]), now)
	if over {
		keytable.Raise(&rs.expired, now)
	}
	return over
}

// Weight returns what is evicted first: what was judged longest ago. A key
// at half of a limit or of a ban is protected.
func (rs *records) Weight(r keytable.Record) uint64 {
	buffer := rs.copies.Get().(*[]uint64)
	defer rs.copies.Put(buffer)
	*buffer = append((*buffer)[:0], r.Words()...) // looking must not move the windows on
	w := *buffer
	newest := keytable.Time(w[wordNewest])
	now := max(rs.now.Load(), newest)
	for i := range rs.counters {
		m := &rs.counters[i]
		if used := m.Advance(w[m.at:], m.view, now); used > 0 && used >= (rs.halfOf(i)+1)/2 {
			return math.MaxUint64
		}
	}
	return min(w[wordNewest], math.MaxUint64-1)
}

// halfOf returns N of the i-th counter as it holds now, of which the half protects.
func (rs *records) halfOf(i int) uint64 {
	if i == len(rs.limits) {
		return rs.layout.ban.After
	}
	if rs.layout.algorithm == InFlight {
		return 0 // what is under way must not be evicted at all
	}
	if ad := rs.adapt.Load(); ad != nil {
		return ad.n.Load()
	}
	return rs.limits[i].most
}

// Drop gives back what the record has outside.
func (rs *records) Drop(r keytable.Record) { rs.clear(r.Words()) }

// gather returns what moves the blocks of a record together, or nil if there are none.
func (rs *records) gather() func(r keytable.Record) {
	if !slices.ContainsFunc(rs.counters, func(m recordCounter) bool { return m.blocks != nil }) {
		return nil
	}
	return func(r keytable.Record) {
		w := r.Words()
		for i := range rs.counters {
			if m := &rs.counters[i]; m.blocks != nil {
				m.blocks.Gather(w[m.at:])
			}
		}
	}
}

// clear deletes the counts in the words of a record.
func (rs *records) clear(w []uint64) {
	for i := range rs.counters {
		m := &rs.counters[i]
		m.Clear(w[m.at:], m.blocks)
	}
}

// cutBefore clears the flag of r, which is set, if what was cut before now has left
// since: if nothing is used in any limit.
func (rs *records) cutBefore(r keytable.Record, now int64) {
	w := r.Words()
	for i := range rs.limits {
		m := &rs.limits[i]
		if m.Advance(w[m.at:], m.blocks, now) > 0 {
			return
		}
	}
	r.ClearFlag()
}

// cut sets the flag of r, whose words have been taken over from elsewhere, if one
// of its buckets is at its most.
func (rs *records) cut(r keytable.Record) {
	w := r.Words()
	for i := range rs.limits {
		m := &rs.limits[i]
		if m.Cut(w[m.at:], keytable.Time(w[wordNewest])) {
			r.SetFlag()
		}
	}
}

// release gives all memory of the table back to the budget. Nobody uses it any
// more.
func (rs *records) release() {
	rs.table.Release()
	for i := range rs.counters {
		if b := rs.counters[i].blocks; b != nil {
			b.Release()
		}
	}
	rs.budget.Give(rs.sketchBytes.Swap(0))
}

// carry counts in w, a record of rs without counts, what the words from of a
// record of old hold, see Limiter.Update.
func (rs *records) carry(w []uint64, old *records, from []uint64) {
	for i := range rs.counters {
		if o := rs.heir(i, old); o != nil {
			rs.counters[i].carry(w, o, from)
		}
	}
	w[wordNewest] = max(w[wordNewest], from[wordNewest])
}

// carry counts in the record w, where m has nothing counted, what o holds in the
// record from.
func (m *recordCounter) carry(w []uint64, o *recordCounter, from []uint64) {
	if t := keytable.Time(from[wordNewest]); !m.Carry(w[m.at:], m.blocks, &o.Counter, from[o.at:], o.blocks, t) {
		m.chargeHistory(w, o.Each(from[o.at:], o.blocks, t))
	}
}

// chargeHistory charges a counter of the record w, without counts, with what was counted
// elsewhere, oldest first, and moves the record on to the last. If there is no
// memory for all of it, it takes the newest: the log then takes no more
// until these leave, by when the others have left.
func (m *recordCounter) chargeHistory(w []uint64, counts iter.Seq2[int64, uint64]) {
	total := uint64(0)
	for _, n := range counts {
		total += min(n, math.MaxUint64-total)
	}
	skip, last := total-m.Fits(w[m.at:], m.blocks, total), int64(math.MinInt64)
	if m.fixed {
		for t := range counts {
			last = t // a window that began earlier would end too early
		}
	}
	for t, n := range counts {
		t = max(t, last)
		skipped := min(n, skip)
		skip -= skipped
		if n -= skipped; n > 0 {
			m.Advance(w[m.at:], m.blocks, t)
			m.Charge(w[m.at:], m.blocks, t, n)
			w[wordNewest] = max(w[wordNewest], keytable.Stamp(t))
		}
	}
}

// heir returns the counter of old whose counts the i-th of rs takes over: a ban's
// from a ban's, a limit's as its layout has it. It is nil if there is none.
func (rs *records) heir(i int, old *records) *recordCounter {
	if i >= len(rs.limits) {
		if rs.layout.ban.Of != old.layout.ban.Of || rs.layout.ban.Field != old.layout.ban.Field {
			return nil
		}
		return old.ban
	}
	if j := rs.layout.heir(i, &old.layout); j >= 0 {
		return &old.limits[j]
	}
	return nil
}
