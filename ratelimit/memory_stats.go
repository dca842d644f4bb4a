package ratelimit

import "math"

// Stats returns what m has decided so far and what it holds. It adds up some
// dozens of counters a rule.
func (m *memory) Stats() Stats {
	rs := m.rules.Load()
	s := Stats{Budget: m.config.Budget, Reserved: m.bans.reserved()}
	if s.Budget == unbounded {
		s.Budget = NoBudget
	}
	for _, mr := range rs.rules {
		r := RuleStats{Rule: mr.Name, Keys: mr.records.table.Len()}
		mr.tally.add(&r)
		gone := mr.records.table.Stats()
		r.Expired, r.Forgotten = gone.Expired, gone.Evicted
		s.Reserved += mr.records.reserved()
		if len(mr.Limits) > 0 {
			r.Limit = mr.Limits[0].N
			if mr.adapt != nil {
				r.Limit = mr.adapt.n.Load()
			}
		}
		s.Rules = append(s.Rules, r)
	}
	s.Bytes = max(m.budget.Used()-s.Reserved, 0) // which others may have taken meanwhile
	bans := m.bans.counts(rs.now())
	s.Remembered, s.BansRefused, s.BansDropped = uint64(bans.known), bans.refused, bans.dropped
	for i, mr := range rs.rules {
		s.Rules[i].Bans = bans.held[mr.id]
		s.Bans += uint64(bans.held[mr.id])
	}
	return s
}

// Stats returns what l has decided so far and what its store holds. With a store
// other than the memory store, rules are those of the memory that decides while the store
// is away.
func (l *Limiter) Stats() Stats {
	s := Stats{}
	if m := l.local.Load(); m != nil {
		s = m.Stats()
	}
	s.Fallbacks = l.fallbacks.Load()
	return s
}

// now returns the newest time that a table was judged at, as far as it is noted:
// by when a key was added.
func (rs *memoryRules) now() int64 {
	now := int64(math.MinInt64)
	for _, mr := range rs.rules {
		now = max(now, mr.records.now.Load())
	}
	return now
}
