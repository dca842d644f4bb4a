package ratelimit

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/store"
)

// Settle implements [store.Counters]. What is counted in a sketch stays there.
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
	return rs.correct(stored, func(r keytable.Record, hash uint64) {
		if rs.resets.invalidated(hash, subject.Mark) {
			return
		}
		w := r.Words()
		now := judgedAt(w, s.Now)
		back := s.Charged - s.Actual
		if mr.Algorithm == InFlight {
			back = s.Charged
		}
		for i := range rs.limits {
			m := &rs.limits[i]
			m.Advance(w[m.at:], m.blocks, now)
			if back > 0 {
				m.Refund(w[m.at:], m.blocks, now, s.At, back)
			}
		}
	})
}

// correct calls f with the key's record, after the counts of the previous table were carried
// to it; stored is the key as Memory.stored has it. An evicted key, or one that a sketch
// counts, has no record. It returns false, having done nothing, if the table has moved.
func (rs *records) correct(stored []byte, f func(r keytable.Record, hash uint64)) bool {
	key := unsafe.String(unsafe.SliceData(stored), len(stored)) // only read
	hash := rs.table.Hash(key)
	rs.ensureMigrated(hash)
	r, state := rs.table.Lock(hash, key)
	if state != keytable.Found {
		return state != keytable.Moved
	}
	defer r.Unlock()
	f(r, hash)
	return true
}

// judgedAt moves the record of the words w on to now, unless it was judged later, and returns
// the newest time at which it was judged.
func judgedAt(w []uint64, now int64) int64 {
	now = max(now, keytable.Time(w[wordNewest]))
	w[wordNewest] = keytable.Stamp(now)
	return now
}

// settleMore charges what was charged too little. A key that was evicted since then
// is added, as by a decision.
func (mr *memoryRule) settleMore(s *settlement, subject *subject, stored []byte) bool {
	now := s.Now
	return mr.charge(stored, &now, s.Actual-s.Charged, func(hash uint64) bool {
		return !mr.records.resets.invalidated(hash, subject.Mark)
	})
}

// Adjust implements [store.Counters]. What is counted in a sketch is neither given back nor
// reset.
func (m *memory) Adjust(_ context.Context, a *adjustment) error {
	a.Taken = 0
	rs := m.rules.Load()
	if rs.set != a.Set {
		return store.ErrStale
	}
	mr, stored, ok := rs.rules[a.Rule], m.stored(a.Key), false
	switch a.Change {
	case store.Charge:
		ok = mr.charge(stored, &a.Now, a.N, func(uint64) bool { return true })
	case store.Refund:
		ok = mr.refund(a, stored)
	case store.Reset:
		ok = mr.reset(stored)
	}
	if !ok {
		return store.ErrStale
	}
	return nil
}

// charge counts n of a key in the limits, whatever they allow, if valid says so of
// its hash with the key locked. Where the budget has no memory for so many times, a
// log keeps the newest. It sets at to the time at which it was done, and reports false,
// having done nothing, if the table has moved.
func (mr *memoryRule) charge(stored []byte, at *int64, n uint64, valid func(hash uint64) bool) bool {
	rs := mr.records
	key := unsafe.String(unsafe.SliceData(stored), len(stored)) // only read
	hash := rs.table.Hash(key)
	rs.ensureMigrated(hash)
	probes := []probe{{memoryRule: mr, hash: hash, key: key, spot: rs.table.Prefetch(hash)}}
	if !lock(probes, &request{Now: *at}) {
		return false
	}
	defer unlock(probes)
	p := &probes[0]
	if !valid(hash) {
		return true
	}
	now := newest(probes, *at)
	*at = now
	for i := range rs.limits {
		p.used(i, now)
		p.fits(i, n)
		p.charge(i, now, n)
	}
	if p.held {
		p.w[wordNewest] = keytable.Stamp(now)
	}
	return true
}

// refund gives back what a says. It reports false if the table has moved, and has
// done nothing.
func (mr *memoryRule) refund(a *adjustment, stored []byte) bool {
	rs := mr.records
	if len(rs.limits) == 0 {
		return true
	}
	return rs.correct(stored, func(r keytable.Record, _ uint64) {
		w := r.Words()
		now := judgedAt(w, a.Now)
		a.Now = now
		if r.Flag() { // what was cut would be given back as well
			return
		}
		a.Taken = math.MaxUint64
		for i := range rs.limits {
			m := &rs.limits[i]
			m.Advance(w[m.at:], m.blocks, now)
			a.Taken = min(a.Taken, m.RefundOldest(w[m.at:], m.blocks, now, a.N))
		}
	})
}

// reset deletes what a key has used. It reports false if the table has moved, and has done
// nothing.
func (mr *memoryRule) reset(stored []byte) bool {
	rs := mr.records
	return rs.correct(stored, func(r keytable.Record, hash uint64) {
		rs.clear(r.Words())
		rs.resets.reset(hash)
	})
}

// A resetLog knows which keys of a table, and of those with the same limits before it,
// were reset last. A settlement from before a reset of its key is void, and so is one
// from before the limits changed.
type resetLog struct {
	id     uint64        // the number of the first table
	resets atomic.Uint64 // how many there were

	mu   sync.Mutex // one reset at a time
	last [keptResets]atomic.Uint64
}

// keptResets is how many resets are known by the hash of their key. A settlement
// from before more than these is void.
const keptResets = 128

// mark returns what a settlement must bring along: under which limits its event was
// counted, and how many resets there were.
//
// REQUIRES: the record of its key, locked, as invalidated and reset do.
func (rs *records) mark() uint64 { return rs.resets.id<<32 | rs.resets.resets.Load()&(1<<32-1) }

// invalidated reports whether the limits have changed, or the key of that hash was, or
// may have been, reset since mark.
func (l *resetLog) invalidated(hash, mark uint64) bool {
	if mark == batch.AnyMark {
		return false
	}
	n := l.resets.Load()
	since := uint64(uint32(n - mark))
	if mark>>32 != l.id || since >= keptResets {
		return true
	}
	for i := range since {
		if l.last[(n-1-i)%keptResets].Load() == hash {
			return true
		}
	}
	return false
}

// reset notes that the key of that hash is reset.
func (l *resetLog) reset(hash uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last[l.resets.Load()%keptResets].Store(hash)
	l.resets.Add(1)
}
