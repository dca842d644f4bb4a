package ratelimit

import (
	"cmp"
	"math"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// What follows asks and charges the counters of a probe, wherever its key is
// counted: in a record, in the sketch of its rule, or nowhere. All times are the
// one that the request is judged at.

// blocks returns where a log is that does not fit its record.
func (p *probe) blocks(m *recordCounter) *keytable.Blocks {
	if p.copied {
		return m.view
	}
	return m.blocks
}

// used returns how much of the i-th counter the key has used at now.
func (p *probe) used(i int, now int64) uint64 {
	switch {
	case p.w != nil:
		m := &p.records.counters[i]
		return m.Advance(p.w[m.at:], p.blocks(m), now)
	case p.sketch != nil:
		return p.sketch[i].Used(now)
	case p.noMemory:
		return math.MaxUint64
	}
	return 0
}

// most returns the most that the i-th limit may have used.
func (p *probe) most(i int) uint64 {
	if p.sketch != nil {
		return p.mostSketched(i)
	}
	return p.limitN(i)
}

// limitN returns the most that the i-th limit may have used by the event: N, or its burst.
func (p *probe) limitN(i int) uint64 {
	switch {
	case p.adapt != nil:
		return p.n
	case p.given > 0 && i == p.varying:
		return cmp.Or(p.Limits[i].Burst, p.given)
	}
	return p.records.limits[i].most
}

// mostSketched is most of a sketch, which knows no burst: N in any window of a span is
// less than any algorithm gives.
func (p *probe) mostSketched(i int) uint64 {
	l := &p.records.layout
	if p.given > 0 && i == p.varying {
		return min(p.limitN(i), p.given)
	}
	return min(p.limitN(i), max(l.limits[i].N, l.most))
}

// fits reports whether cost can be counted in the i-th limit.
func (p *probe) fits(i int, cost uint64) bool {
	if p.w == nil {
		return true
	}
	m := &p.records.counters[i]
	return m.Reserve(p.w[m.at:], p.blocks(m), cost)
}

// charge counts cost in the i-th counter.
func (p *probe) charge(i int, now int64, cost uint64) {
	if p.setsN && p.w != nil && i == p.varying && cost > 0 {
		m := &p.records.counters[i]
		m.SetN(p.w[m.at:], now, p.given)
	}
	switch {
	case p.copied:
		if m := &p.records.counters[i]; m.blocks == nil { // never what a copy shares
			m.Charge(p.w[m.at:], nil, now, cost)
		}
	case p.held:
		m := &p.records.counters[i]
		if p.record.Flag() {
			p.records.cutBefore(p.record, now)
		}
		w := p.w[m.at:]
		if m.Charge(w, m.blocks, now, cost); m.Cut(w, now) {
			p.record.SetFlag()
		}
	case p.sketch != nil && p.counted:
		p.sketch[i].Charge(now, cost)
	}
}

// wait returns how long until the i-th limit allows cost.
func (p *probe) wait(i int, now int64, cost uint64) time.Duration {
	n := p.most(i)
	d := p.waitOf(i, now, n, cost)
	if d == Never && p.adapt != nil && cost <= p.adapt.config.most() {
		return p.adapt.config.span() // N may have risen by then
	}
	if d == 0 && !p.look && !p.fits(i, cost) {
		// The budget has no memory for more times until some have left.
		m := &p.records.counters[i]
		held := p.used(i, now)
		d = m.Wait(p.w[m.at:], p.blocks(m), now, held, min(cost, held))
	}
	return d
}

func (p *probe) waitOf(i int, now int64, n, cost uint64) time.Duration {
	switch {
	case cost > n:
		return Never
	case p.w != nil:
		m := &p.records.counters[i]
		return m.Wait(p.w[m.at:], p.blocks(m), now, n, cost)
	case p.sketch != nil:
		return p.sketch[i].Wait(now, n, cost)
	case p.noMemory:
		return p.records.layout.window(i)
	}
	return 0
}

// reset returns how long until the i-th counter has nothing counted.
func (p *probe) reset(i int, now int64) time.Duration {
	switch {
	case p.w != nil:
		m := &p.records.counters[i]
		return m.Reset(p.w[m.at:], p.blocks(m), now)
	case p.sketch != nil:
		return p.sketch[i].Reset(now)
	case p.noMemory:
		return p.records.layout.window(i)
	}
	return 0
}

// delay returns how long the event charged last has to wait for its turn.
func (p *probe) delay(i int, now int64) time.Duration {
	if p.w == nil {
		return 0 // a sketch allows no more than a span's worth at once
	}
	m := &p.records.counters[i]
	return m.Delay(p.w[m.at:], p.blocks(m), now)
}

// strikes returns how many hits or refusals the ban has counted.
func (p *probe) strikes(now int64) uint64 { return p.used(len(p.records.limits), now) }

// addStrike counts one. Without memory for it the ban begins later than it
// should, which is better than a ban for what was not counted.
func (p *probe) addStrike(now int64) {
	i := len(p.records.limits)
	switch {
	case p.Ban.Of == Distinct:
		p.records.ban.CountValue(p.w[p.records.ban.at:], p.records.ban.blocks, now, p.value)
	case p.fits(i, 1):
		p.charge(i, now, 1)
	}
}

// isNew reports whether the event has a value that the ban has not counted. One that it
// has counted it counts again, at now, unless r looks. A key without a record has no
// values: it is banned later than it should.
func (p *probe) isNew(r *request, now int64) bool {
	if p.value == 0 || p.w == nil {
		return false
	}
	m := p.records.ban
	if !m.HasValue(p.w[m.at:], p.blocks(m), now, p.value) {
		return true
	}
	if !r.Peek {
		p.addStrike(now)
	}
	return false
}

// clearStrikes deletes them. What a sketch has counted stays until it leaves the
// window: it cannot be taken out of it.
func (p *probe) clearStrikes() {
	if p.held && !p.copied {
		m := p.records.ban
		m.Clear(p.w[m.at:], m.blocks)
	}
}
