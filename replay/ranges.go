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
			if r.take(own) {
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

// A subject is a key under a rule: its events.
type subject struct {
	events []int32
	may    []bool // be refused by the rule
}

// ruleRanges returns for each limit and ban of the rules file how often it refuses,
// whatever the fractions; nil if that is not to be reported. Keys that the rule cannot
// refuse are left out at once. Of the others, those whose events no other rule can
// refuse are judged alone.
func (e *events) ruleRanges(ctx context.Context) ([]*Range, error) {
	set, d := e.run.Rules.Limits, e.unknownFraction()
	ranges := make([]*Range, set.Len())
	if d == 0 || set.Len() == 0 {
		return ranges, nil
	}
	subjects := make([][]subject, set.Len())
	errs := make([]error, set.Len())
	e.run.parallel(set.Len(), func(i int) {
		subjects[i], errs[i] = e.subjects(ctx, set, set.Rule(i), d)
	})
	for _, err := range append(errs, ctx.Err()) {
		if err != nil {
			return nil, err
		}
	}
	refusers := make([]uint16, len(e.times)) // how many rules may refuse each event
	for i := range subjects {
		for _, s := range subjects[i] {
			for j, event := range s.events {
				if s.may[j] && !set.Rule(i).Shadow {
					refusers[event]++
				}
			}
		}
	}
	e.run.parallel(set.Len(), func(i int) {
		var found Range
		r := newRanger(set.Rule(i), d)
		for _, s := range subjects[i] {
			if ctx.Err() != nil {
				return
			}
			found.add(e.subjectRange(r, s, refusers))
		}
		ranges[i] = &found
	})
	return ranges, ctx.Err()
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
		if len(s.events) > r.fewest() && r.take(e.timesOf(&times, s)) {
			near = append(near, subject{s.events, slices.Clone(r.may)})
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

// subjectRange returns how often the rule of r refuses a subject.
func (e *events) subjectRange(r *ranger, s subject, refusers []uint16) Range {
	own := uint16(1)
	if r.rule.Shadow {
		own = 0
	}
	touched, some := make([]bool, len(s.events)), false
	for j, event := range s.events {
		others := refusers[event]
		if s.may[j] {
			others -= own
		}
		touched[j] = others > 0
		some = some || touched[j]
	}
	var times []int64
	r.take(e.timesOf(&times, s))
	if some {
		return r.beside(touched)
	}
	return r.alone()
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
