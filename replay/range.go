package replay

import (
	"context"
	"slices"

	"github.com/lately-go/lately/ratelimit"
)

// A Range is how often a rule refuses at least and at most, whatever the fractions of
// the log's times are. It holds for every assignment of fractions, but there need not
// be one for every number in it. Events of one tick of the log are taken to have come in
// the order of the files.
type Range struct {
	Least int64 `json:"least"`
	Most  int64 `json:"most"`
}

func (r *Range) add(o Range) { r.Least, r.Most = r.Least+o.Least, r.Most+o.Most }

func (r *Range) widen(o Range) { r.Least, r.Most = min(r.Least, o.Least), max(r.Most, o.Most) }

// unknownFraction returns the largest fraction that the log's times may lack, in
// nanoseconds; 0 if there is no range to report: the log is as precise as a live
// clock, or its times were rounded down on demand; or the events were not kept.
//
// A time may have a million different fractions: those of a second are whole
// microseconds. So a clock that reads a nanosecond before a full second, and at no other
// second, is not considered.
func (e *events) unknownFraction() int64 {
	if e.run.Resolution != 0 || e.run.Lateness != 0 {
		return 0
	}
	return int64(e.run.coarsest - max(e.run.coarsest/1_000_000, 1))
}

// A rangeKey is a key under a rule that may refuse some of its events.
type rangeKey struct {
	Range
	events []int32
	may    []bool // which events the rule may refuse
	banned []bool // which events a ban of the rule holds for, whatever the fractions
	beside bool   // other rules may refuse some of the events
}

// rangeKeys is the keys of each limit and ban of a ruleset.
type rangeKeys struct {
	*events
	*judging
	unknown int64
	keys    [][]rangeKey

	refusers, banners []uint16 // how many rules may refuse each event, and how many ban it
}

// maxRounds bounds how often keys are judged by what is known of the other rules.
const maxRounds = 20

// ranges returns for each limit and ban how often it refuses, whatever the fractions;
// nil if that is not to be reported.
//
// Where other rules may refuse events of a key, a rule may not count these. At first
// each rule may refuse whatever it could if it counted all events. From that follows
// which events are banned for sure, which no other rule counts then; so these may refuse
// less, and others ban more for sure. Each round is right by itself.
func (e *events) ranges(ctx context.Context, j *judging) ([]*Range, error) {
	ranges := make([]*Range, len(j.rules))
	a := &rangeKeys{events: e, judging: j, unknown: e.unknownFraction(), keys: make([][]rangeKey, len(j.rules))}
	if a.unknown == 0 || len(j.rules) == 0 {
		return ranges, nil
	}
	if rule := &j.rules[0]; len(j.rules) == 1 && rule.Algorithm == ratelimit.Calendar && rule.Ban == nil && rule.Adapt == nil {
		return []*Range{{rule.byRule(), rule.byRule()}}, nil // its periods begin at full seconds
	}
	if slices.ContainsFunc(j.rules, func(r ruleOutcomes) bool { return r.Ban != nil && r.Ban.Of == ratelimit.Distinct }) {
		return ranges, nil // they depend on the order of events within the second
	}
	for i := range j.rules {
		a.find(ctx, i)
	}
	for more, round := true, 0; more && round < maxRounds; round++ {
		more = a.judge(ctx)
	}
	for i := range ranges {
		ranges[i] = new(Range)
		for k := range a.keys[i] {
			ranges[i].add(a.keys[i][k].Range)
		}
	}
	return ranges, ctx.Err()
}

// find finds the keys of a rule that it may refuse an event of.
func (a *rangeKeys) find(ctx context.Context, rule int) {
	from, events := a.rules[rule].keys.byKey(a.rules[rule].outcomes.has)
	found := make([][]rangeKey, a.run.Cores)
	a.run.parallel(a.run.Cores, func(part int) {
		b := newKeyBounds(a.rules[rule].Rule, a.unknown)
		fewest := b.fewest()
		for id := part; id < len(from)-1 && ctx.Err() == nil; id += a.run.Cores {
			own := events[from[id]:from[id+1]]
			if len(own) > fewest && b.load(a.judgedTimes(b.times, own), nil) {
				found[part] = append(found[part], rangeKey{events: own, may: slices.Clone(b.may), beside: true})
			}
		}
	})
	a.keys[rule] = slices.Concat(found...)
}

// judge judges the keys that other rules may refuse events of, or that have not been
// judged yet, and reports whether more is known of any of them.
func (a *rangeKeys) judge(ctx context.Context) bool {
	if len(a.keys) > 1 {
		a.count()
	}
	more := make([]bool, len(a.keys))
	a.run.parallel(len(a.keys), func(rule int) {
		b := newKeyBounds(a.rules[rule].Rule, a.unknown)
		for i := range a.keys[rule] {
			k := &a.keys[rule][i]
			if !k.beside || ctx.Err() != nil {
				continue
			}
			touched, skipped := a.others(k, a.rules[rule].Shadow)
			b.load(a.judgedTimes(b.times, k.events), skipped)
			k.Range, k.beside = b.bounds(touched, skipped), slices.Contains(touched, true)
			banned := b.banned()
			more[rule] = more[rule] || !slices.Equal(k.may, b.may) || !slices.Equal(k.banned, banned)
			copy(k.may, b.may)
			k.banned = banned
		}
	})
	return slices.Contains(more, true)
}

// count counts which rules may refuse and which ban each event. Those in shadow mode do
// neither.
func (a *rangeKeys) count() {
	a.refusers, a.banners = make([]uint16, len(a.times)), make([]uint16, len(a.times))
	for rule := range a.keys {
		if a.rules[rule].Shadow {
			continue
		}
		for _, k := range a.keys[rule] {
			for i, event := range k.events {
				if k.may[i] {
					a.refusers[event]++
				}
				if k.banned != nil && k.banned[i] {
					a.banners[event]++
				}
			}
		}
	}
}

// others returns which events of a key other rules may refuse, and which of these they
// ban for sure.
func (a *rangeKeys) others(k *rangeKey, shadow bool) (touched, skipped []bool) {
	touched, skipped = make([]bool, len(k.events)), make([]bool, len(k.events))
	if len(a.keys) == 1 {
		return touched, skipped
	}
	for i, event := range k.events {
		refusers, banners := a.refusers[event], a.banners[event]
		if k.may[i] && !shadow {
			refusers--
		}
		if k.banned != nil && k.banned[i] && !shadow {
			banners--
		}
		touched[i], skipped[i] = refusers > 0, banners > 0
	}
	return touched, skipped
}
