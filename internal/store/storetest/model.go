package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A model says what a store of a Set should do, from the documentation of package
// ratelimit: limits charge, bans observe. It has no budget and forgets nothing.
type model struct {
	set        *ratelimit.Set
	resolution int64
	records    map[place]*record
}

// A place is a rule, by name, and a key.
type place struct{ rule, key string }

// A record is what a rule knows of a key.
type record struct {
	judged  bool
	newest  int64 // when it was judged last
	limits  []*window
	cut     bool    // whether a bucket was, and not all have been empty since
	strikes *window // hits or refusals that count toward a ban
	ban     ban
}

// A ban is the newest of a key, and how many there were.
type ban struct {
	was          bool
	since, until int64
	lasts        time.Duration // as it began
	count        int
	byHand       bool
	remember     time.Duration
}

func newModel(set *ratelimit.Set, resolution time.Duration) *model {
	return &model{set: set, resolution: int64(resolution), records: make(map[place]*record)}
}

// rule returns the rule of a subject.
func (m *model) rule(s *subject) *ratelimit.Rule { return m.set.Rule(s.Outcome.Rule) }

// at returns the record of a key, a new one if there is none.
func (m *model) at(r *ratelimit.Rule, key []byte) *record {
	p := place{r.Name, string(key)}
	if m.records[p] == nil {
		m.records[p] = &record{}
		m.records[p].clear(r, m.resolution)
	}
	return m.records[p]
}

// clear forgets what was counted. Bans are not.
func (rec *record) clear(r *ratelimit.Rule, resolution int64) {
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

// A verdict is what a store should say to one request.
type verdict struct {
	at       int64 // when it is judged
	allowed  bool
	outcomes []outcome
}

// An outcome is what one rule should say. Its waiting times are not filled in: a
// session finds out whether those of the store are true.
type outcome struct {
	Outcome
	// forgotten reports whether at t, which is no earlier, nothing that was counted
	// is known any more, if nothing comes in between.
	forgotten func(t int64) bool
	// struck says that a look would have begun a ban.
	struck bool
	// tied is the limits that refuse with as much left as the one that is told: of
	// these the one that refuses for longest is to be told.
	tied []int
}

// judge says what the store should answer to r, at r.Now or at the newest time of
// a record if that is later, and counts it unless r only looks.
func (m *model) judge(r *request) verdict {
	v := verdict{at: r.Now, allowed: true}
	var recs []*record
	for i := range r.Subjects {
		rec := m.at(m.rule(&r.Subjects[i]), r.Subjects[i].Key)
		if r.Peek {
			rec = rec.clone()
		}
		if rec.judged {
			v.at = max(v.at, rec.newest)
		}
		recs = append(recs, rec)
	}
	banned := false
	for i, rec := range recs {
		rule := m.rule(&r.Subjects[i])
		rec.judged, rec.newest = true, v.at
		o := outcome{}
		o.Rule = r.Subjects[i].Outcome.Rule
		if rec.ban.holds(v.at) {
			rec.ban.extend(rule, v.at, r)
			o.Refused, o.Banned, o.BannedUntil = true, true, time.Unix(0, rec.ban.until)
			banned = banned || !rule.Shadow
		}
		v.outcomes = append(v.outcomes, o)
	}
	for i, rec := range recs {
		rule, o := m.rule(&r.Subjects[i]), &v.outcomes[i]
		switch {
		case o.Banned:
		case banned:
			o.Skipped = true
			continue
		default:
			rec.judge(rule, o, v.at, r)
		}
		v.allowed = v.allowed && (!o.Refused || rule.Shadow)
	}
	v.allowed = v.allowed && !banned
	for i, rec := range recs {
		rule, o := m.rule(&r.Subjects[i]), &v.outcomes[i]
		rec.charge(rule, o, v, r, banned)
	}
	return v
}

// judge judges one rule without charging its limits. Hits and refusals count.
func (rec *record) judge(rule *ratelimit.Rule, o *outcome, now int64, r *request) {
	if rule.Ban != nil && rule.Ban.Of == ratelimit.Hits {
		if r.Cost > 0 {
			rec.strike(rule, o, now, r.Peek)
		} else if len(rule.Limits) == 0 {
			o.Limit, o.Remaining = rule.Ban.After, under(rule.Ban.After, rec.strikes.used(now))
		}
	}
	over := false
	first, above := true, false
	var limit, remaining uint64
	var told int
	for i, l := range rule.Limits {
		n := most(l)
		left := under(n, rec.limits[i].used(now))
		over = over || r.Cost > left
		// The one with the least remaining is told, but one that the cost is
		// above before all others.
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
	if rule.Ban != nil && rule.Ban.Of == ratelimit.Refusals {
		rec.strike(rule, o, now, r.Peek)
	}
	o.Refused = true
}

// strike counts a hit or a refusal, or begins a ban if that is one too many.
func (rec *record) strike(rule *ratelimit.Rule, o *outcome, now int64, look bool) {
	b := rule.Ban
	if n := rec.strikes.used(now); n < b.After {
		rec.strikes.charge(now, 1)
		if len(rule.Limits) == 0 {
			o.Limit, o.Remaining = b.After, b.After-n-1
		}
		return
	}
	o.Refused, o.Limit, o.Remaining = true, b.After, 0
	if look {
		o.struck = true
		return
	}
	rec.strikes.charges = nil
	rec.ban.begin(b, now)
	o.Banned, o.Started, o.BannedUntil = true, true, time.Unix(0, rec.ban.until)
}

// charge charges the limits, if the fate of the event has it so, and says what is
// then left.
func (rec *record) charge(rule *ratelimit.Rule, o *outcome, v verdict, r *request, banned bool) {
	charged := !banned && !o.Banned && (v.allowed && !o.Refused ||
		rule.CountRefused && (v.allowed || !rule.Shadow))
	for i, w := range rec.limits {
		if charged && r.Cost > 0 && rule.Limits[i].N > 0 && (v.allowed || !r.Peek) { // who looks and waits was not counted
			rec.chargeTo(w, v.at, r.Cost)
		}
		if rule.Algorithm == ratelimit.LeakyBucket && v.allowed && !o.Refused && rule.Limits[i].N > 0 {
			o.Delay = max(o.Delay, w.bucket.delay(v.at))
		}
	}
	if charged && len(rule.Limits) > 0 {
		o.Charged = v.allowed && !o.Refused && !r.Peek && (r.Cost > 0 || rule.Algorithm != ratelimit.InFlight)
		o.Remaining -= min(r.Cost, o.Remaining)
	}
	banned, bans := o.Banned, len(rule.Limits) == 0
	o.forgotten = func(t int64) bool {
		for _, w := range rec.limits {
			if w.used(t) > 0 {
				return false
			}
		}
		return (!banned || t >= rec.ban.until) && (banned || !bans || rec.strikes.used(t) == 0)
	}
}

// never is when every window is empty and every ban over.
const never = 3 * int64(ratelimit.MaxSpan)

// under returns n - used, or 0.
func under(n, used uint64) uint64 { return n - min(n, used) }

func (b *ban) holds(t int64) bool { return b.was && t < b.until }

// begin begins the next ban at now.
func (b *ban) begin(rule *ratelimit.Ban, now int64) {
	remember := rule.Remember
	if remember == 0 {
		remember = 24 * time.Hour
	}
	earlier := 0
	if b.was && now-b.until <= int64(b.remember) {
		earlier = b.count
	}
	lasts := rule.Duration(earlier)
	*b = ban{was: true, since: now, until: now + int64(lasts), lasts: lasts, count: earlier + 1, remember: remember}
}

// extend starts a ban again that a rule began, if the rule says so.
func (b *ban) extend(rule *ratelimit.Rule, now int64, r *request) {
	if rule.Ban != nil && rule.Ban.Extend && !b.byHand && r.Cost > 0 && !r.Peek {
		b.until = max(b.until, now+int64(rule.Ban.Duration(b.count-1)))
	}
}

// add bans a key by hand at now, unless a ban holds for longer.
func (m *model) add(r *ratelimit.Rule, key string, now, ends int64) {
	b := &m.at(r, []byte(key)).ban
	if b.holds(now) && b.until >= ends {
		return
	}
	remember := 24 * time.Hour
	if r.Ban != nil && r.Ban.Remember != 0 {
		remember = r.Ban.Remember
	}
	if b.was && now-b.until > int64(b.remember) {
		b.count = 0
	}
	*b = ban{was: true, since: now, until: ends, count: b.count, byHand: true, remember: remember}
}

// unban ends a ban and deletes those before. It returns the ban as it was.
func (m *model) unban(rule, key string) (was ban) {
	if rec := m.records[place{rule, key}]; rec != nil {
		was, rec.ban = rec.ban, ban{}
	}
	return was
}

// reset forgets what was counted of the subjects.
func (m *model) reset(subjects []subject) {
	for i := range subjects {
		r := m.rule(&subjects[i])
		m.at(r, subjects[i].Key).clear(r, m.resolution)
	}
}

// chargeTo charges one of the limits. A bucket that is then at its most may have
// been cut, and gives nothing back until all limits are empty.
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
		subject := &s.Subjects[i]
		rule := m.rule(subject)
		if !subject.Outcome.Charged {
			continue
		}
		rec := m.at(rule, subject.Key)
		now := max(s.Now, rec.newest)
		rec.newest = now
		for _, w := range rec.limits {
			switch {
			case rule.Algorithm == ratelimit.InFlight:
				w.refund(now, s.At, s.Charged)
			case s.Actual < s.Charged:
				w.refund(now, s.At, s.Charged-s.Actual)
			case s.Actual > s.Charged:
				rec.chargeTo(w, now, s.Actual-s.Charged)
			}
		}
	}
}

// refund gives back what nobody says when it was charged, at r.Now or at the newest
// time of the record if that is later, and returns how much.
func (m *model) refund(r *adjustment) uint64 {
	rec := m.records[place{m.set.Rule(r.Rule).Name, string(r.Key)}]
	if rec == nil || !rec.judged || len(rec.limits) == 0 {
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

// update moves to another set. The counts of a rule stay if its limits do, and else the
// times are carried to the new ones. A rule with another key is another rule.
func (m *model) update(set *ratelimit.Set) {
	records := make(map[place]*record)
	for p, rec := range m.records {
		before, _ := m.set.Named(p.rule)
		r, err := set.Named(p.rule)
		if err != nil || !r.Key.Equal(before.Key) {
			continue
		}
		if r.Algorithm != before.Algorithm || !slices.Equal(r.Limits, before.Limits) {
			rec.carry(r, m.resolution)
		}
		records[p] = rec
	}
	m.set, m.records = set, records
}

// carry gives the record the limits of r, each of which takes over from the one before with
// the shortest span that is no shorter, or else from the longest.
func (rec *record) carry(r *ratelimit.Rule, resolution int64) {
	before := rec.limits
	rec.limits = nil
	for _, l := range r.Limits {
		w := newWindow(r, l, resolution)
		heir := slices.MinFunc(before, func(a, b *window) int {
			if a.span < w.span || b.span < w.span {
				return cmp.Compare(b.span, a.span)
			}
			return cmp.Compare(a.span, b.span)
		})
		for _, c := range heir.charges {
			if heir.holds(c.t, rec.newest) {
				w.charge(c.t, c.cost)
			}
		}
		rec.limits = append(rec.limits, w)
	}
}
