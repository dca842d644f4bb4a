package storetest

import (
	"cmp"
	"math"
	"slices"
	"time"

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

// A record is the state of a key under a rule.
type record struct {
	rule    *ratelimit.Rule
	newest  int64 // when it was judged last
	limits  []*window
	cut     bool    // whether a bucket was, and not all have been empty since
	strikes *window // hits or refusals that count toward a ban
	ban     ban
}

// A ban is the newest of a key, and how many there were.
type ban struct {
	was      bool
	until    int64
	count    int
	byHand   bool
	remember time.Duration
}

func newModel(set *ratelimit.Set, c *Config) *model {
	return &model{
		set: set, resolution: int64(c.Resolution), leaves: c.Leaves,
		records: make(map[place]*record), left: make(map[string]map[place]*record),
	}
}

// at returns the record of a subject, a new one if there is none.
func (m *model) at(s *subject) *record {
	r := m.set.Rule(s.Outcome.Rule)
	p := place{r.Name, string(s.Key)}
	if m.records[p] == nil {
		m.records[p] = &record{rule: r, newest: math.MinInt64}
		m.records[p].clear(m.resolution)
	}
	return m.records[p]
}

// clear deletes what was counted, but no ban.
func (rec *record) clear(resolution int64) {
	r := rec.rule
	rec.limits, rec.cut = nil, false
	for _, l := range r.Limits {
		rec.limits = append(rec.limits, newWindow(r, l, resolution))
	}
	rec.strikes = nil
	if r.Ban != nil {
		rec.strikes = newWindow(&ratelimit.Rule{Algorithm: ratelimit.Exact}, ratelimit.Limit{Span: r.Ban.Span}, resolution)
	}
}

func (rec *record) clone() *record {
	c := *rec
	c.limits = nil
	for _, w := range rec.limits {
		c.limits = append(c.limits, w.clone())
	}
	if rec.strikes != nil {
		c.strikes = rec.strikes.clone()
	}
	return &c
}

// An answer is the expected decision about one request.
type answer struct {
	at       int64 // when it is judged
	allowed  bool
	outcomes []outcome
}

// An outcome is the expected outcome of one rule, without waiting times: a session
// checks those of the store.
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
	return m.records[place{m.set.Rule(s.Outcome.Rule).Name, string(s.Key)}] != nil
}

// forget removes rec, which was made for a request that only looked, unless a refusal was counted.
func (m *model) forget(s *subject, rec *record) {
	if rec.ban == (ban{}) && (rec.strikes == nil || rec.strikes.used(rec.newest) == 0) {
		delete(m.records, place{rec.rule.Name, string(s.Key)})
	}
}

// judge judges one rule without charging its limits. Hits and refusals count; of a request whose answer the rule
// is to count, refusals.
func (rec *record) judge(o *outcome, now int64, r *request, sub *subject) {
	given, look := sub.N, sub.Look
	rule := rec.rule
	if rule.Ban != nil && rule.Ban.Of == ratelimit.Hits {
		if r.Cost > 0 && !look {
			rec.strike(o, now, r.Peek)
		} else if len(rule.Limits) == 0 {
			o.Limit, o.Remaining = rule.Ban.After, under(rule.Ban.After, rec.strikes.used(now))
		}
	}
	over := false
	first, above := true, false
	var limit, remaining uint64
	var told int
	for i, l := range rule.Limits {
		n := mostFor(l, given)
		left := under(n, rec.limits[i].used(now))
		over = over || r.Cost > left
		// LimitIndex is the limit with the least remaining, or first of all one
		// that is below the cost.
		if higher := r.Cost > n; first || higher && !above || higher == above && left < remaining {
			limit, remaining, told, above, first = n, left, i, higher, false
			o.tied = nil
		}
		if r.Cost > left && left == remaining && (r.Cost > n) == above {
			o.tied = append(o.tied, i)
		}
	}
	if !o.Refused && len(rule.Limits) > 0 {
		o.Limit, o.Remaining, o.LimitIndex = limit, remaining, told
	}
	if !over {
		return
	}
	if r.Answer {
		o.Refused = o.Refused || rule.Shadow
		return
	}
	if rule.Ban != nil && rule.Ban.Of == ratelimit.Refusals {
		rec.strike(o, now, r.Peek)
	}
	o.Refused = true
}

// strike counts a hit or a refusal, or begins a ban if that is one too many.
func (rec *record) strike(o *outcome, now int64, peek bool) {
	b := rec.rule.Ban
	if n := rec.strikes.used(now); n < b.After {
		rec.strikes.charge(now, 1)
		if len(rec.limits) == 0 {
			o.Limit, o.Remaining = b.After, b.After-n-1
		}
		return
	}
	o.Refused, o.Limit, o.Remaining = true, b.After, 0
	if peek {
		o.struck = true
		return
	}
	rec.strikes.charges = nil
	rec.ban.begin(b, now)
	o.Banned, o.Started, o.BannedUntil = true, true, time.Unix(0, rec.ban.until)
}

// charge charges the limits if the event is to be charged, and sets what is left then.
func (rec *record) charge(o *outcome, v answer, r *request, sub *subject, banned bool) {
	rule, look := rec.rule, sub.Look
	charged := !banned && !o.Banned && (v.allowed && !o.Refused ||
		rule.CountRefused && (v.allowed || !rule.Shadow))
	if r.Answer {
		charged = !o.Banned && !(rule.Shadow && o.Refused)
	}
	charged = charged && !look
	if charged && r.Cost > 0 && (v.allowed || !r.Peek) {
		rec.setN(v.at, sub.N)
	}
	for i, w := range rec.limits {
		if charged && r.Cost > 0 && max(rule.Limits[i].N, rule.Limits[i].AtMost) > 0 && (v.allowed || !r.Peek) {
			rec.chargeTo(w, v.at, r.Cost)
		}
		if rule.Algorithm == ratelimit.LeakyBucket && v.allowed && !look && !o.Refused && rule.Limits[i].N > 0 {
			o.Delay = max(o.Delay, w.bucket.delay(v.at))
		}
	}
	if charged && len(rule.Limits) > 0 {
		o.Charged = v.allowed && !o.Refused && !r.Peek && (r.Cost > 0 || rule.Algorithm != ratelimit.InFlight)
		o.Remaining -= min(r.Cost, o.Remaining)
	}
	banned, bans := o.Banned, len(rule.Limits) == 0
	o.expired = func(t int64) bool {
		for _, w := range rec.limits {
			if w.used(t) > 0 {
				return false
			}
		}
		return (!banned || t >= rec.ban.until) && (banned || !bans || rec.strikes.used(t) == 0)
	}
}

// setN has an event at now bring n.
func (rec *record) setN(now int64, n uint64) {
	for _, w := range rec.limits {
		if w.bucket != nil {
			w.bucket.setN(now, n)
		}
	}
}

// never is when every window is empty and every ban over.
const never = 3 * int64(ratelimit.MaxSpan)

// under returns n - used, or 0.
func under(n, used uint64) uint64 { return n - min(n, used) }

func (b *ban) holds(t int64) bool { return b.was && t < b.until }

// begin begins the next ban at now.
func (b *ban) begin(rule *ratelimit.Ban, now int64) {
	earlier := 0
	if b.was && now-b.until <= int64(b.remember) {
		earlier = b.count
	}
	*b = ban{was: true, until: now + int64(rule.Duration(earlier)), count: earlier + 1, remember: remembered(rule)}
}

// extend restarts a ban that a rule began, if the rule has Extend.
func (b *ban) extend(rule *ratelimit.Rule, now int64, r *request) {
	if rule.Ban != nil && rule.Ban.Extend && !b.byHand && r.Cost > 0 && !r.Peek {
		b.until = max(b.until, now+int64(rule.Ban.Duration(b.count-1)))
	}
}

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

// remembered returns how long a ban counts as an earlier one after its end.
func remembered(rule *ratelimit.Ban) time.Duration {
	if rule == nil {
		rule = &ratelimit.Ban{}
	}
	return cmp.Or(rule.Remember, 24*time.Hour)
}

// unban ends a ban and deletes those before. It returns the ban as it was.
func (m *model) unban(rule, key string) (was ban) {
	if rec := m.records[place{rule, key}]; rec != nil {
		was, rec.ban = rec.ban, ban{}
	}
	return was
}

// chargeTo charges one of the limits. A bucket that is full then may have lost a part of
// the charge: nothing is given back until all limits are empty.
func (rec *record) chargeTo(w *window, now int64, cost uint64) {
	rec.cut = rec.cut && slices.ContainsFunc(rec.limits, func(w *window) bool { return w.used(now) > 0 })
	w.charge(now, cost)
	if b := w.bucket; b != nil && b.level.Cmp(b.full()) >= 0 {
		rec.cut = true
	}
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
				w.refund(now, s.At, s.Charged)
			case s.Actual < s.Charged:
				w.refund(now, s.At, s.Charged-s.Actual)
			case s.Actual > s.Charged:
				rec.chargeTo(w, now, s.Actual-s.Charged)
			}
		}
	}
}

// refund gives back what was charged at an unknown time, at r.Now or at the newest
// time of the record if that is later, and returns how much.
func (m *model) refund(r *adjustment) uint64 {
	rec := m.records[place{m.set.Rule(r.Rule).Name, string(r.Key)}]
	if rec == nil || rec.newest == math.MinInt64 || len(rec.limits) == 0 {
		return 0
	}
	rec.newest = max(rec.newest, r.Now)
	if rec.cut {
		return 0
	}
	taken := uint64(1<<64 - 1)
	for _, w := range rec.limits {
		taken = min(taken, w.refundOldest(rec.newest, r.N))
	}
	return taken
}

// update moves to another set. The counts of a rule stay if its limits do, and else they
// are carried to the new ones. A rule with another key is another rule.
func (m *model) update(set *ratelimit.Set) {
	all := m.leave()
	m.set, m.records = set, make(map[place]*record)
	for i := range set.Len() {
		r := set.Rule(i)
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

// carry gives the record the limits of its rule, each of which takes over from one before.
func (rec *record) carry(resolution int64) {
	before := rec.limits
	rec.limits = nil
	for _, l := range rec.rule.Limits {
		w := newWindow(rec.rule, l, resolution)
		if from := w.heir(before); from != nil {
			w.carry(from, rec.newest)
		}
		rec.limits = append(rec.limits, w)
	}
}

// heir returns the window that w takes over from: that of the same limit, else that with the
// shortest span that is no shorter, else the longest. What is under way and what has come in
// a span have nothing in common.
func (w *window) heir(before []*window) *window {
	if len(before) == 0 || (w.rule.Algorithm == ratelimit.InFlight) != (before[0].rule.Algorithm == ratelimit.InFlight) {
		return nil
	}
	if i := slices.IndexFunc(before, w.same); i >= 0 {
		return before[i]
	}
	span := w.limit.Window()
	return slices.MinFunc(before, func(a, b *window) int {
		if a.limit.Window() < span || b.limit.Window() < span {
			return cmp.Compare(b.limit.Window(), a.limit.Window())
		}
		return cmp.Compare(a.limit.Window(), b.limit.Window())
	})
}
