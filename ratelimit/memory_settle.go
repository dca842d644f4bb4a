package ratelimit

import (
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
)

// Settle implements [Store]. What is counted in a sketch stays there.
func (m *Memory) Settle(s *Settlement) error {
	rs := m.rules.Load()
	if rs.set != s.Set {
		return ErrStale
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
			return ErrStale
		}
	}
	return nil
}

// settle corrects the charge of one subject. It reports false if the table has
// moved, and has done nothing.
func (mr *memoryRule) settle(s *Settlement, subject *Subject, stored []byte) bool {
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
	if rs.family.void(hash, subject.Mark) {
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

// settleMore charges what was charged too little. A key that has been forgotten
// since then is counted anew, as by a decision.
func (mr *memoryRule) settleMore(s *Settlement, subject *Subject, stored []byte) bool {
	rs := mr.records
	key := unsafe.String(unsafe.SliceData(stored), len(stored)) // only read
	hash := rs.table.Hash(key)
	rs.settled(hash)
	probes := []probe{{memoryRule: mr, hash: hash, key: key, spot: rs.table.Prefetch(hash)}}
	if !lock(probes, &Request{Now: s.Now}) {
		return false
	}
	defer unlock(probes)
	p := &probes[0]
	if rs.family.void(hash, subject.Mark) {
		return true
	}
	now, more := newest(probes, s.Now), s.Actual-s.Charged
	for i := range rs.judging(now) {
		if p.used(i, now); p.room(i, more) {
			p.charge(i, now, more)
		}
	}
	if p.held {
		p.w[wordNewest] = keytable.Stamp(now)
	}
	return true
}

// Reset implements [Store]. What is counted in a sketch stays there.
func (m *Memory) Reset(set *Set, subjects []Subject) error {
	rs := m.rules.Load()
	if rs.set != set {
		return ErrStale
	}
	for i := range subjects {
		records := rs.rules[subjects[i].Outcome.Rule].records
		r, hash, state := records.lockStored(m.stored(subjects[i].Key))
		switch state {
		case keytable.Moved:
			return ErrStale
		case keytable.Found:
			records.clear(r.Words())
			records.family.reset(hash)
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
	rs.settled(hash)
	r, state = rs.table.Lock(hash, key)
	return r, hash, state
}
