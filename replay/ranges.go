package replay

import (
	"context"
	"slices"
	"time"

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

// A subject is a key under a rule, one whose events the rule may refuse.
type subject struct {
	events []int32
	may    []bool // be refused by the rule
	banned []bool // by the rule, for sure; nil: none
}

// subjects is those of each limit and ban of a ruleset.
type subjects struct {
	*events
	set  *ratelimit.Set
	d    int64
	each [][]subject

	refusers []uint16 // how many rules may refuse each event
	banners  []uint16 // how many rules ban it for sure
}

// ranges returns for each limit and ban how often it refuses, whatever the fractions;
// nil if that is not to be reported.
func (e *events) ranges(ctx context.Context, j *judging) ([]*Range, error) {
	ranges := make([]*Range, len(j.rules))
	d := e.unknownFraction()
	if d == 0 || len(j.rules) == 0 {
		return ranges, nil
	}
	s := &subjects{events: e, set: j.limits, d: d, each: make([][]subject, len(j.rules))}
	for i := range j.rules {
		about, err := e.matching(j, i)
		if err != nil {
			return nil, err
		}
		if len(j.rules) == 1 {
			ranges[i] = e.rangeAlone(ctx, &j.rules[i], about, d)
			return ranges, ctx.Err()
		}
		s.each[i] = e.subjects(ctx, &j.rules[i], about, d)
	}
	s.settle(ctx)
	e.run.parallel(len(j.rules), func(i int) {
		var found Range
		r := newRanger(s.set.Rule(i), s.d)
		for k := range s.each[i] {
			if ctx.Err() == nil {
				found.add(s.rangeOf(r, &s.each[i][k]))
			}
		}
		ranges[i] = &found
	})
	return ranges, ctx.Err()
}

// matching returns a function that reports whether an event with the rule's key is of
// no concern to it: its condition does not hold, or its client is on the allow list. It
// is nil if every event with the key is.
func (e *events) matching(j *judging, rule int) (skip func(event int) bool, err error) {
	condition, err := j.limits.Rule(rule).When.Compile()
	if err != nil {
		return nil, err
	}
	if len(condition.Fields()) == 0 && !j.allows {
		return nil, nil
	}
	reader := e.newEventReader(j.limits.Fields())
	return func(event int) bool {
		ev := reader.event(event)
		return !condition.Holds(ev) || j.limits.Allowed(ev)
	}, nil
}

// rangeAlone returns how often a rule refuses whose events no other rule refuses.
func (e *events) rangeAlone(ctx context.Context, rule *ruleOutcomes, skip func(int) bool, d int64) *Range {
	from, events := rule.keys.byKey(skip)
	found := make([]Range, e.run.Cores)
	e.run.parallel(e.run.Cores, func(part int) {
		r := newRanger(rule.Rule, d)
		fewest := r.fewest()
		var times []int64
		for id := part; id < len(from)-1 && ctx.Err() == nil; id += e.run.Cores {
			if own := events[from[id]:from[id+1]]; len(own) > fewest && r.take(e.timesOf(&times, own), nil) {
				found[part].add(r.alone())
			}
		}
	})
	var all Range
	for _, f := range found {
		all.add(f)
	}
	return &all
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
		r.take(s.timesOf(&times, x.events), skipped)
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
	case !r.take(s.timesOf(&times, x.events), skipped):
		return Range{}
	case some:
		return r.beside(touched, skipped)
	}
	return r.alone()
}

// subjects returns the keys of a rule that it may refuse an event of, each judged as if
// no other rule refused any of its events.
func (e *events) subjects(ctx context.Context, rule *ruleOutcomes, skip func(int) bool, d int64) []subject {
	from, events := rule.keys.byKey(skip)
	near := make([][]subject, e.run.Cores)
	e.run.parallel(e.run.Cores, func(part int) {
		r := newRanger(rule.Rule, d)
		fewest := r.fewest()
		var times []int64
		for id := part; id < len(from)-1 && ctx.Err() == nil; id += e.run.Cores {
			if own := events[from[id]:from[id+1]]; len(own) > fewest && r.take(e.timesOf(&times, own), nil) {
				near[part] = append(near[part], subject{own, slices.Clone(r.may), r.banned()})
			}
		}
	})
	return slices.Concat(near...)
}

// timesOf returns the times of events in nanoseconds, in memory that is used again.
func (e *events) timesOf(memory *[]int64, events []int32) []int64 {
	ticks := (*memory)[:0]
	for _, event := range events {
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
