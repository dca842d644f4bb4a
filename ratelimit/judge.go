package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// judge fills in the outcome of every subject of r at time now, and charges. It
// is the whole of "limits charge, bans observe", in the order that the package
// documentation gives. What the probes count in is locked.
func (m *memory) judge(probes []probe, r *request, now int64) {
	if m.judgePlain(probes, r, now) {
		return
	}
	banned, refused := false, r.Refused
	for i := range probes {
		p := &probes[i]
		if p.adapt != nil {
			p.follow(r)
		}
		m.holds(p, r, now)
		banned = banned || p.o.Banned && !p.Shadow && !r.Answer
	}
	for i := range probes {
		p := &probes[i]
		if !p.o.Banned {
			if banned {
				p.o.Skipped = true
				continue
			}
			m.observe(p, r, now)
			m.limit(p, r, now)
		}
		refused = refused || p.o.Refused && !p.Shadow && !r.Answer
	}
	for i := range probes {
		p := &probes[i]
		p.charged(r, now, refused || banned, banned)
		r.Subjects[i].Mark = p.records.mark()
		if !r.Peek {
			p.judged(r, now)
		}
	}
}

// follow gives p the N of its Adapt, and counts the event there. It is for when the
// decision is sure to be made: a stale request is made again.
func (p *probe) follow(r *request) {
	if r.Peek || r.Cost == 0 || p.look {
		p.n = p.adapt.n.Load()
	} else {
		p.n = p.adapt.follow(r.Now)
	}
}

// judged notes that p was judged at now, and counts its outcome.
func (p *probe) judged(r *request, now int64) {
	if p.held {
		p.w[wordNewest] = keytable.Stamp(now)
	} else if p.sketch != nil || !p.look {
		p.decisions.elsewhere(p.noMemory)
	}
	if counted(r, p.look, p.o) {
		p.decisions.count(p.o, p.Shadow)
	}
}

// holds clears the outcome, and sets it to the ban of the key, or of a network around it, that holds at now and ends last.
func (m *memory) holds(p *probe, r *request, now int64) {
	*p.o = outcome{Rule: p.o.Rule}
	until, ok := p.bannedUntil(r, now)
	if ok && p.Ban != nil && p.Ban.Extend && r.Cost > 0 && !r.Peek && !p.look {
		was := until
		until, ok = m.bans.Extend(p.id, p.hash, bytesOf(p.key), p.Ban.policy(), now, m.config.JitterSeed) // or it is unbanned at this moment
		p.extended = ok && until > was
	}
	if end, holds := m.networkUntil(p.memoryRule, bytesOf(p.key), now); holds && (!ok || end > until) {
		until, ok = end, true
	}
	if ok {
		p.refuseUntil(until)
	}
}

func (p *probe) refuseUntil(until int64) {
	o := p.o
	o.Refused, o.Banned = true, true
	o.Remaining, o.LimitIndex = 0, 0
	o.BannedUntil = time.Unix(0, until)
	switch {
	case p.Ban != nil:
		o.Limit = p.Ban.After
	case len(p.Limits) > 0:
		o.Limit = p.limitN(0)
	}
}

// observe counts a hit for a ban after hits or distinct values, unless the event only
// looks.
func (m *memory) observe(p *probe, r *request, now int64) {
	if p.Ban == nil || p.Ban.Of == Refusals {
		return
	}
	if r.Cost > 0 && !p.look && (p.Ban.Of == Hits || p.isNew(r, now)) {
		m.strike(p, r, now)
	} else if len(p.Limits) == 0 {
		p.o.Limit, p.o.Remaining = p.Ban.After, p.Ban.After-min(p.strikes(now), p.Ban.After)
	}
}

// strike counts one hit or refusal toward the ban, and starts it when that was
// one too many.
func (m *memory) strike(p *probe, r *request, now int64) {
	o := p.o
	count := p.strikes(now)
	if count < p.Ban.After {
		if !r.Peek {
			p.addStrike(now)
		}
		if len(p.Limits) == 0 {
			o.Limit, o.Remaining = p.Ban.After, p.Ban.After-count-1
			o.ResetAfter = p.Ban.Span // also if it was not counted, since it only looks
		}
		return
	}
	o.Refused = true
	o.Limit, o.Remaining = p.Ban.After, 0
	if r.Peek || !p.held {
		return // a sketch overcounts, so it starts no ban
	}
	until, ok := m.bans.Start(p.id, p.hash, bytesOf(p.key), p.Ban.policy(), now, m.config.JitterSeed)
	if !ok {
		return // no memory for another ban: refused all the same, and counted
	}
	p.record.SetMark()
	p.clearStrikes()
	o.Started = true
	p.refuseUntil(until)
}

// limit judges the rule's limits without charging them. A refusal counts
// toward the rule's own ban.
func (m *memory) limit(p *probe, r *request, now int64) {
	o := p.o
	over, above, told := false, false, 0
	for i := range p.records.limits {
		n := p.most(i)
		used := p.used(i, now)
		left := n - min(used, n)
		over = over || r.Cost > left || !p.look && !p.fits(i, r.Cost)
		if o.Banned || o.Refused {
			continue
		}
		// The limit that is told is the one with the least remaining, and of
		// such the one that refuses for longest, but one that the cost is above
		// before all others.
		if higher := r.Cost > n; i == 0 || higher && !above || higher == above &&
			(left < o.Remaining || left == o.Remaining && p.refusesLonger(i, told, now, r.Cost, left)) {
			o.Limit, o.Remaining, o.LimitIndex, told, above = n, left, i, i, higher
		}
	}
	if !over {
		return
	}
	if r.Answer {
		o.Refused = o.Refused || p.Shadow // it would have refused the request, so there would be no answer to count
		return
	}
	if p.Ban != nil && p.Ban.Of == Refusals {
		m.strike(p, r, now)
	}
	o.Refused = true
}

// refusesLonger reports whether the i-th limit refuses cost for longer than the
// j-th. Both have as much left.
func (p *probe) refusesLonger(i, j int, now int64, cost, left uint64) bool {
	return cost > left && p.wait(i, now, cost) > p.wait(j, now, cost)
}

// charged charges the limits if the event's outcome says so, and fills in what is
// then left and for how long.
func (p *probe) charged(r *request, now int64, refused, banned bool) {
	o := p.o
	charged := !banned && !o.Banned && !p.look && p.charges(r, refused)
	judged := !o.Skipped && (!o.Banned || o.Started) // and so advanced to now
	for i := range p.records.limits {
		if !judged {
			p.used(i, now)
		}
		switch {
		case !charged:
		case refused && (r.Peek || !p.fits(i, r.Cost)): // who looks and waits was not counted
		default:
			if r.Answer {
				p.fits(i, r.Cost) // else a log keeps the newest
			}
			p.charge(i, now, r.Cost)
			if m := &p.records.counters[i]; p.copied && m.blocks != nil && r.Cost > 0 { // not charged, as it shares blocks
				o.ResetAfter = max(o.ResetAfter, m.Keeps(p.w[m.at:], m.view, now, r.Cost))
			}
		}
		if refused || o.Refused {
			o.RetryAfter = max(o.RetryAfter, p.wait(i, now, r.Cost))
		} else if p.Algorithm == LeakyBucket && !p.look {
			o.Delay = max(o.Delay, p.delay(i, now))
		}
		o.ResetAfter = max(o.ResetAfter, p.reset(i, now))
	}
	if charged && len(p.Limits) > 0 {
		o.Charged = !refused && (!o.Refused || r.Answer) && !r.Peek && (r.Cost > 0 || p.Algorithm != InFlight)
		o.Remaining -= min(r.Cost, o.Remaining)
	}
	if p.Ban != nil || o.Banned {
		p.addBanWait(now, r.Cost > 0 && !p.look && (refused || o.Refused))
	}
}

// charges reports whether the limits count an event that no ban holds for: an
// allowed one, unless the rule itself (a shadow rule, then) would refuse it;
// any other only if the rule counts refused events. A shadow rule never counts
// what others refused.
func (p *probe) charges(r *request, refused bool) bool {
	if r.Answer {
		return !p.Shadow || !p.o.Refused
	}
	if refused && p.Shadow {
		return false
	}
	return p.CountRefused || !refused && !p.o.Refused
}

// addBanWait adds to the waiting times what the ban asks for. A client whose
// next event would be one hit too many has to wait for that as well, if it is one
// that counts and comes again.
func (p *probe) addBanWait(now int64, again bool) {
	o := p.o
	if o.Banned {
		left := o.BannedUntil.Sub(time.Unix(0, now))
		o.RetryAfter = max(o.RetryAfter, left)
		o.ResetAfter = max(o.ResetAfter, left)
	}
	if p.Ban == nil {
		return
	}
	p.strikes(now)
	if p.Ban.Of == Hits && again {
		o.RetryAfter = max(o.RetryAfter, p.waitOf(len(p.records.limits), now, max(p.Ban.After, 1), 1))
	}
	if len(p.Limits) == 0 && !o.Banned {
		o.ResetAfter = max(o.ResetAfter, p.reset(len(p.records.limits), now))
	}
}

// isPlain reports whether judgePlain can judge under the rule: it has one limit, and
// nothing more than a ban after refusals.
func (mr *memoryRule) isPlain() bool {
	return mr.fast && len(mr.Limits) == 1 && (mr.Ban == nil || mr.Ban.Of == Refusals)
}

// judgePlain is judge for the most common case: several plain rules, each with a record
// of its key and without a ban of it, and no refusal that a ban counts. It reports false
// otherwise, and has then charged nothing.
//
// It is a second implementation because judge asks in three passes what kind of rule each
// is, where its key is counted and what is to be told of its limits, which costs 25 ns a
// rule. TestPlainRulesDecideAlike compares the two.
func (m *memory) judgePlain(probes []probe, r *request, now int64) bool {
	if r.Peek || r.Cost == 0 || r.Looks || r.Answer || r.Refused || m.networks.Load() != nil {
		return false
	}
	refused := false
	for i := range probes {
		p := &probes[i]
		if !p.plain || !p.held || p.record.Flag() || p.record.Marked() {
			return false
		}
		l := &p.records.limits[0]
		w := p.w[l.at:]
		n := p.limitN(0)
		left := n - min(l.Advance(w, l.blocks, now), n)
		over := r.Cost > left
		if over && p.Ban != nil || !over && !l.Reserve(w, l.blocks, r.Cost) {
			return false
		}
		refused = refused || over
		p.o.Remaining, p.o.Refused = left, over
	}
	for i := range probes {
		probes[i].judgedPlain(r, now, refused)
		r.Subjects[i].Mark = probes[i].records.mark()
	}
	return true
}

// judgedPlain charges the limit of a plain rule, unless a rule has refused the event, and
// fills in the rest of the outcome.
func (p *probe) judgedPlain(r *request, now int64, refused bool) {
	l, o := &p.records.limits[0], p.o
	w := p.w[l.at:]
	*o = outcome{Rule: o.Rule, Refused: o.Refused, Limit: p.limitN(0), Remaining: o.Remaining}
	if refused {
		o.RetryAfter = l.Wait(w, l.blocks, now, o.Limit, r.Cost)
	} else {
		l.Charge(w, l.blocks, now, r.Cost)
		o.Charged = true
		o.Remaining -= r.Cost
		if p.Algorithm == LeakyBucket {
			o.Delay = l.Delay(w, l.blocks, now)
		}
	}
	o.ResetAfter = l.Reset(w, l.blocks, now)
	p.w[wordNewest] = keytable.Stamp(now)
	p.decisions.stripe().decided(!o.Refused, false)
}
