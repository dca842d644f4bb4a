package ratelimit

import (
	"math"
	"slices"

	"github.com/lately-go/lately/internal/shard"
)

// Update implements [Store]. A rule that counts as before keeps its tables. A
// table that has to be replaced is carried page by page, some hundreds of keys at
// a time, by Update and by the first request that needs the page. Both tables
// together keep to the budget.
func (m *Memory) Update(s *Set, published func()) error {
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
			for page := range from.table.Pages() {
				from.table.DrainPage(page, mr.records.takeKey(from))
			}
			mr.records.from.Store(nil)
		}
	}
	rules.moving.Store(false)
	for _, mr := range old.rules {
		if !rules.has(mr.records) {
			mr.records.release()
		}
	}
	m.bans.keepRules(func(id uint32) bool {
		return slices.ContainsFunc(rules.rules, func(mr *memoryRule) bool { return mr.id == id })
	})
	return nil
}

// settled sees to it that all counts of the probes' keys are in the tables of
// these rules. It is called with nothing locked: it waits for requests under
// the rules before.
func (rs *memoryRules) settled(probes []probe) {
	if !rs.moving.Load() {
		return
	}
	for i := range probes {
		probes[i].records.settled(probes[i].hash)
	}
}

func (rs *records) settled(hash uint64) {
	if from := rs.from.Load(); from != nil {
		from.table.Drain(hash, rs.takeKey(from))
	}
}

// takeKey returns what carries one key of old into rs.
func (rs *records) takeKey(old *records) func(key []byte, from shard.Record) {
	return func(key []byte, from shard.Record) {
		hash := rs.table.Hash(string(key))
		r, state := rs.table.LockOrAdd(hash, string(key))
		switch state {
		case shard.Added:
			rs.carry(r.Words(), old, from.Words())
			r.Unlock()
		case shard.NoRoom:
			rs.toSketch(hash, old, from.Words())
		}
		old.clear(from.Words())
	}
}

// toSketch counts in the sketches what the record w of old holds, for a key that
// has no room in rs.
func (rs *records) toSketch(hash uint64, old *records, w []uint64) {
	for i, window := range rs.overflow() {
		o := rs.heir(i, old)
		if o == nil {
			continue
		}
		held := window.Lock(hash)
		for t, n := range o.Each(w[o.at:], o.blocks, shard.Time(w[wordNewest])) {
			held.Charge(t, min(n, math.MaxUint32))
		}
		held.Unlock()
	}
}

// inherit makes rs, which is new, the heir of old: its counts are carried as
// their pages are needed. Sketches are taken over as they are where the window
// is the same; they hold no keys that could be carried.
func (rs *records) inherit(old *records) {
	rs.family = old.family
	rs.now.Store(old.now.Load())
	rs.floor.Store(old.floor.Load())
	rs.from.Store(old)
	was := old.sketches.Load()
	if was == nil || len(*was) == 0 || rs.sketchPlan == nil {
		return
	}
	windows := rs.overflow()
	for i := range windows {
		for j := range *was {
			if rs.layout.window(i) == old.layout.window(j) && (i < len(rs.limits)) == (j < len(old.limits)) {
				windows[i] = (*was)[j]
			}
		}
	}
}
