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
	w = w[wordNewest+1:]
	n := mt.most
	left := n - min(mt.Advance(w, mt.blocks, now), n)
	switch {
	case cost <= left && (mt.blocks == nil || mt.Room(w, mt.blocks, cost)):
		mt.Charge(w, mt.blocks, now, cost)
		d.Allowed, d.Remaining = true, left-cost
		if mt.blocks != nil {
			d.ResetAfter = time.Duration(mt.span) // it is the newest now
		} else {
			d.ResetAfter = mt.Reset(w, mt.blocks, now)
		}
	case cost > n || cost <= left || mr.Ban != nil:
		r.Unlock()
		return false
	default:
		d.Remaining = left
		d.RetryAfter = mt.Wait(w, mt.blocks, now, n, cost)
		d.ResetAfter = mt.Reset(w, mt.blocks, now)
	}
	r.Unlock()
	mr.tally.decided(hash, d.Allowed)
	d.Rule, d.Limit = mr.Name, n
	return true
}
