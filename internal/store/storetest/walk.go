package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A walk is a session of random steps. Each answer of the store is compared with
// the model's.
type walk struct {
	*session
	rules    []ratelimit.Rule // those of the start, with the limits that they got last
	requests []unsettled      // the latest
	changes  int              // of limits
}

// An unsettled request may be settled. The model settles the counted part of it,
// without what was reset since.
type unsettled struct {
	*request
	counted []subject
}

// A step is what may happen in a walk.
type step func(*walk)

// walking returns a check of random steps under random rules, some of them with the
// algorithm a. Steps that are given more than once happen more often.
func walking(rules func(c *check, a ratelimit.Algorithm) []ratelimit.Rule, steps ...step) func(*check) {
	return func(c *check) {
		for _, a := range c.algorithms() {
			for range 8 {
				w := &walk{rules: rules(c, a)}
				w.session = c.session(w.rules...)
				if c.config.SetClock == nil && !slices.ContainsFunc(w.rules, func(r ratelimit.Rule) bool { return r.Ban != nil || r.CountRefused }) && c.rnd.IntN(4) == 0 {
					w.at([]int64{-ends, -1, 1 << 60, ends - int64(time.Second)}[c.rnd.IntN(4)])
				}
				for range c.config.Steps {
					steps[c.rnd.IntN(len(steps))](w)
					w.pass(w.gap())
				}
			}
		}
	}
}

// take takes. If that is refused, it sometimes tries again 1 step of the resolution
// before RetryAfter and at RetryAfter.
func (w *walk) take() {
	cost := w.cost()
	subjects := w.subjects()
	r, _ := w.session.take(cost, slices.Clone(subjects)...)
	w.keep(r)
	if wait := w.wait(r); wait > 0 && wait < longIdle && w.rnd.IntN(4) == 0 {
		w.pass(wait - w.config.Resolution)
		w.session.peek(cost, slices.Clone(subjects)...)
		w.pass(w.config.Resolution)
		w.session.take(cost, subjects...)
	}
}

// peek peeks, also at later times.
func (w *walk) peek() {
	now := w.now
	if w.config.SetClock == nil {
		w.pass(w.gap())
	}
	r, _ := w.session.peek(w.cost(), w.subjects()...)
	w.now = now
	w.keep(r)
}

// keep keeps r for settle; if a rule counts refused requests, instead of those before: a
// log that was charged beyond its limit since gives nothing back.
func (w *walk) keep(r *request) {
	if w.countsRefused() {
		w.requests = nil
	}
	w.requests = append(w.requests[max(0, len(w.requests)-30):], unsettled{r, slices.Clone(r.Subjects)})
}

// settle settles an earlier request, charged or not.
func (w *walk) settle() {
	if len(w.requests) == 0 {
		return
	}
	i := w.rnd.IntN(len(w.requests))
	r := w.requests[i]
	w.requests = slices.Delete(w.requests, i, i+1)
	w.settleCounted(r.request, w.rnd.Uint64N(min(r.Cost, math.MaxUint64-1)+1), r.counted)
}

func (w *walk) reset() {
	rule, key := w.anyRule(), w.anyKey()
	w.session.reset(about(rule, key))
	for _, r := range w.requests {
		for i := range r.counted {
			if s := &r.counted[i]; s.Outcome.Rule == rule && string(s.Key) == key {
				s.Outcome.Charged = false
			}
		}
	}
}

func (w *walk) refund() {
	_, n := w.some()
	amounts := []uint64{0, 1, w.rnd.Uint64N(n + 1), n, 1 << 40, math.MaxUint64}
	w.session.refund(amounts[w.rnd.IntN(len(amounts))], w.anyRule(), w.anyKey())
}

func (w *walk) ban() {
	if w.now < w.base-math.MaxInt64/2 {
		return // no Duration is as long as it would take until its end
	}
	w.session.ban(w.anyRule(), w.anyKey(), w.base+(1+w.rnd.Int64N(5))*int64(time.Hour))
}

func (w *walk) unban() { w.session.unban(w.anyRule(), w.anyKey()) }

// update moves the store to some of the rules of the start, in another order, with changes
// that the model knows to keep the counts, or with another key.
func (w *walk) update() {
	rules := slices.Clone(w.rules)
	w.rnd.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
	for i := range rules {
		r := &rules[i]
		r.Shadow = w.rnd.IntN(4) == 0
		r.OnStoreFailure = []ratelimit.FailPolicy{ratelimit.FailLocal, ratelimit.FailOpen}[w.rnd.IntN(2)]
		r.When = match.When{Path: []string{"/x*"}[:w.rnd.IntN(2)]}
		b := *r.Ban
		b.Extend, b.For = w.rnd.IntN(2) == 0, time.Duration(1+w.rnd.IntN(3))*time.Hour
		r.Ban = &b
		if w.rnd.IntN(8) == 0 {
			r.Key = w.keyed(match.Host)
		}
		if slices.Contains(logged, r.Algorithm) && w.rnd.IntN(2) == 0 {
			w.changes++ // no limits twice
			r.Limits = []ratelimit.Limit{{N: 10 + w.rnd.Uint64N(30), Span: r.Limits[0].Span + time.Duration(w.changes)*time.Millisecond}}
			w.rules[slices.IndexFunc(w.rules, func(o ratelimit.Rule) bool { return o.Name == r.Name })].Limits = r.Limits
		}
	}
	before := w.model.set
	w.session.update(w.set(rules[:1+w.rnd.IntN(len(rules))]...))
	for i := range w.requests {
		r := &w.requests[i]
		r.Subjects, r.counted = w.renumbered(r.Subjects, before, false), w.renumbered(r.counted, before, true)
	}
}

// renumbered returns the subjects of an earlier set whose rules count on in the present one,
// under the same limits if those are meant alone.
func (w *walk) renumbered(subjects []subject, before *ratelimit.Set, alike bool) (kept []subject) {
	for i, r := range w.model.set.Rules() {
		for _, s := range subjects {
			was, is := before.Rules()[s.Outcome.Rule], r
			if was.Name == is.Name && keyvalue.Equal(was.Key, is.Key) && (!alike || slices.Equal(was.Limits, is.Limits)) {
				s.Outcome.Rule = i
				kept = append(kept, s)
			}
		}
	}
	return kept
}

// jump sets the clock, but back only if it is not the store's own.
func (w *walk) jump() {
	jumps := []time.Duration{
		-1, 1, -time.Millisecond, -time.Second, time.Minute, -time.Minute, time.Hour, -time.Hour,
		100 * 24 * time.Hour, -90 * 24 * time.Hour, 30 * 365 * 24 * time.Hour,
	}
	if jump := jumps[w.rnd.IntN(len(jumps))]; jump > 0 || w.config.SetClock == nil {
		w.pass(jump)
	}
}

// anyRule returns the number of some rule.
func (w *walk) anyRule() int { return w.rnd.IntN(len(w.model.set.Rules())) }

// anyKey returns one of two keys.
func (w *walk) anyKey() string { return string(rune('a' + w.rnd.IntN(2))) }

// subjects returns the subjects of a request: most of the rules.
func (w *walk) subjects() (some []subject) {
	one, alike := w.anyKey(), w.config.Compensates && !w.takenBackExactly()
	for i, r := range w.model.set.Rules() {
		key := w.anyKey()
		if alike {
			key = one
		}
		if alike && len(some) > 0 && !keyvalue.Equal(r.Key, w.model.set.Rules()[some[0].Outcome.Rule].Key) {
			continue // it would be another subject
		}
		if w.rnd.IntN(4) > 0 {
			some = append(some, w.given(about(i, key)))
		}
	}
	if len(some) == 0 {
		return []subject{w.given(about(w.anyRule(), one))}
	}
	return some
}

// given returns s with an N that its event brings, if its rule takes one: most of the time.
func (w *walk) given(s subject) subject {
	for _, l := range w.model.set.Rules()[s.Outcome.Rule].Limits {
		if l.AtMost > 0 && w.rnd.IntN(4) > 0 {
			switch w.rnd.IntN(4) {
			case 0:
				s.N = 1 + w.rnd.Uint64N(l.AtMost)
			case 1: // below what a record holds before it counts in slots
				s.N = min(l.AtMost, 1+w.rnd.Uint64N(4))
			default: // near the default
				s.N = min(l.AtMost, max(l.N, 1)+w.rnd.Uint64N(3))
			}
		}
	}
	return s
}

// takenBackExactly reports whether a charge that is taken back at once leaves no trace
// under any rule: times that were put into slots stay there, a log that was charged
// beyond its limit gives nothing back, and a bucket drains by the N that was brought.
func (w *walk) takenBackExactly() bool {
	for _, r := range w.model.set.Rules() {
		if slices.ContainsFunc(r.Limits, func(l ratelimit.Limit) bool {
			return r.Algorithm == ratelimit.Sliding && max(l.N, l.AtMost) > 128 || limit.Algorithm(r.Algorithm).Bursts() && l.AtMost > 0
		}) {
			return false
		}
	}
	return !w.countsRefused()
}

// some returns the span and the number of some limit, or of what leads to a ban.
func (w *walk) some() (span time.Duration, n uint64) {
	r := w.model.set.Rules()[w.anyRule()]
	if len(r.Limits) == 0 {
		return r.Ban.Span, r.Ban.After
	}
	l := r.Limits[w.rnd.IntN(len(r.Limits))]
	return l.Window(), most(l)
}

// costs are values at which integers or floats overflow.
var costs = []uint64{
	1 << 31, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64, 1 << 63, math.MaxUint64 - 1, math.MaxUint64,
}

func (w *walk) cost() uint64 {
	_, n := w.some()
	extreme := costs[w.rnd.IntN(len(costs))]
	if w.countsRefused() { // else the count of a slot would get full, and no store promises anything then
		n, extreme = min(n, 12), 1
	}
	switch w.rnd.IntN(16) {
	case 0, 1:
		return w.rnd.Uint64N(n + 2)
	case 2, 3, 4, 5:
		return w.rnd.Uint64N(2 + n/8)
	case 6:
		return extreme
	}
	return 1
}

// countsRefused reports whether a rule counts what it refuses.
func (w *walk) countsRefused() bool {
	for _, r := range w.model.set.Rules() {
		if r.CountRefused {
			return true
		}
	}
	return false
}

// longIdle is the longest time that passes in a step.
const longIdle = 100 * 24 * time.Hour

// gap returns a random time between two events: such that some are refused, and
// now and then so long that everything expires.
func (w *walk) gap() time.Duration {
	span, n := w.some()
	gap := time.Duration(0)
	switch w.rnd.IntN(40) {
	case 0:
		tenths := []time.Duration{3, 5, 9, 10, 11, 15, 20, 100, 1000, 10_000}
		gap = min(span, longIdle) / 10 * tenths[w.rnd.IntN(len(tenths))]
	case 1:
		gap = span / 60
	case 2, 3, 4:
	default:
		gap = time.Duration(w.rnd.Int64N(2*int64(span)/int64(max(1, min(n, 100))) + 1))
	}
	return min(gap, longIdle)
}

// randomLimits returns a rule with up to three limits that a can have.
func (c *check) randomLimits(a ratelimit.Algorithm) ratelimit.Rule {
	r := c.rule("r")
	r.Algorithm = a
	if a == ratelimit.Calendar && c.rnd.IntN(2) == 0 {
		r.Zone = time.FixedZone("east", 5*3600+1800)
	}
	for range 1 + c.rnd.IntN(3) {
		r.Limits = append(r.Limits, c.randomLimit(a))
	}
	return r
}

// randomLimit returns some limit that a can have.
func (c *check) randomLimit(a ratelimit.Algorithm) ratelimit.Limit {
	n := []uint64{1, 2, 3, 7, 12, 60, 100, 127, 128, 129, 150, 360}[c.rnd.IntN(12)]
	l := c.under(a, n, 1+c.rnd.IntN(3))
	switch a {
	case ratelimit.Calendar:
		l.Per = ratelimit.PerSecond + ratelimit.Period(c.rnd.IntN(6))
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		if c.rnd.IntN(2) == 0 {
			l.Burst = 1 + c.rnd.Uint64N(2*n)
		}
	default:
		l.Span += time.Duration(c.rnd.IntN(7)) * time.Millisecond
	}
	return l
}

// randomRules returns rules that interfere with each other, the first of them with the
// algorithm a.
func (c *check) randomRules(a ratelimit.Algorithm, most int) (rules []ratelimit.Rule) {
	algorithms := c.algorithms()
	for i := range 1 + c.rnd.IntN(most) {
		rules = append(rules, c.randomRule(fmt.Sprint("r", i), a))
		a = algorithms[c.rnd.IntN(len(algorithms))]
	}
	return rules
}

// randomRule returns a rule with limits, a ban, or both.
func (c *check) randomRule(name string, a ratelimit.Algorithm) ratelimit.Rule {
	r := c.rule(name)
	r.Algorithm = a
	r.Shadow, r.CountRefused = c.rnd.IntN(4) == 0, c.rnd.IntN(4) == 0 && a != ratelimit.InFlight
	for range c.rnd.IntN(3) {
		r.Limits = append(r.Limits, c.under(a, c.rnd.Uint64N(12), 1+c.rnd.IntN(2)))
	}
	if len(r.Limits) > 0 && c.rnd.IntN(2) == 0 {
		return r
	}
	r.Ban = c.randomBan()
	if len(r.Limits) > 0 && c.rnd.IntN(2) == 0 {
		r.Ban.Of = ratelimit.Refusals
	}
	return r
}

func (c *check) randomBan() *ratelimit.Ban {
	b := &ratelimit.Ban{After: c.rnd.Uint64N(6), Span: units(1 + c.rnd.IntN(2)), Extend: c.rnd.IntN(4) == 0, Remember: units(1 + c.rnd.IntN(10))}
	switch c.rnd.IntN(3) {
	case 0:
		b.For = units(1)
	case 1:
		b.For, b.Factor, b.Max = units(1), 1+2*c.rnd.Float64(), units(4)
	case 2:
		b.Steps, b.Max = []time.Duration{units(1), units(5), units(2)}, units(3+c.rnd.IntN(3))
	}
	return b
}
