package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/shard"
)

// quick reports whether decisions under the rule alone can take the short way of
// take: one limit, enforced, and nothing that is not said by its meter.
func (mr *memoryRule) quick() bool {
	return len(mr.Limits) == 1 && mr.Adapt == nil && !mr.Shadow && !mr.CountRefused &&
		mr.Algorithm != LeakyBucket && (mr.Ban == nil || mr.Ban.Of == Refusals)
}

// take is Decide and fold for the most common case, and says the same: a request
// for one rule, which is quick, about a key that has a record and no ban, and
// that is admitted, or is refused without a ban to count it. It reports false if
// anything is not so, and has counted nothing then. It is one piece because a
// decision is some dozens of nanoseconds, which requests, subjects and outcomes
// would double, and writes to d, which is zero, since a Decision is large.
//
// If live is not nil, now is what it says; it reads the clock while the record is
// on its way to the cache.
func (m *Memory) take(d *Decision, set *Set, rule int, live *Limiter, now int64, key string, cost uint64) bool {
	rs := m.rules.Load()
	if rs.set != set || rs.moving.Load() || !rs.rules[rule].short || len(key) > maxStored || cost == 0 {
		return false
	}
	mr := rs.rules[rule]
	records := mr.records
	hash := records.table.Hash(key)
	spot := records.table.Seek(hash)
	if live != nil {
		now = live.now()
	}
	r, state := records.table.LockAt(spot, hash, key)
	if state != shard.Found {
		return false
	}
	w := r.Words()
	now = max(now, shard.Time(w[wordNewest]))
	if _, banned := m.bans.holds(mr.id, hash, viewed(key), now); banned {
		r.Unlock()
		return false
	}
	w[wordNewest] = shard.Stamp(now) // also if Decide is to judge it: the window has moved on
	mt := &records.limits[0]
	var ok bool
	if w = w[wordNewest+1:]; mt.blocks != nil {
		ok = mt.takeTimes(d, w, now, cost, mr.Ban == nil)
	} else {
		ok = mt.takeCounts(d, w, now, cost, mr.Ban == nil)
	}
	r.Unlock()
	if ok {
		mr.tally.decided(hash, d.Allowed)
		d.Rule, d.Limit = mr.Name, mt.most
	}
	return ok
}

// takeTimes is take with the words of a log. It leaves a refusal alone unless it
// may refuse.
func (m *recordMeter) takeTimes(d *Decision, w []uint64, now int64, cost uint64, refuse bool) bool {
	used, n := uint64(m.blocks.Expire(w, now-m.span)), m.most
	switch left := n - min(used, n); {
	case cost == 1 && left > 0:
		if !m.blocks.Push(w, now) {
			return false
		}
		d.Remaining = left - 1
	case cost <= left:
		if !m.Room(w, m.blocks, cost) {
			return false
		}
		m.Charge(w, m.blocks, now, cost)
		d.Remaining = left - cost
	case cost > n || !refuse:
		return false
	default:
		d.Remaining = left
		d.RetryAfter = m.Wait(w, m.blocks, now, n, cost)
		d.ResetAfter = time.Duration(m.blocks.Newest(w) + m.span - now)
		return true
	}
	d.Allowed, d.ResetAfter = true, time.Duration(m.span) // it is the newest now
	return true
}

// takeCounts is takeTimes for words of any other kind.
func (m *recordMeter) takeCounts(d *Decision, w []uint64, now int64, cost uint64, refuse bool) bool {
	n := m.most
	left := n - min(m.Advance(w, nil, now), n)
	switch {
	case cost <= left:
		m.Charge(w, nil, now, cost)
		d.Allowed, d.Remaining = true, left-cost
	case cost > n || !refuse:
		return false
	default:
		d.Remaining = left
		d.RetryAfter = m.Wait(w, nil, now, n, cost)
	}
	d.ResetAfter = m.Reset(w, nil, now)
	return true
}
