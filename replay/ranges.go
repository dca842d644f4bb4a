package replay

import (
	"context"
	"slices"
	"time"

	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// unknownFraction returns the largest fraction that the log's times lack, in
// nanoseconds; 0 if there is no range to report: the log is as precise as a live
// clock, its times were floored on demand, or they are too far apart to be counted in
// nanoseconds.
func (e *events) unknownFraction() int64 {
	if e.run.Resolution != 0 || e.far {
		return 0
	}
	return unknown(e.run.coarsest)
}

// nanos appends the times of ticks in nanoseconds to dst, in the order of judging. In
// the order of files an event is judged at the newest time of its key.
func (e *events) nanos(dst, ticks []int64) []int64 {
	newest := int64(0)
	for i, tick := range ticks {
		t := tick * int64(e.run.clock.resolution)
		if newest = max(newest, t); i == 0 {
			newest = t
		}
		dst = append(dst, newest)
	}
	return dst
}

// whatIfRange returns how often a what-if refuses, whatever the fractions; nil if that
// is not to be reported.
func (e *events) whatIfRange(ctx context.Context, w WhatIf) (*Range, error) {
	d := e.unknownFraction()
	if d == 0 || w.Kind == Hot {
		return nil, nil
	}
	rule, err := w.limitRule(e.run.Algorithm, e.run.CountRefused)
	if err != nil {
		return nil, err
	}
	col := e.run.column(w.Key)
	from, times := e.byValue(col, e.ranks[col])
	found := make([]Range, e.run.Cores)
	e.run.parallel(e.run.Cores, func(part int) {
		r := newRanger(&rule, d)
		fewest := r.fewest()
		var own []int64
		for id := part; id < len(from)-1 && ctx.Err() == nil; id += e.run.Cores {
			if from[id+1]-from[id] <= fewest {
				continue
			}
			own = e.nanos(own[:0], times[from[id]:from[id+1]])
			if r.take(own, nil) {
				found[part].add(r.alone())
			}
		}
	})
	return sum(found), ctx.Err()
}

func sum(ranges []Range) *Range {
	var all Range
	for _, r := range ranges {
		all.add(r)
	}
	return &all
}

// A subject is a key under a rule.
type subject struct {
	events []int32
	may    []bool // be refused by the rule
	banned []bool // by the rule, for sure; nil: none
}

// subjects is those of each limit and ban of a rules file.
type subjects struct {
	*events
	set  *ratelimit.Set
	d    int64
	each [][]subject

	refusers []uint16 // how many rules may refuse each event
	banners  []uint16 // how many rules ban it for sure
}

// ruleRanges returns for each limit and ban of the rules file how often it refuses,
// whatever the fractions; nil if that is not to be reported. Keys that the rule cannot
// refuse are left out at once. Of the others, those whose events no other rule can
// refuse are judged alone.
func (e *events) ruleRanges(ctx context.Context) ([]*Range, error) {
	s := &subjects{events: e, set: e.run.Rules.Limits, d: e.unknownFraction()}
	ranges := make([]*Range, s.set.Len())
	if s.d == 0 || s.set.Len() == 0 {
		return ranges, nil
	}
	s.each = make([][]subject, s.set.Len())
	errs := make([]error, s.set.Len())
	e.run.parallel(s.set.Len(), func(i int) { s.each[i], errs[i] = e.subjects(ctx, s.set, s.set.Rule(i), s.d) })
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return nil, err
		}
	}
	s.settle(ctx)
	e.run.parallel(s.set.Len(), func(i int) {
		var found Range
		r := newRanger(s.set.Rule(i), s.d)
		for j := range s.each[i] {
			if ctx.Err() == nil {
				found.add(s.rangeOf(r, &s.each[i][j]))
			}
		}
		ranges[i] = &found
	})
	return ranges, ctx.Err()
}

// maxRounds bounds how often subjects are looked at until they agree.
const maxRounds = 20

// settle finds out which rules may refuse each event and which ones ban it for sure.
//
// What a subject bans for sure, if it is alone, keeps others from counting: so they may
// never refuse anything. This is assumed of all at first. Where another subject may
// refuse an event all the same, what was assumed no longer holds for the events after
// it. When no assumption is dropped any more, all are true: take the first event for
// which one is not; before it, all of them held, and so they do for it.
func (s *subjects) settle(ctx context.Context) {
	for round := 0; ctx.Err() == nil; round++ {
		s.count()
		s.run.parallel(len(s.each), s.mayRefuse)
		s.count()
		if !s.doubt(round >= maxRounds) {
			return
		}
	}
}

// mayRefuse finds out which events a rule may refuse, by what others ban for sure.
func (s *subjects) mayRefuse(rule int) {
	r := newRanger(s.set.Rule(rule), s.d)
	var times []int64
	for i := range s.each[rule] {
		x := &s.each[rule][i]
		_, skipped, _ := s.others(x, r.rule)
		r.take(s.timesOf(&times, *x), skipped)
		copy(x.may, r.may)
	}
}

// doubt drops what is assumed of events after the first one that another rule may
// refuse, or all of it, and reports whether there was any such.
func (s *subjects) doubt(all bool) (some bool) {
	for i := range s.each {
		for j := range s.each[i] {
			x := &s.each[i][j]
			touched, _, others := s.others(x, s.set.Rule(i))
			if x.banned == nil || !others {
				continue
			}
			from := slices.Index(touched, true)
			if all {
				from = 0
			}
			some = some || slices.Contains(x.banned[from:], true)
			clear(x.banned[from:])
		}
	}
	return some
}

// count counts who may refuse and who bans each event.
func (s *subjects) count() {
	s.refusers, s.banners = make([]uint16, len(s.times)), make([]uint16, len(s.times))
	for i := range s.each {
		if s.set.Rule(i).Shadow {
			continue
		}
		for _, x := range s.each[i] {
			for j, event := range x.events {
				if x.may[j] {
					s.refusers[event]++
				}
				if x.banned != nil && x.banned[j] {
					s.banners[event]++
				}
			}
		}
	}
}

// others returns which events of a subject other rules may refuse, which ones they ban
// for sure, and whether there are any of the former.
func (s *subjects) others(x *subject, rule *ratelimit.Rule) (touched, skipped []bool, some bool) {
	touched, skipped = make([]bool, len(x.events)), make([]bool, len(x.events))
	for j, event := range x.events {
		refusers, banners := s.refusers[event], s.banners[event]
		if x.may[j] && !rule.Shadow {
			refusers--
		}
		if x.banned != nil && x.banned[j] {
			banners--
		}
		touched[j], skipped[j] = refusers > 0, banners > 0
		some = some || touched[j]
	}
	return touched, skipped, some
}

// rangeOf returns how often the rule of r refuses a subject.
func (s *subjects) rangeOf(r *ranger, x *subject) Range {
	touched, skipped, some := s.others(x, r.rule)
	var times []int64
	switch {
	case !r.take(s.timesOf(&times, *x), skipped):
		return Range{}
	case some:
		return r.beside(touched, skipped)
	}
	return r.alone()
}

// subjects returns the keys of a rule that it may refuse an event of.
func (e *events) subjects(ctx context.Context, set *ratelimit.Set, rule *ratelimit.Rule, d int64) ([]subject, error) {
	condition, err := rule.When.Compile()
	if err != nil {
		return nil, err
	}
	ids := make(map[string]int)
	var all []subject
	reader := e.newEventReader()
	var key []byte
	for i := range e.times {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		ev := reader.event(i)
		var ok bool
		if key, ok = ruleKey(key[:0], set, rule, &condition, ev); !ok {
			continue
		}
		id, known := ids[string(key)]
		if !known {
			id = len(all)
			ids[string(key)] = id
			all = append(all, subject{})
		}
		all[id].events = append(all[id].events, int32(i))
	}
	r := newRanger(rule, d)
	var times []int64
	var near []subject
	for _, s := range all {
		if len(s.events) > r.fewest() && r.take(e.timesOf(&times, s), nil) {
			near = append(near, subject{s.events, slices.Clone(r.may), r.banned()})
		}
	}
	return near, nil
}

// ruleKey appends the key by which a rule counts an event, if it is about it.
func ruleKey(dst []byte, set *ratelimit.Set, rule *ratelimit.Rule, condition *match.Condition, ev *match.Event) ([]byte, bool) {
	if !condition.Holds(ev) || set.Allowed(ev) {
		return dst, false
	}
	return rule.Key.Append(dst, ev)
}

// timesOf returns the times of a subject in nanoseconds, in memory that is used again.
func (e *events) timesOf(memory *[]int64, s subject) []int64 {
	ticks := (*memory)[:0]
	for _, event := range s.events {
		ticks = append(ticks, e.times[event])
	}
	*memory = e.nanos(ticks[:0], ticks)
	return *memory
}

// coarsestOf returns the coarsest of the precisions that the formats have in a log:
// what is unknown of its times.
func (r *run) coarsestOf(blocks []*parsed) time.Duration {
	grains := make(map[string]uint32)
	for _, b := range blocks {
		if len(b.times) > 0 {
			name := b.format.String()
			if g, ok := grains[name]; !ok || b.grain < g {
				grains[name] = b.grain
			}
		}
	}
	coarsest := time.Duration(1)
	for _, g := range grains {
		coarsest = max(coarsest, time.Duration(g))
	}
	return coarsest
}
