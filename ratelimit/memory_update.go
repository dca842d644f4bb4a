package ratelimit

import (
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/keytable"
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
			r.Unlock()
		case keytable.NoMemory:
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
	rs.family = old.family
	for i := range rs.known {
		rs.known[i] = rs.knownOf(i, old)
	}
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

// knownOf returns how long after an event that was charged before rs took over from
// old the i-th limit surely has it among what it counts. One that had left before
// must not be given back: with a longer span, or a bucket that drains slower, what
// is counted of others would seem to be its own.
func (rs *records) knownOf(i int, old *records) time.Duration {
	l, was := &rs.layout, &old.layout
	j, ok := l.heir(i, was)
	if !ok {
		return 0
	}
	now, before := l.limits[i], was.limits[j]
	switch {
	case l.logged(i): // its time tells
		return math.MaxInt64
	case was.algorithm.bursts():
		if !l.algorithm.bursts() || float64(now.N)*float64(before.Span) < float64(before.N)*float64(now.Span) {
			return 0
		}
	case was.algorithm == Fixed || was.algorithm == Calendar:
		if l.algorithm != was.algorithm || now.Window() != before.Window() || !sameZone(l.zone, was.zone) {
			return 0
		}
	default:
		return min(old.known[j], before.Window())
	}
	return old.known[j]
}
