package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/shard"
)

// judge fills in the outcome of every subject of r at time now, and charges.
// It is the whole of "limits charge, bans observe", in the order that the
// package documentation gives. The probes' shards are locked.
func judge(probes []probe, r *Request, now int64) {
	banned, refused := false, false
	for i := range probes {
		o := &r.Subjects[i].Outcome
		probes[i].holds(o, now)
		banned = banned || o.Banned && !probes[i].Shadow
	}
	for i := range probes {
		p, o := &probes[i], &r.Subjects[i].Outcome
		if !o.Banned {
			if banned {
				o.Skipped = true
				continue
			}
			p.observe(o, now, r.Cost)
			p.limit(o, now, r.Cost)
		}
		refused = refused || o.Refused && !p.Shadow
	}
	for i := range probes {
		p, o := &probes[i], &r.Subjects[i].Outcome
		p.settle(o, now, r.Cost, refused || banned, banned)
	}
}

// holds sets o to a ban that holds at now, if one does.
func (p *probe) holds(o *Outcome, now int64) {
	*o = Outcome{Rule: o.Rule}
	if p.Ban == nil {
		return
	}
	if until := shard.Time(p.rec[wordUntil]); now < until {
		p.refuseUntil(o, until)
	}
}

func (p *probe) refuseUntil(o *Outcome, until int64) {
	o.Refused, o.Banned = true, true
	o.Limit, o.Remaining = p.Ban.After, 0
	o.BannedUntil = time.Unix(0, until)
}

// observe counts a hit for a ban after hits, unless the event only looks.
func (p *probe) observe(o *Outcome, now int64, cost uint64) {
	switch {
	case p.Ban == nil || p.Ban.Of != Hits:
	case cost > 0:
		p.strike(o, now)
	case len(p.limits) == 0:
		o.Limit, o.Remaining = p.ban.n, p.ban.n-p.ban.advance(p.shard, p.rec, now)
	}
}

// strike counts one hit or refusal toward the ban, and starts it when that was
// one too many.
func (p *probe) strike(o *Outcome, now int64) {
	if count := p.ban.advance(p.shard, p.rec, now); count < p.ban.n {
		p.ban.charge(p.shard, p.rec, now, 1)
		if len(p.Limits) == 0 {
			o.Limit, o.Remaining = p.ban.n, p.ban.n-count-1
		}
		return
	}
	p.ban.clear(p.shard, p.rec)
	until, bans := shard.Time(p.rec[wordUntil]), p.rec[wordBans]
	if until < now-int64(p.Ban.remember()) {
		bans = 0
	}
	until = now + int64(p.Ban.Duration(int(bans)))
	p.rec[wordUntil], p.rec[wordBans] = shard.Stamp(until), bans+1
	o.Started = true
	p.refuseUntil(o, until)
}

// limit judges the rule's limits without charging them. A refusal counts
// toward the rule's own ban.
func (p *probe) limit(o *Outcome, now int64, cost uint64) {
	over := false
	for i := range p.limits {
		m := &p.limits[i]
		count := m.advance(p.shard, p.rec, now)
		left := m.n - min(count, m.n)
		over = over || cost > left
		if !o.Banned && (i == 0 || left < o.Remaining) {
			o.Limit, o.Remaining = m.n, left
		}
	}
	if !over {
		return
	}
	if p.Ban != nil && p.Ban.Of == Refusals {
		p.strike(o, now)
	}
	o.Refused = true
}

// settle charges the limits as the event's fate has it, and fills in what is
// then left and for how long.
func (p *probe) settle(o *Outcome, now int64, cost uint64, refused, banned bool) {
	charged := !banned && !o.Banned && p.charges(o, refused)
	judged := !o.Skipped && (!o.Banned || o.Started) // and so advanced to now
	for i := range p.limits {
		m := &p.limits[i]
		if !judged {
			m.advance(p.shard, p.rec, now)
		}
		if charged {
			m.charge(p.shard, p.rec, now, cost)
		}
		count := m.held(p.rec)
		if refused || o.Refused {
			o.RetryAfter = longer(o.RetryAfter, m.wait(p.shard, p.rec, now, count, cost))
		}
		o.ResetAfter = max(o.ResetAfter, m.reset(p.shard, p.rec, now, count))
	}
	if charged && len(p.limits) > 0 {
		o.Remaining -= min(cost, o.Remaining)
	}
	if p.Ban != nil {
		p.settleBan(o, now, refused)
	}
}

// charges reports whether the limits count an event that no ban holds for: an
// admitted one, unless the rule itself (a shadow rule, then) would refuse it;
// any other only if the rule counts refused events. A shadow rule never counts
// what others refused.
func (p *probe) charges(o *Outcome, refused bool) bool {
	if refused && p.Shadow {
		return false
	}
	return p.CountRefused || !refused && !o.Refused
}

// settleBan adds to the waiting times what the ban asks for. A client whose
// next event would be one hit too many has to wait for that as well.
func (p *probe) settleBan(o *Outcome, now int64, refused bool) {
	if o.Banned {
		left := o.BannedUntil.Sub(time.Unix(0, now))
		o.RetryAfter = longer(o.RetryAfter, left)
		o.ResetAfter = max(o.ResetAfter, left)
	}
	count := p.ban.advance(p.shard, p.rec, now)
	if p.Ban.Of == Hits && (refused || o.Refused) {
		o.RetryAfter = longer(o.RetryAfter, p.ban.wait(p.shard, p.rec, now, count, 1))
	}
	if len(p.limits) == 0 && !o.Banned {
		o.ResetAfter = max(o.ResetAfter, p.ban.reset(p.shard, p.rec, now, count))
	}
}

// longer returns the longer of two waiting times, of which Never is longest.
func longer(a, b time.Duration) time.Duration {
	if a == Never || b == Never {
		return Never
	}
	return max(a, b)
}
