package replay

import (
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// keyBounds bounds how often one rule refuses events of one key after another.
type keyBounds struct {
	rule        *ratelimit.Rule
	unknown     int64       // the largest fraction
	least, most *limitModel // nil if there are none
	needs       []need

	shortest, longest int64 // ban

	times   []int64 // of the key, rounded down, ascending
	may     []bool  // which of them the rule may refuse
	counted []int64 // the times without those that other rules ban

	alone    int    // the number of events before the first one that other rules may refuse
	free     []bool // which events may come while no ban of the rule holds; empty if that is not known
	steps    int
	maxSteps int // for one key, before a wider bound is taken
}

// A need is when a limit, or a ban of hits, may refuse an event: if n others came
// less than reach before it.
type need struct {
	n     int
	reach int64
}

func newKeyBounds(rule *ratelimit.Rule, unknown int64) *keyBounds {
	b := &keyBounds{
		rule: rule, unknown: unknown,
		least: newLimitModel(rule, unknown, false), most: newLimitModel(rule, unknown, true),
	}
	for _, l := range rule.Limits {
		b.needs = append(b.needs, b.limitNeed(l))
	}
	ban := rule.Ban
	if ban == nil {
		return b
	}
	if ban.Of == ratelimit.Hits {
		b.needs = append(b.needs, need{count32(ban.After), int64(ban.Span) + unknown})
	}
	b.shortest, b.longest = math.MaxInt64, int64(ban.Duration(math.MaxInt32))
	for earlier := range max(len(ban.Steps), 1) {
		long := int64(ban.Duration(earlier))
		b.shortest, b.longest = min(b.shortest, long), max(b.longest, long)
	}
	b.longest = b.withJitter(b.longest)
	return b
}

// withJitter returns the longest that a ban of that length may last.
func (b *keyBounds) withJitter(long int64) int64 {
	if b.rule.Ban.Jitter == 0 {
		return long
	}
	return long + int64(float64(long)*b.rule.Ban.Jitter) + int64(time.Millisecond)
}

// limitNeed returns when l may refuse an event: never before N others came within its
// window or, of a bucket, within the time that the burst takes to drain. A bucket in
// which refused events count stays full for longer, however few follow.
func (b *keyBounds) limitNeed(l ratelimit.Limit) need {
	a := b.rule.Algorithm
	n := need{count32(l.N), int64(l.Window()+l.MaxLate(a)) + b.unknown}
	switch {
	case a == ratelimit.Sliding && b.rule.Adapt != nil: // an N above may count by slots
		n.reach = int64(l.Window()+l.MaxLate(ratelimit.Weighted)) + b.unknown
	case a != ratelimit.GCRA && a != ratelimit.LeakyBucket:
	case b.rule.CountRefused:
		n = need{min(burst(l), 1), int64(remembered(l)) + b.unknown}
	default:
		n = need{burst(l), int64(burst(l))*drainTime(l, true) + b.unknown}
	}
	if adapt := b.rule.Adapt; adapt != nil {
		n.n = min(n.n, count32(adapt.Above))
		for _, s := range adapt.Steps {
			n.n = min(n.n, count32(s.Limit))
		}
	}
	return n
}

// remembered returns how long after an event l may still count it: twice its span, as the
// window before may matter and a slot may leave late, or, if refused events fill a bucket,
// twice the time in which a burst drains.
func remembered(l ratelimit.Limit) time.Duration {
	longest := l.Window()
	if l.Burst > l.N && l.N > 0 {
		longest = max(longest, time.Duration(float64(l.Burst)/float64(l.N)*float64(l.Span)))
	}
	return 2 * longest
}

// fewest returns the number of events up to which the rule never refuses any of a key.
func (b *keyBounds) fewest() int {
	fewest := math.MaxInt
	for _, need := range b.needs {
		fewest = min(fewest, need.n)
	}
	return fewest
}

// load makes b about the key whose events the log has at times, and reports whether the
// rule may refuse any of them. Those that are skipped, if any, other rules refuse by a
// ban: this one neither judges nor counts them.
func (b *keyBounds) load(times []int64, skipped []bool) (some bool) {
	b.times, b.may = times, append(b.may[:0], make([]bool, len(times))...)
	b.counted = b.counted[:0]
	banned := int64(math.MinInt64)
	ban := b.rule.Ban
	for i, s := range times {
		may := false
		if skipped == nil || !skipped[i] {
			for _, need := range b.needs {
				may = may || len(b.counted) >= need.n && (need.n == 0 || s-b.counted[len(b.counted)-need.n] < need.reach)
			}
			b.counted = append(b.counted, s)
		}
		if ban != nil && (may || ban.Extend && s < banned) {
			banned = max(banned, s+b.longest+b.unknown)
		}
		b.may[i] = may || s < banned
		some = some || b.may[i]
	}
	return some
}

// bounds returns how often the rule refuses events of the key. Other rules may refuse
// those that are touched: they may then be charged or not. Those that are skipped, other
// rules ban for sure.
//
// To leave out charges makes the k-th event that a limit admits no later. So the model
// that refuses most, charged with all that are not skipped, is a bound; and so is the
// other one, charged only with those that no other rule refuses, and counting only these.
func (b *keyBounds) bounds(touched, skipped []bool) Range {
	ban := b.rule.Ban
	b.alone = len(b.times)
	if i := slices.Index(touched, true); i >= 0 {
		b.alone = i
	}
	b.steps, b.maxSteps, b.free = 0, 1<<20+512*len(b.times), b.free[:0]
	wide := b.wide()
	found := wide
	switch {
	case ban == nil && b.least != nil:
		return Range{b.refused(b.least, touched), b.refused(b.most, skipped)}
	case ban == nil && b.rule.Algorithm == ratelimit.Fixed && b.rule.Adapt == nil && len(b.rule.Limits) == 1 && b.alone == len(b.times):
		found = b.fixed()
	case ban != nil && b.least != nil && b.shortest >= max(b.least.memory(), b.most.memory())+2*b.unknown:
		found = b.banning()
	}
	if b.steps > b.maxSteps {
		b.free = b.free[:0]
		return wide
	}
	return found
}

// refused returns how many of the events a model refuses, without those left out.
func (b *keyBounds) refused(m *limitModel, out []bool) (n int64) {
	m.reset()
	for i, s := range b.times {
		if !out[i] && m.refuses(s) {
			n++
		}
	}
	return n
}

// wide returns a bound that always holds: from none to all that may be refused.
func (b *keyBounds) wide() (wide Range) {
	for _, may := range b.may {
		if may {
			wide.Most++
		}
	}
	return wide
}

// fixed bounds what windows of a span refuse, each of which begins with the first
// event after the one before. Of the events of a window all but N are refused, and the
// next window begins with one of a few events.
func (b *keyBounds) fixed() Range {
	span, n := int64(b.rule.Limits[0].Span), count32(b.rule.Limits[0].N)
	times := b.times
	found := make([]Range, len(times)+1) // from each event on, if a window begins there
	from, to := len(times), len(times)   // of the next window
	for i := len(times) - 1; i >= 0; i-- {
		for from > i+1 && times[from-1]+b.unknown >= times[i]+span {
			from--
		}
		for to > i+1 && times[to-1] >= times[i]+b.unknown+span {
			to--
		}
		best := Range{math.MaxInt64, 0}
		for next := from; next <= to && b.steps <= b.maxSteps; next++ {
			b.steps++
			over := int64(max(0, next-i-n))
			best.widen(Range{over + found[next].Least, over + found[next].Most})
		}
		found[i] = best
	}
	return found[0]
}
