package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

// hasFastPath reports whether decideFast can decide under the rule: it has one limit
// or none, is enforced, and has nothing more than a ban.
func (mr *memoryRule) hasFastPath() bool {
	return len(mr.Limits) <= 1 && mr.Adapt == nil && !mr.Shadow && !mr.CountRefused
}

// decideFast is decide and fold for the most common case, with the same result: a
// request for one rule that has a fast path, about a key that has a record, which
// starts no ban. It reports false otherwise, and has then counted nothing. A decision
// takes some dozens of nanoseconds, which requests, subjects and outcomes would
// double; for the same reason it writes to d, which must be zero.
//
// If live is not nil, it reads the clock of live while the record is on its way to the
// cache, and ignores now.
func (m *memory) decideFast(d *Decision, set *Set, rule int, live *Limiter, now int64, key string, cost uint64) bool {
	rs := m.rules.Load()
	if rs.set != set || rs.moving.Load() || !rs.rules[rule].fast || len(key) > maxStored || cost == 0 {
		return false
	}
	mr := rs.rules[rule]
	records := mr.records
	hash := records.table.Hash(key)
	spot := records.table.Prefetch(hash)
	if live != nil {
		now = live.now()
	}
	r, state := records.table.LockAt(spot, hash, key)
	if state != keytable.Found {
		return false
	}
	if r.Flag() || m.rules.Load() != rs { // decide sees to it
		r.Unlock()
		return false
	}
	w := r.Words()
	now = max(now, keytable.Time(w[wordNewest]))
	if records.judging(now) > len(mr.Limits) {
		r.Unlock()
		return false
	}
	if f := records.layout.former; f != nil {
		f.judged(now, records.until.Load())
	}
	w[wordNewest] = keytable.Stamp(now) // also if decide judges it: the windows move on
	until, banned := m.bans.Until(mr.id, hash, bytesOf(key), now)
	var ok bool
	if banned {
		ok = mr.refuseBanned(d, w, now, cost, until)
	} else {
		ok = mr.allowFast(d, w, now, cost)
	}
	r.Unlock()
	if !ok {
		*d = Decision{}
		return false
	}
	d.Rule = mr.Name
	mr.counters.decided(hash, d.Allowed, banned)
	return true
}

// allowFast is decideFast with the words of a record that no ban holds for.
func (mr *memoryRule) allowFast(d *Decision, w []uint64, now int64, cost uint64) bool {
	strikes, hits, count := mr.records.ban, false, uint64(0)
	if strikes != nil && mr.Ban.Of == Hits {
		hits = true
		if count = strikes.Advance(w[strikes.at:], strikes.blocks, now); count >= mr.Ban.After {
			return false
		}
	}
	if len(mr.records.limits) == 0 {
		d.Allowed, d.Limit, d.Remaining, d.ResetAfter = true, mr.Ban.After, mr.Ban.After-count-1, mr.Ban.Span
	} else if m := &mr.records.limits[0]; !m.admit(d, w[wordNewest+1:], now, cost) {
		return false
	} else if mr.Algorithm == LeakyBucket && d.Allowed {
		d.Delay = m.Delay(w[m.at:], m.blocks, now)
	}
	if strikes == nil || d.Allowed && !hits {
		return true
	}
	w = w[strikes.at:]
	if !hits && strikes.Advance(w, strikes.blocks, now) >= mr.Ban.After {
		return false // the limit has changed nothing
	}
	if strikes.Room(w, strikes.blocks, 1) { // as in addStrike
		strikes.Charge(w, strikes.blocks, now, 1)
	}
	if hits && !d.Allowed {
		d.RetryAfter = max(d.RetryAfter, strikes.Wait(w, strikes.blocks, now, mr.Ban.After, 1))
	}
	return true
}

// refuseBanned is decideFast with the words of a record whose key is banned.
func (mr *memoryRule) refuseBanned(d *Decision, w []uint64, now int64, cost uint64, until int64) bool {
	if mr.Ban != nil && mr.Ban.Extend {
		return false
	}
	left := time.Duration(until - now)
	d.RetryAfter, d.ResetAfter, d.BannedUntil = left, left, time.Unix(0, until)
	if len(mr.records.limits) > 0 {
		m := &mr.records.limits[0]
		w := w[m.at:]
		m.Advance(w, m.blocks, now)
		if cost > m.most || !m.Room(w, m.blocks, cost) {
			return false
		}
		d.Limit = m.most
		d.RetryAfter = max(left, m.Wait(w, m.blocks, now, m.most, cost))
		d.ResetAfter = max(left, m.Reset(w, m.blocks, now))
	}
	if mr.Ban == nil {
		return true
	}
	if d.Limit = mr.Ban.After; mr.Ban.Of == Hits {
		m := mr.records.ban
		m.Advance(w[m.at:], m.blocks, now)
		d.RetryAfter = longer(d.RetryAfter, m.Wait(w[m.at:], m.blocks, now, max(mr.Ban.After, 1), 1))
	}
	return true
}

// admit is allowFast for a limit.
func (m *recordMeter) admit(d *Decision, w []uint64, now int64, cost uint64) bool {
	d.Limit = m.most
	if m.log {
		return m.admitTimes(d, w, now, cost)
	}
	return m.admitCounts(d, w, now, cost)
}

// admitTimes is admit with the words of a log.
func (m *recordMeter) admitTimes(d *Decision, w []uint64, now int64, cost uint64) bool {
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
	case cost > n:
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

// admitCounts is admit with words of any other kind.
func (m *recordMeter) admitCounts(d *Decision, w []uint64, now int64, cost uint64) bool {
	n := m.most
	if cost == 1 {
		if used, ok := m.Push(w, m.blocks, now); ok {
			d.Allowed, d.Remaining, d.ResetAfter = true, n-used, time.Duration(m.span)
			return true
		}
	}
	left := n - min(m.Advance(w, m.blocks, now), n)
	switch {
	case cost <= left:
		if !m.Room(w, m.blocks, cost) {
			return false
		}
		m.Charge(w, m.blocks, now, cost)
		d.Allowed, d.Remaining = true, left-cost
	case cost > n:
		return false
	default:
		d.Remaining = left
		d.RetryAfter = m.Wait(w, m.blocks, now, n, cost)
	}
	d.ResetAfter = m.Reset(w, m.blocks, now)
	return true
}
