package ratelimit

import (
	"context"
	"slices"

	"github.com/lately-go/lately/internal/store"
)

// failOver decides by the rules' fail policies after the store could not,
// because of err. It leaves in r the subjects that were judged here. Its error
// is store.ErrStale or nil.
func (l *Limiter) failOver(r *request, err error) (Decision, error) {
	l.fallbacks.Add(1)
	local := 0 // subjects that memory judges, moved to the front
	for i := range r.Subjects {
		s := &r.Subjects[i]
		rule := &r.Set.rules[s.Outcome.Rule]
		switch {
		case rule.Shadow && len(s.Key) > maxKey:
			// Its key is what no store takes, and it would refuse nothing.
		case rule.OnStoreFailure == FailLocal:
			r.Subjects[local], r.Subjects[i] = r.Subjects[i], r.Subjects[local]
			local++
		case rule.OnStoreFailure == FailClosed && !rule.Shadow:
			l.countOutcome(r, &outcome{Rule: s.Outcome.Rule, Refused: true})
			r.Subjects = nil
			return Decision{Rule: rule.Name, Err: err}, nil
		}
	}
	others := r.Subjects[local:]
	r.Subjects = r.Subjects[:local]
	d := Decision{Allowed: true}
	if local > 0 {
		m, localErr := l.localFor(r.Set)
		if localErr == nil {
			localErr = m.decide(r)
		}
		if localErr != nil {
			r.Subjects = nil
			return Decision{Err: localErr}, localErr // a key that no store takes
		}
		d = fold(r.Set, r.Subjects, r.Cost)
		l.count(r)
	}
	for i := range others {
		if o := &others[i].Outcome; r.Set.rules[o.Rule].OnStoreFailure == FailOpen {
			l.countOutcome(r, &outcome{Rule: o.Rule})
		}
	}
	d.Err = err
	return d, nil
}

// note counts in local memory what the store has charged, so that an outage begins with what
// this process has admitted in the windows.
func (l *Limiter) note(r *request, now int64) {
	if l.memory != nil || r.Peek || r.Cost == 0 {
		return
	}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		rule := &r.Set.rules[s.Outcome.Rule]
		if !s.Outcome.Charged || rule.OnStoreFailure != FailLocal || rule.Algorithm == InFlight {
			continue // what is in flight would stay so
		}
		m, err := l.localFor(r.Set)
		if err != nil {
			return // an Update is under way
		}
		m.Adjust(context.Background(), &adjustment{Change: store.Charge, Set: r.Set, Rule: s.Outcome.Rule, Key: s.Key, Now: now, N: r.Cost})
	}
}

// localFor returns the memory that decides while the store is away, with the share of each
// limit that is this process's.
func (l *Limiter) localFor(set *Set) (*memory, error) {
	nodes := l.nodes()
	m := l.local.Load()
	if m != nil && m.nodes.Load() == nodes {
		return m, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set.Load() != set {
		return nil, store.ErrStale
	}
	if m = l.local.Load(); m != nil {
		m.nodes.Store(nodes)
		return m, m.Update(context.Background(), set, func() {})
	}
	m, err := newShare(set, Config{}, nodes)
	if err != nil {
		return nil, err
	}
	l.local.Store(m)
	return m, nil
}

// nodes returns how many processes share the store, 1 if it does not know.
func (l *Limiter) nodes() int64 {
	if s, ok := l.store.(store.Counted); ok {
		return max(int64(s.Nodes()), 1)
	}
	return 1
}

// shareOf returns r with the share of its limits that m has: 1 at least. A rule with Adapt
// keeps its limit.
func (m *memory) shareOf(r *Rule) *Rule {
	nodes := uint64(m.nodes.Load())
	if nodes <= 1 || r.Adapt != nil {
		return r
	}
	part := *r
	part.Limits = slices.Clone(r.Limits)
	for i := range part.Limits {
		l := &part.Limits[i]
		l.N, l.Burst = shareOf(l.N, nodes), shareOf(l.Burst, nodes)
	}
	return &part
}

func shareOf(n, nodes uint64) uint64 { return max(n/nodes, min(n, 1)) }
