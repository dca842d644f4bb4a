package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/shard"
)

// A meter is one limit, or the counting half of a ban, laid out in a record:
// where its words are and how they count. All methods want the record's shard
// locked, and times that never go back for one record.
//
// There are two forms. A log (ring.slots == 0) keeps each time; a ring keeps a
// count for each slot of the span.
type meter struct {
	n    uint64 // the most that the window may hold
	span int64
	at   int // the meter's first word in the record
	log  int // which of the shard's logs; logs only
	ring slotRing
}

// newMeter lays out the meter of l at word at, and returns it with the bound
// of the log it needs, or 0 when it is a ring.
func newMeter(l Limit, a Algorithm, at int, resolution time.Duration) (m meter, bound int) {
	m = meter{n: l.N, span: int64(l.Span), at: at}
	if a == Sliding && l.N > slidingExact {
		m.ring = newSlotRing(l.Span, resolution)
		return m, 0
	}
	return m, max(int(l.N), 1)
}

// words returns how many words of the record m takes.
func (m *meter) words() int {
	if m.ring.slots == 0 {
		return shard.LogWords
	}
	return m.ring.words()
}

// advance forgets what has left the window at time t and returns how much the
// window holds.
func (m *meter) advance(s *shard.Shard, rec []uint64, t int64) uint64 {
	if m.ring.slots == 0 {
		return uint64(s.Logs(m.log).Expire(shard.Log(rec[m.at:]), t-m.span))
	}
	return m.ring.advance(rec[m.at:], t, t-m.span)
}

// held returns how much the window holds at the time it was last advanced to.
func (m *meter) held(rec []uint64) uint64 {
	if m.ring.slots == 0 {
		return uint64(shard.Log(rec[m.at:]).Len())
	}
	return rec[m.at+ringSum]
}

// charge counts cost at time t; the record has been advanced to t. A log keeps
// the newest n times, which is all that a judgement needs.
func (m *meter) charge(s *shard.Shard, rec []uint64, t int64, cost uint64) {
	if m.ring.slots != 0 {
		m.ring.charge(rec[m.at:], cost)
		return
	}
	logs, l := s.Logs(m.log), shard.Log(rec[m.at:])
	for range min(cost, m.n) {
		logs.Add(l, t)
	}
}

// clear forgets everything.
func (m *meter) clear(s *shard.Shard, rec []uint64) {
	if m.ring.slots == 0 {
		s.Logs(m.log).Clear(shard.Log(rec[m.at:]))
		return
	}
	clear(rec[m.at : m.at+m.words()])
}

// wait returns how long after t the window, which holds count at t, has room
// for cost when nothing is added: 0 if it has now, Never if cost is above n.
func (m *meter) wait(s *shard.Shard, rec []uint64, t int64, count, cost uint64) time.Duration {
	if cost > m.n {
		return Never
	}
	if count <= m.n-cost {
		return 0
	}
	leave := count - (m.n - cost)
	if m.ring.slots != 0 {
		return time.Duration(m.ring.gone(rec[m.at:], leave) + m.span - t)
	}
	return time.Duration(s.Logs(m.log).At(shard.Log(rec[m.at:]), int(leave)-1) + m.span - t)
}

// reset returns how long after t the window, which holds count at t, is empty
// when nothing is added.
func (m *meter) reset(s *shard.Shard, rec []uint64, t int64, count uint64) time.Duration {
	if count == 0 {
		return 0
	}
	if m.ring.slots != 0 {
		return time.Duration(m.ring.gone(rec[m.at:], count) + m.span - t)
	}
	return time.Duration(s.Logs(m.log).At(shard.Log(rec[m.at:]), int(count)-1) + m.span - t)
}
