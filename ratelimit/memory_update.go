package ratelimit

import (
	"context"
	"math"
	"slices"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// Update implements [store.Counters]. A rule that counts as before keeps its tables. A
// table that has to be replaced is carried page by page, some hundreds of keys at
// a time, by Update and by the first request that needs the page. Both tables
// together keep to the budget.
func (m *memory) Update(_ context.Context, s *Set, published func()) error {
	return m.update(s, m.nodes.Load(), published)
}

// update is Update, also to another number of nodes.
func (m *memory) update(s *Set, nodes int64, published func()) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.rules.Load()
	rules, err := m.build(s, old, nodes)
	if err != nil {
		return err
	}
	m.nodes.Store(nodes)
	rules.moving.Store(true)
	m.rules.Store(rules)
	published()
	for _, mr := range rules.rules {
		if from := mr.records.from.Load(); from != nil {
			from.table.DrainAll(mr.records.takeKey(from))
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
			if rs.cut(r); from.Flag() {
				r.SetFlag()
			}
			rs.markBanned(r, hash, string(key))
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
	l, was := &rs.layout, &old.layout
	if l.sameLimits(was) || l.algorithm == InFlight && was.algorithm == InFlight {
		rs.resets = old.resets // else what was charged before cannot be told from the rest
	}
	rs.now.Store(old.now.Load())
	rs.expired.Store(old.expired.Load())
	rs.from.Store(old)
	sketches := old.sketches.Load()
	if sketches == nil || len(*sketches) == 0 || rs.sketchPlan == nil {
		return
	}
	for i := range rs.limits {
		if j := l.heir(i, was); j >= 0 && l.window(i) == was.window(j) {
			rs.overflow()[i] = (*sketches)[j]
		}
	}
	if rs.ban != nil && old.ban != nil && l.ban.Span == was.ban.Span {
		rs.overflow()[len(rs.limits)] = (*sketches)[len(old.limits)]
	}
}
