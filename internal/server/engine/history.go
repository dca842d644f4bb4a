package engine

import (
	"slices"
	"sync"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// ruleDifference returns what came between o and t. A rule that got another key, or
// another limiter, counts from 0 again; all that t has came since then.
func ruleDifference(t, o api.RuleTotals) api.RuleTotals {
	d := api.RuleTotals{Allowed: t.Allowed - o.Allowed, Refused: t.Refused - o.Refused, Banned: t.Banned - o.Banned, Shadow: t.Shadow - o.Shadow, Bans: t.Bans - o.Bans}
	switch {
	case !negative(d):
		return d
	case !negative(t):
		return t
	}
	return api.RuleTotals{} // before this process began, in the part in which the rule came
}

// negative reports whether a count of t is below 0, modulo 2^64.
func negative(t api.RuleTotals) bool {
	return int64(t.Allowed) < 0 || int64(t.Refused) < 0 || int64(t.Banned) < 0 || int64(t.Shadow) < 0 || int64(t.Bans) < 0
}

// A history keeps the totals as they were each second of the last two minutes and
// each minute of the last day: rates for charts cost decisions nothing. It is
// about what was decided, and as exact as its samples; what is counted for keys is
// in windows. With keptRules rules it takes 8 MiB.
type history struct {
	mu       sync.Mutex
	seconds  samples
	minutes  samples
	restored int        // how many of minutes, the oldest, are of processes before this one
	marks    []api.Mark // oldest first
}

const (
	keptSeconds = 121
	keptMinutes = 24*60 + 1
	keptRules   = 128 // whose totals are kept: the first of the rules file
	keptMarks   = 256

	// maxRuleRates is how many totals of rules Rates returns at most.
	maxRuleRates = 1 << 13
)

// A sample is the totals at a moment, since this process began. Those of restored samples
// are below 0, modulo 2^64. Neighbours share names while the rules stay.
type sample struct {
	at    time.Time
	all   api.Totals
	names []string
	rules []api.RuleTotals // by names
}

// rule returns the totals of the i-th rule of a sample with these names.
func (x *sample) rule(names []string, i int) api.RuleTotals {
	if i >= len(x.names) || x.names[i] != names[i] {
		if i = slices.Index(x.names, names[i]); i < 0 {
			return api.RuleTotals{}
		}
	}
	return x.rules[i]
}

// samples is a ring of them.
type samples struct {
	ring []sample
	next int
	full bool
}

func (s *samples) add(x sample) {
	s.ring[s.next] = x
	if s.next++; s.next == len(s.ring) {
		s.next, s.full = 0, true
	}
}

// all returns the samples, oldest first.
func (s *samples) all() []sample {
	if !s.full {
		return slices.Clone(s.ring[:s.next])
	}
	return append(slices.Clone(s.ring[s.next:]), s.ring[:s.next]...)
}

// newest returns the sample that was added last.
func (s *samples) newest() *sample { return &s.ring[(s.next+len(s.ring)-1)%len(s.ring)] }

func (h *history) init(e *Engine) {
	h.seconds.ring, h.minutes.ring = make([]sample, keptSeconds), make([]sample, keptMinutes)
	first := e.measure(nil)
	h.seconds.add(first)
	h.minutes.add(first)
	h.marks = []api.Mark{{Time: e.started.UTC(), Type: Started}}
}

// sample adds to the history until the engine is closed.
func (e *Engine) sample() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-e.stop:
			return
		case <-tick.C:
		}
		h := &e.history
		h.mu.Lock()
		x := e.measure(h.seconds.newest().names)
		h.seconds.add(x)
		if n%60 == 0 {
			h.minutes.add(x)
		}
		h.mu.Unlock()
	}
}

// measure returns the totals of now. Its names are those given, if they are right.
func (e *Engine) measure(names []string) sample {
	stats := e.limits().Rules
	stats = stats[:min(len(stats), keptRules)]
	if !slices.EqualFunc(names, stats, func(name string, r ratelimit.RuleStats) bool { return name == r.Rule }) {
		names = make([]string, len(stats))
		for i := range stats {
			names[i] = stats[i].Rule
		}
	}
	x := sample{at: time.Now(), all: e.Totals(), names: names, rules: make([]api.RuleTotals, len(stats))}
	for i := range stats {
		r := &stats[i]
		x.rules[i] = api.RuleTotals{Allowed: r.Allowed, Refused: r.Refused, Banned: r.Banned, Shadow: r.Shadow, Bans: r.BansStarted}
	}
	return x
}

// Totals returns the outcomes of all events so far.
func (e *Engine) Totals() (t api.Totals) {
	for i := range e.totals {
		s := &e.totals[i]
		t.Allowed += s.allowed.Load()
		t.Refused += s.refused.Load()
		t.Banned += s.banned.Load()
		t.Unmatched += s.unmatched.Load()
		t.Errors += s.errors.Load()
	}
	return t
}

// Rates returns what was decided in the last span, from a second to a day, cut into
// at most points parts of equal width, oldest first. There are fewer of them when
// the engine is younger, and the oldest is shorter then. What restored state tells of
// the time before the engine began is part of the past. Past two minutes they are
// made of whole minutes, of which the newest is longer by what has begun since. With
// perRule, points times the number of rules is at most 8,192.
func (e *Engine) Rates(span time.Duration, points int, perRule bool) ([]api.Rate, error) {
	if span < time.Second || span > 24*time.Hour {
		return nil, errorf(api.BadArg, "span is %v; allowed is 1s to 24h", span)
	}
	if points < 1 || points > keptMinutes {
		return nil, errorf(api.BadArg, "points is %d; allowed is 1 to %d", points, keptMinutes-1)
	}
	if rules := min(e.rules.Load().file.Limits.Len(), keptRules); perRule && points*rules > maxRuleRates {
		return nil, errorf(api.BadArg, "points: %d: must be 1 to %d for the rates of %d rules", points, maxRuleRates/rules, rules)
	}
	e.history.mu.Lock()
	all := e.history.seconds.all()
	if span > (keptSeconds-1)*time.Second {
		last := all[len(all)-1]
		all = append(e.history.minutes.all(), last)
	}
	e.history.mu.Unlock()
	return cut(all, span, points, perRule), nil
}

// cut returns the differences of samples that are about span/points apart.
func cut(all []sample, span time.Duration, points int, perRule bool) []api.Rate {
	last := all[len(all)-1]
	width := span / time.Duration(points)
	rates := []api.Rate{}
	to := last
	for k := 1; k <= points; k++ {
		from, ok := before(all, last.at.Add(-time.Duration(k)*width))
		if !ok {
			from = all[0] // the engine is younger, and the oldest part shorter
		}
		if from.at.Before(to.at) { // else samples are further apart than parts
			rates = append(rates, difference(from, to, perRule))
			to = from
		}
		if !ok {
			break
		}
	}
	slices.Reverse(rates)
	return rates
}

// before returns the newest sample no later than t, give or take half a second, for
// samples are never taken quite on time.
func before(all []sample, t time.Time) (sample, bool) {
	limit := t.Add(time.Second / 2)
	i, _ := slices.BinarySearchFunc(all, limit, func(x sample, t time.Time) int { return x.at.Compare(t) })
	if i == 0 {
		return sample{}, false
	}
	return all[i-1], true
}

func difference(from, to sample, perRule bool) api.Rate {
	r := api.Rate{From: from.at.UTC(), To: to.at.UTC(), All: to.all.Minus(from.all)}
	if perRule {
		r.Rules = make(map[string]api.RuleTotals)
		for i, name := range to.names {
			r.Rules[name] = ruleDifference(to.rules[i], from.rule(to.names, i))
		}
	}
	return r
}
