package storetest

import (
	"cmp"
	"slices"
	"time"

	bans "github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/windowtest"
	"github.com/lately-go/lately/ratelimit"
)

// A record is the state of a key under a rule.
type record struct {
	rule    *ratelimit.Rule
	newest  int64 // when it was judged last
	limits  []*windowtest.Limit
	cut     bool              // whether a bucket was, and not all have been empty since
	strikes *windowtest.Limit // hits or refusals that count toward a ban
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

// clear deletes what was counted, but no ban.
func (rec *record) clear(resolution int64) {
	r := rec.rule
	rec.limits, rec.cut = nil, false
	for _, l := range r.Limits {
		rec.limits = append(rec.limits, newWindow(r, l, resolution))
	}
	rec.strikes = nil
	if r.Ban != nil {
		rec.strikes = exact(r.Ban.Span)
	}
}

func (rec *record) clone() *record {
	c := *rec
	c.limits = nil
	for _, w := range rec.limits {
		c.limits = append(c.limits, w.Clone())
	}
	if rec.strikes != nil {
		c.strikes = rec.strikes.Clone()
	}
	return &c
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
			o.Limit, o.Remaining = rule.Ban.After, under(rule.Ban.After, rec.strikes.Used(now))
		}
	}
	over := false
	first, above := true, false
	var limit, remaining uint64
	var told int
	for i, l := range rule.Limits {
		n := mostFor(l, given)
		left := under(n, rec.limits[i].Used(now))
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
	if n := rec.strikes.Used(now); n < b.After {
		rec.strikes.Charge(now, 1)
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
	rec.strikes = exact(b.Span)
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
			o.Delay = max(o.Delay, w.Delay(v.at))
		}
	}
	if charged && len(rule.Limits) > 0 {
		o.Charged = v.allowed && !o.Refused && !r.Peek && (r.Cost > 0 || rule.Algorithm != ratelimit.InFlight)
		o.Remaining -= min(r.Cost, o.Remaining)
	}
	banned, bans := o.Banned, len(rule.Limits) == 0
	o.expired = func(t int64) bool {
		for _, w := range rec.limits {
			if w.Used(t) > 0 {
				return false
			}
		}
		return (!banned || t >= rec.ban.until) && (banned || !bans || rec.strikes.Used(t) == 0)
	}
}

// setN has an event at now bring n.
func (rec *record) setN(now int64, n uint64) {
	for _, w := range rec.limits {
		w.SetN(now, n)
	}
}

// under returns n - used, or 0.
func under(n, used uint64) uint64 { return n - min(n, used) }

func (b *ban) holds(t int64) bool { return b.was && t < b.until }

// begin begins the next ban at now.
func (b *ban) begin(rule *ratelimit.Ban, now int64) {
	earlier := 0
	if b.was && now-b.until <= int64(b.remember) {
		earlier = b.count
	}
	*b = ban{was: true, until: now + int64((*bans.Policy)(rule).Duration(earlier)), count: earlier + 1, remember: remembered(rule)}
}

// extend restarts a ban that a rule began, if the rule has Extend.
func (b *ban) extend(rule *ratelimit.Rule, now int64, r *request) {
	if rule.Ban != nil && rule.Ban.Extend && !b.byHand && r.Cost > 0 && !r.Peek {
		b.until = max(b.until, now+int64((*bans.Policy)(rule.Ban).Duration(b.count-1)))
	}
}

// remembered returns how long a ban counts as an earlier one after its end.
func remembered(rule *ratelimit.Ban) time.Duration {
	if rule == nil {
		rule = &ratelimit.Ban{}
	}
	return cmp.Or(rule.Remember, 24*time.Hour)
}

// chargeTo charges one limit. A bucket that is full then may have lost a part of the
// charge: nothing is given back until all limits are empty.
func (rec *record) chargeTo(w *windowtest.Limit, now int64, cost uint64) {
	rec.cut = rec.cut && slices.ContainsFunc(rec.limits, func(w *windowtest.Limit) bool { return w.Used(now) > 0 })
	w.Charge(now, cost)
	rec.cut = rec.cut || w.Full()
}

// carry gives the record the limits of its rule, each of which takes over from one before.
func (rec *record) carry(resolution int64) {
	before := rec.limits
	rec.limits = nil
	for _, l := range rec.rule.Limits {
		w := newWindow(rec.rule, l, resolution)
		if from := heir(w, before); from != nil {
			w.Carry(from, rec.newest)
		}
		rec.limits = append(rec.limits, w)
	}
}

// heir returns the limit before that w takes over from: the same one, else that with the
// shortest span that is no shorter, else the longest. What is under way and what has come in
// a span have nothing in common.
func heir(w *windowtest.Limit, before []*windowtest.Limit) *windowtest.Limit {
	if len(before) == 0 || (w.Algorithm == limit.InFlight) != (before[0].Algorithm == limit.InFlight) {
		return nil
	}
	if i := slices.IndexFunc(before, w.Same); i >= 0 {
		return before[i]
	}
	length := func(w *windowtest.Limit) time.Duration { return cmp.Or(w.Span, w.Period.Length()) }
	return slices.MinFunc(before, func(a, b *windowtest.Limit) int {
		if min(length(a), length(b)) < length(w) {
			return cmp.Compare(length(b), length(a))
		}
		return cmp.Compare(length(a), length(b))
	})
}

// newWindow returns the definition of a limit of r, with nothing counted.
func newWindow(r *ratelimit.Rule, l ratelimit.Limit, resolution int64) *windowtest.Limit {
	return windowtest.New(limit.Config{
		Algorithm: limit.Algorithm(r.Algorithm), N: l.N, Span: l.Span, Burst: l.Burst, AtMost: l.AtMost,
		Period: limit.Period(l.Per), Zone: r.Zone, Resolution: time.Duration(resolution),
	})
}

// exact returns a window of times.
func exact(span time.Duration) *windowtest.Limit {
	return windowtest.New(limit.Config{Algorithm: limit.Exact, Span: span})
}

// most returns how much a limit lets be used: its burst or N. A limit of 0 refuses
// all.
func most(l ratelimit.Limit) uint64 {
	if l.N != 0 && l.Burst != 0 {
		return l.Burst
	}
	return l.N
}

// mostFor is most for an event that brings N, if that is not 0.
func mostFor(l ratelimit.Limit, n uint64) uint64 {
	if n > 0 && l.AtMost > 0 {
		return cmp.Or(l.Burst, n)
	}
	return most(l)
}
