package ratelimit

import (
	"context"
	"math"
	"slices"

	"github.com/lately-go/lately/internal/keytable"
)

// Update implements [store.Counters]. A rule that counts as before keeps its tables. A
// table that has to be replaced is carried page by page, some hundreds of keys at
// a time, by Update and by the first request that needs the page. Both tables
// together keep to the budget.
func (m *memory) Update(_ context.Context, s *Set, published func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.rules.Load()
	rules, err := m.build(s, old)
	if err != nil {
		return err
	}
	rules.moving.Store(true)
	m.rules.Store(rules)
	published()
	for _, mr := range rules.rules {
		if from := mr.records.from.Load(); from != nil {
			from.table.DrainAll(mr.records.takeKey(from))
			mr.records.limitFormer(from)
			mr.records.from.Store(nil)
		}
	}
	rules.moving.Store(false)
	for _, mr := range old.rules {
		if !rules.has(mr.records) {
			mr.records.release()
		}
	}
	m.bans.KeepRules(func(id uint32) bool {
		return slices.ContainsFunc(rules.rules, func(mr *memoryRule) bool { return mr.id == id&^ofNetworks })
	})
	return nil
}

// ensureMigrated makes sure that all counts of the probes' keys are in the tables of
// these rules. It is called with nothing locked: it waits for requests under
// the rules before.
func (rs *memoryRules) ensureMigrated(probes []probe) {
	if !rs.moving.Load() {
		return
	}
	for i := range probes {
		probes[i].records.ensureMigrated(probes[i].hash)
	}
}

func (rs *records) ensureMigrated(hash uint64) {
	if from := rs.from.Load(); from != nil {
		from.table.Drain(hash, rs.takeKey(from))
	}
}

// takeKey returns what carries one key of old into rs.
func (rs *records) takeKey(old *records) func(key []byte, from keytable.Record) {
	return func(key []byte, from keytable.Record) {
		hash := rs.table.Hash(string(key))
		r, state := rs.table.LockOrAdd(hash, string(key))
		switch state {
		case keytable.Added:
			rs.carry(r.Words(), old, from.Words())
			rs.afterFormer(r.Words(), old)
			if rs.cut(r); from.Flag() {
				r.SetFlag()
			}
			r.Unlock()
		case keytable.NoMemory:
			rs.toSketch(hash, old, from.Words())
		}
		old.clear(from.Words())
	}
}

// toSketch counts in the sketches what the record w of old holds, for a key that
// does not fit in rs.
func (rs *records) toSketch(hash uint64, old *records, w []uint64) {
	for i, window := range rs.overflow() {
		o := rs.heir(i, old)
		if o == nil {
			continue
		}
		held := window.Lock(hash)
		for t, n := range o.Each(w[o.at:], o.blocks, keytable.Time(w[wordNewest])) {
			held.Charge(t, min(n, math.MaxUint32))
		}
		held.Unlock()
	}
}

// inherit makes rs, which is new, the heir of old: its counts are carried as
// their pages are needed. Sketches are taken over as they are where the window
// is the same; they hold no keys that could be carried.
func (rs *records) inherit(old *records) {
	rs.resets = old.resets
	rs.now.Store(old.now.Load())
	rs.expired.Store(old.expired.Load())
	if rs.until.Store(old.until.Load()); rs.layout.former != old.layout.former {
		rs.until.Store(math.MaxInt64)
	}
	if f := old.layout.former; f != nil && f != rs.layout.former && f.over.Load() {
		keytable.Raise(&rs.expired, old.until.Load())
	}
	rs.from.Store(old)
	was := old.sketches.Load()
	sketched := was != nil && len(*was) > 0 && rs.sketchPlan != nil
	for i := range rs.limits {
		j := rs.layout.heir(i, &old.layout)
		rs.limits[i].refundable = j >= 0 && rs.canRefund(i, old, j)
		if sketched && j >= 0 && rs.layout.window(i) == old.layout.window(j) {
			rs.overflow()[i] = (*was)[j]
		}
	}
	if sketched && rs.ban != nil && old.ban != nil && rs.layout.ban.Span == old.layout.ban.Span {
		rs.overflow()[len(rs.limits)] = (*was)[len(old.limits)]
	}
	if sketched { // what they count may be as new
		rs.newest.Store(max(rs.now.Load(), rs.expired.Load()))
	}
}

// afterFormer has the record w judged no earlier than the end of a former of old that
// is dropped because an event came after it. An event of an earlier time may come
// yet, and the former would have judged it.
func (rs *records) afterFormer(w []uint64, old *records) {
	if f := old.layout.former; f != nil && f != rs.layout.former && f.over.Load() {
		w[wordNewest] = max(w[wordNewest], keytable.Stamp(old.until.Load()))
	}
}

// limitFormer sets until, when all keys of old have been carried, if it was this
// change after which former judges.
func (rs *records) limitFormer(old *records) {
	if f := rs.layout.former; f != nil && f != old.layout.former {
		rs.until.Store(rs.newest.Load() + int64(f.longest()))
	}
}

// canRefund reports whether the i-th limit of rs gives back what was charged before
// it took over from the j-th of old. A log knows by its time whether it has it.
// Elsewhere an event that had left, or was cut off, would be taken for what others
// have charged, unless windows and rate are as before.
func (rs *records) canRefund(i int, old *records, j int) bool {
	l, was := &rs.layout, &old.layout
	now, before := l.limits[i], was.limits[j]
	switch part, _ := l.part(i); {
	case !old.limits[j].refundable || l.logged(i) != was.logged(j):
		return false
	case l.logged(i):
		return true
	case part.algorithm.bursts():
		return now == before
	default:
		wasPart, _ := was.part(j)
		return now.Window() == before.Window() && sameZone(part.zone, wasPart.zone)
	}
}
