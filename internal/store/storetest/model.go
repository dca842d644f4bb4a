package storetest

import (
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

// A model is the expected behaviour of a store, from the documentation of package
// ratelimit: limits charge, bans observe. It has no budget and evicts nothing.
type model struct {
	set        *ratelimit.Set
	resolution int64
	leaves     bool // see Config.Leaves
	records    map[place]*record
	left       map[string]map[place]*record // of rules that are gone, by the fields of their key
}

// A place is a rule, by name, and a key.
type place struct{ rule, key string }

func newModel(set *ratelimit.Set, c *Config) *model {
	return &model{
		set: set, resolution: int64(c.Resolution), leaves: c.Leaves,
		records: make(map[place]*record), left: make(map[string]map[place]*record),
	}
}

// at returns the record of a subject, a new one if there is none.
func (m *model) at(s *subject) *record {
	r := m.set.Rules()[s.Outcome.Rule]
	p := place{r.Name, string(s.Key)}
	if m.records[p] == nil {
		m.records[p] = &record{rule: r, newest: math.MinInt64}
		m.records[p].clear(m.resolution)
	}
	return m.records[p]
}

// An answer is the expected decision about one request.
type answer struct {
	at       int64 // when it is judged
	allowed  bool
	outcomes []outcome
}

// An outcome is the expected outcome of one rule, without waiting times, which a
// session checks against the store.
type outcome struct {
	Outcome
	// expired reports whether all that was counted has expired at t, which is no
	// earlier, if no event comes in between.
	expired func(t int64) bool
	// struck says that the event would start a ban, but is a peek.
	struck bool
	// tied is the limits that refuse with as much left as LimitIndex. The store
	// returns the one of these that refuses for longest.
	tied []int
}

// judge returns the expected answer to r, at r.Now or at the newest time of a record
// if that is later, and counts r unless it is a peek.
func (m *model) judge(r *request) answer {
	v := answer{at: r.Now, allowed: !r.Refused}
	var recs []*record
	for i := range r.Subjects {
		known := m.known(&r.Subjects[i])
		rec := m.at(&r.Subjects[i])
		if r.Subjects[i].Look && !known {
			defer m.forget(&r.Subjects[i], rec)
		}
		if r.Peek {
			rec = rec.clone()
		}
		v.at = max(v.at, rec.newest)
		recs = append(recs, rec)
	}
	banned := false
	for i, rec := range recs {
		rec.newest = v.at
		o := outcome{}
		o.Rule = r.Subjects[i].Outcome.Rule
		if rec.ban.holds(v.at) {
			if !r.Subjects[i].Look {
				rec.ban.extend(rec.rule, v.at, r)
			}
			o.Refused, o.Banned, o.BannedUntil = true, true, time.Unix(0, rec.ban.until)
			banned = banned || !rec.rule.Shadow && !r.Answer
		}
		v.outcomes = append(v.outcomes, o)
	}
	for i, rec := range recs {
		o := &v.outcomes[i]
		switch {
		case o.Banned:
		case banned:
			o.Skipped = true
			continue
		default:
			rec.judge(o, v.at, r, &r.Subjects[i])
		}
		v.allowed = v.allowed && (!o.Refused || rec.rule.Shadow || r.Answer)
	}
	v.allowed = v.allowed && !banned
	for i, rec := range recs {
		rec.charge(&v.outcomes[i], v, r, &r.Subjects[i], banned)
	}
	return v
}

// known reports whether there is a record of a subject.
func (m *model) known(s *subject) bool {
	return m.records[place{m.set.Rules()[s.Outcome.Rule].Name, string(s.Key)}] != nil
}

// forget removes rec, which was made for a request that only looked, unless a refusal was counted.
func (m *model) forget(s *subject, rec *record) {
	if rec.ban == (ban{}) && (rec.strikes == nil || rec.strikes.Used(rec.newest) == 0) {
		delete(m.records, place{rec.rule.Name, string(s.Key)})
	}
}

// never is when every window is empty and every ban over.
const never = 3 * int64(limit.MaxSpan)

// add bans a key by hand at now, unless a ban holds for longer.
func (m *model) add(s subject, now, ends int64) {
	rec := m.at(&s)
	b := &rec.ban
	if b.holds(now) && b.until >= ends {
		return
	}
	if b.was && now-b.until > int64(b.remember) {
		b.count = 0
	}
	*b = ban{was: true, until: ends, count: b.count, byHand: true, remember: remembered(rec.rule.Ban)}
}

// unban ends a ban and deletes those before. It returns the ban as it was.
func (m *model) unban(rule, key string) (was ban) {
	if rec := m.records[place{rule, key}]; rec != nil {
		was, rec.ban = rec.ban, ban{}
	}
	return was
}

// settle corrects a charge. It is for subjects that were not reset since.
func (m *model) settle(s *settlement) {
	for i := range s.Subjects {
		if !s.Subjects[i].Outcome.Charged {
			continue
		}
		rec := m.at(&s.Subjects[i])
		now := max(s.Now, rec.newest)
		rec.newest = now
		for _, w := range rec.limits {
			switch {
			case rec.rule.Algorithm == ratelimit.InFlight:
				w.Refund(now, s.At, s.Charged)
			case s.Actual < s.Charged:
				w.Refund(now, s.At, s.Charged-s.Actual)
			case s.Actual > s.Charged:
				rec.chargeTo(w, now, s.Actual-s.Charged)
			}
		}
	}
}

// refund gives back what was charged at an unknown time, at r.Now or at the newest
// time of the record if that is later, and returns how much.
func (m *model) refund(r *adjustment) uint64 {
	rec := m.records[place{m.set.Rules()[r.Rule].Name, string(r.Key)}]
	if rec == nil || rec.newest == math.MinInt64 || len(rec.limits) == 0 {
		return 0
	}
	rec.newest = max(rec.newest, r.Now)
	if rec.cut {
		return 0
	}
	taken := uint64(1<<64 - 1)
	for _, w := range rec.limits {
		taken = min(taken, w.RefundOldest(rec.newest, r.N))
	}
	return taken
}

// update moves to another set. The counts of a rule stay if its limits do, and else they
// are carried to the new ones. A rule with another key is another rule.
func (m *model) update(set *ratelimit.Set) {
	all := m.leave()
	m.set, m.records = set, make(map[place]*record)
	for _, r := range set.Rules() {
		for p, rec := range all[r.Key.String()] {
			if p.rule != r.Name {
				continue
			}
			before := rec.rule
			if rec.rule = r; r.Algorithm != before.Algorithm || r.Zone.String() != before.Zone.String() || !slices.Equal(r.Limits, before.Limits) {
				rec.carry(m.resolution)
			}
			m.records[p] = rec
			delete(all[r.Key.String()], p)
		}
	}
	if m.left = all; !m.leaves {
		clear(m.left)
	}
}

// leave returns all records by the fields of their key.
func (m *model) leave() map[string]map[place]*record {
	all := m.left
	for p, rec := range m.records {
		fields := rec.rule.Key.String()
		if all[fields] == nil {
			all[fields] = make(map[place]*record)
		}
		all[fields][p] = rec
	}
	return all
}
