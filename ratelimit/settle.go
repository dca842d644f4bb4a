package ratelimit

import (
	"context"
	"math"
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/store"
)

// Settle implements [store.Store]. What is counted in a sketch stays there.
func (m *memory) Settle(_ context.Context, s *settlement) error {
	rs := m.rules.Load()
	if rs.set != s.Set {
		return store.ErrStale
	}
	for i := range s.Subjects {
		subject := &s.Subjects[i]
		if !subject.Outcome.Charged {
			continue
		}
		if !rs.rules[subject.Outcome.Rule].settle(s, subject, m.stored(subject.Key)) {
			for done := range i {
				s.Subjects[done].Outcome.Charged = false // not once more with the next Set
			}
			return store.ErrStale
		}
	}
	return nil
}

// settle corrects the charge of one subject. It reports false if the table has
// moved, and has done nothing.
func (mr *memoryRule) settle(s *settlement, subject *subject, stored []byte) bool {
	if s.Actual > s.Charged && mr.Algorithm != InFlight {
		return mr.settleMore(s, subject, stored)
	}
	rs := mr.records
	r, hash, state := rs.lockStored(stored)
	switch state {
	case keytable.Moved:
		return false
	case keytable.Absent:
		return true // forgotten, or in a sketch
	}
	defer r.Unlock()
	// The record is locked, so no reset comes between.
	if rs.resets.invalidated(hash, subject.Mark) {
		return true
	}
	w := r.Words()
	now := max(s.Now, keytable.Time(w[wordNewest]))
	w[wordNewest] = keytable.Stamp(now)
	back := s.Charged - s.Actual
	if mr.Algorithm == InFlight {
		back = s.Charged
	}
	for i := range rs.judging(now) {
		m := &rs.limits[i]
		m.Advance(w[m.at:], m.blocks, now)
		if back > 0 && (m.refundable || !rs.carried(subject.Mark)) {
			m.Refund(w[m.at:], m.blocks, now, s.At, back)
		}
	}
	return true
}

// settleMore charges what was charged too little. A key that was evicted since then
// is added, as by a decision.
func (mr *memoryRule) settleMore(s *settlement, subject *subject, stored []byte) bool {
	_, ok := mr.charge(stored, s.Now, s.Actual-s.Charged, func(hash uint64) bool {
		return !mr.records.resets.invalidated(hash, subject.Mark)
	})
	return ok
}

// Charge implements [store.Store].
func (m *memory) Charge(_ context.Context, a *adjustment) error {
	rs := m.rules.Load()
	if rs.set != a.Set {
		return store.ErrStale
	}
	now, ok := rs.rules[a.Rule].charge(m.stored(a.Key), a.Now, a.N, func(uint64) bool { return true })
	if !ok {
		return store.ErrStale
	}
	a.Now = now
	return nil
}

// charge counts n of a key in the limits, whatever they allow, if valid says so of
// its hash with the key locked. Where the budget has no memory for so many times, a
// log keeps the newest. It returns the time at which it was done, and false, having
// done nothing, if the table has moved.
func (mr *memoryRule) charge(stored []byte, now int64, n uint64, valid func(hash uint64) bool) (int64, bool) {
	rs := mr.records
	key := unsafe.String(unsafe.SliceData(stored), len(stored)) // only read
	hash := rs.table.Hash(key)
	rs.ensureMigrated(hash)
	probes := []probe{{memoryRule: mr, hash: hash, key: key, spot: rs.table.Prefetch(hash)}}
	if !lock(probes, &request{Now: now}) {
		return 0, false
	}
	defer unlock(probes)
	p := &probes[0]
	if !valid(hash) {
		return now, true
	}
	now = newest(probes, now)
	for i := range rs.judging(now) {
		p.used(i, now)
		p.fits(i, n)
		p.charge(i, now, n)
	}
	if p.held {
		p.w[wordNewest] = keytable.Stamp(now)
	}
	return now, true
}

// Reset implements [store.Store]. What is counted in a sketch stays there.
func (m *memory) Reset(_ context.Context, set *Set, subjects []subject) error {
	rs := m.rules.Load()
	if rs.set != set {
		return store.ErrStale
	}
	for i := range subjects {
		records := rs.rules[subjects[i].Outcome.Rule].records
		r, hash, state := records.lockStored(m.stored(subjects[i].Key))
		switch state {
		case keytable.Moved:
			return store.ErrStale
		case keytable.Found:
			records.clear(r.Words())
			records.resets.reset(hash)
			r.Unlock()
		}
	}
	return nil
}

// lockStored locks the record of a key as Memory.stored has it, with all that was
// counted of it in the table before.
func (rs *records) lockStored(stored []byte) (r keytable.Record, hash uint64, state keytable.State) {
	key := unsafe.String(unsafe.SliceData(stored), len(stored)) // only read
	hash = rs.table.Hash(key)
	rs.ensureMigrated(hash)
	r, state = rs.table.Lock(hash, key)
	return r, hash, state
}

// Refund implements [store.Store]. What is counted in a sketch stays there.
func (m *memory) Refund(_ context.Context, r *adjustment) error {
	r.Taken = 0
	rs := m.rules.Load()
	if rs.set != r.Set {
		return store.ErrStale
	}
	if !rs.rules[r.Rule].refund(r, m.stored(r.Key)) {
		return store.ErrStale
	}
	return nil
}

// refund gives back what r says. It reports false if the table has moved, and has
// done nothing.
func (mr *memoryRule) refund(r *adjustment, stored []byte) bool {
	rs := mr.records
	if len(rs.limits) == 0 {
		return true
	}
	record, _, state := rs.lockStored(stored)
	switch state {
	case keytable.Moved:
		return false
	case keytable.Absent:
		return true // forgotten, or in a sketch
	}
	defer record.Unlock()
	w := record.Words()
	now := max(r.Now, keytable.Time(w[wordNewest]))
	w[wordNewest] = keytable.Stamp(now)
	r.Now = now
	if record.Flag() { // what was cut would be given back as well
		return true
	}
	taken := uint64(math.MaxUint64)
	for i := range rs.judging(now) {
		m := &rs.limits[i]
		m.Advance(w[m.at:], m.blocks, now)
		taken = min(taken, m.RefundOldest(w[m.at:], m.blocks, now, r.N))
	}
	r.Taken = taken
	return true
}
