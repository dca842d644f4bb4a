package replay

import (
	"math"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A Range is how often a rule refuses at least and at most, whatever the fractions of
// the log's times are. It holds for every assignment of fractions, but not every
// number in it need be reached by one. Events of one tick of the log are taken to have
// come in the order of the files.
type Range struct {
	Least int64 `json:"least"`
	Most  int64 `json:"most"`
}

func (r *Range) add(o Range) { r.Least, r.Most = r.Least+o.Least, r.Most+o.Most }

// fractions is how many fractions a time of the log may have: those of a second are
// whole microseconds. A clock that reads a nanosecond before the full second, and at
// no other second, is not thought of.
const fractions = 1_000_000

// unknown returns the largest fraction that times of that precision may lack, in
// nanoseconds.
func unknown(precision time.Duration) int64 {
	return int64(precision - max(precision/fractions, 1))
}

// A ranger bounds what one rule refuses of one key after another.
type ranger struct {
	rule  *ratelimit.Rule
	d     int64 // the largest fraction
	least *pace // nil if the algorithm has none
	most  *pace
	nears []near

	shortest, longest int64 // ban

	times []int64 // of the key, floored, ascending
	may   []bool  // which of them may be refused
	free  []bool  // which of them may come while no ban of the rule holds; empty if that is not known
	kept  []int64
	first []known         // what is known of states without earlier bans, by event
	next  map[state]Range // and of the others
	steps int
	limit int // of steps for one key, before a wider bound is taken
}

// A near is when a limit, or a ban of hits, may refuse an event: when n others came
// less than reach before it.
type near struct {
	n     int
	reach int64
}

// A state is that of a key of which nothing is known, before an event, but how many
// bans it had and when, at the earliest, the last of them ended.
type state struct {
	event, bans int
	ended       int64
}

// A known is a Range that may not be known yet.
type known struct {
	Range
	ok bool
}

// newRanger returns a ranger of rule.
func newRanger(rule *ratelimit.Rule, d int64) *ranger {
	r := &ranger{rule: rule, d: d, next: make(map[state]Range)}
	var ok, okMost bool
	r.least, ok = newPace(rule, d, false)
	if r.most, okMost = newPace(rule, d, true); !ok || !okMost {
		r.least, r.most = nil, nil
	}
	for i, l := range rule.Limits {
		n := near{count32(l.N), int64(l.Window()) + d}
		if r.most != nil && r.most.calendar == nil {
			n = r.most.limits[i].near(d, r.most.countRefused)
		} else if rule.Adapt != nil {
			n.n = adaptedN(rule.Adapt, l.N, true)
		}
		r.nears = append(r.nears, n)
	}
	if ban := rule.Ban; ban != nil {
		if ban.Of == ratelimit.Hits {
			r.nears = append(r.nears, near{count32(ban.After), int64(ban.Span) + d})
		}
		r.shortest = int64(ban.Duration(0))
		for earlier := range ratelimit.MaxBanSteps {
			r.shortest = min(r.shortest, int64(ban.Duration(earlier)))
			r.longest = max(r.longest, int64(ban.Duration(earlier)))
		}
		r.longest = max(r.longest, int64(ban.Duration(math.MaxInt32)))
		r.longest += int64(float64(r.longest)*ban.Jitter) + int64(time.Millisecond)
	}
	return r
}

// near returns when l may refuse an event: never before n others came within its
// window or, of a bucket, within the time that the burst takes to drain. A bucket in
// which refused events count stays full for longer, however few follow.
func (l *paceLimit) near(d int64, counted bool) near {
	switch {
	case l.form == paceBucket && counted:
		return near{min(l.n, 1), l.most + d}
	case l.form == paceBucket:
		return near{l.n, int64(l.n)*l.span + d}
	}
	return near{l.n, l.span + l.width + d}
}

// take makes r about the key whose events the log has at times, and reports whether
// the rule may refuse any of them. Those that are skipped, if any, other rules refuse
// by a ban: this one neither judges nor counts them.
func (r *ranger) take(times []int64, skipped []bool) (some bool) {
	r.times, r.may = times, append(r.may[:0], make([]bool, len(times))...)
	r.kept = r.kept[:0]
	banned := int64(math.MinInt64)
	ban := r.rule.Ban
	for i, s := range times {
		may := false
		if skipped == nil || !skipped[i] {
			for _, n := range r.nears {
				may = may || len(r.kept) >= n.n && (n.n == 0 || s-r.kept[len(r.kept)-n.n] < n.reach)
			}
			r.kept = append(r.kept, s)
		}
		if ban != nil && (may || ban.Extend && s < banned) {
			banned = max(banned, s+r.longest+r.d)
		}
		r.may[i] = may || s < banned
		some = some || r.may[i]
	}
	return some
}

// fewest returns how many events of a key the rule never refuses one of.
func (r *ranger) fewest() int {
	fewest := math.MaxInt
	for _, n := range r.nears {
		fewest = min(fewest, n.n)
	}
	return fewest
}

// alone returns how often the rule refuses events of the key, if no other rule refuses
// any of them.
func (r *ranger) alone() Range {
	ban := r.rule.Ban
	r.steps, r.limit = 0, 1<<20+512*len(r.times)
	r.free = r.free[:0]
	var found Range
	switch {
	case r.least == nil && len(r.rule.Limits) == 1 && ban == nil:
		found = r.fixed()
	case r.least == nil || ban != nil && r.shortest < max(r.least.memory(), r.most.memory())+2*r.d:
		return r.wide()
	case ban == nil:
		found = Range{r.count(r.least, nil), r.count(r.most, nil)}
	default:
		clear(r.next)
		r.first = append(r.first[:0], make([]known, len(r.times))...)
		r.free = append(r.free, make([]bool, len(r.times))...)
		found = r.from(state{})
	}
	if r.steps > r.limit {
		r.free = r.free[:0]
		return r.wide()
	}
	return found
}

// banned returns which events of the key a ban of the rule holds for, whatever the
// fractions, if no other rule refuses any; nil if that is not known.
func (r *ranger) banned() []bool {
	if r.rule.Ban == nil || r.rule.Shadow {
		return nil
	}
	r.alone()
	if len(r.free) == 0 {
		return nil
	}
	banned := make([]bool, len(r.times))
	for i, free := range r.free {
		banned[i] = !free
	}
	return banned
}

// beside returns how often the rule refuses events of the key, if other rules may
// refuse those that are touched: they may then be charged or not. Those that are
// skipped, other rules refuse by a ban, for sure.
//
// To leave out charges makes the k-th event that a limit admits no later; so the model
// that refuses most, charged with all that are not skipped, is a bound, and so is the
// other one if it is charged only with those that no other rule refuses, and counts
// only these.
func (r *ranger) beside(touched, skipped []bool) Range {
	if r.rule.Ban == nil && r.least != nil {
		return Range{r.count(r.least, touched), r.count(r.most, skipped)}
	}
	most := r.wide().Most
	for i, t := range touched {
		if t { // until here it is alone
			r.times = r.times[:i]
			break
		}
	}
	return Range{r.alone().Least, most}
}

// count returns how many of the events a model refuses, without those left out.
func (r *ranger) count(p *pace, out []bool) (n int64) {
	p.reset()
	for i, s := range r.times {
		if (out == nil || !out[i]) && p.refuses(s) {
			n++
		}
	}
	return n
}

// wide returns a bound for rules and keys that no better one is known of: from none to
// all that may be refused.
func (r *ranger) wide() (wide Range) {
	for i := range r.times {
		if r.may[i] {
			wide.Most++
		}
	}
	return wide
}

// fixed bounds what windows of a span refuse, each of which begins with the first
// event after the one before. A window that begins with event i has N more than it
// has room for; where the next one begins is known but for a few events.
func (r *ranger) fixed() Range {
	span, n := int64(r.rule.Limits[0].Span), r.rule.Limits[0].N
	times := r.times
	found := make([]Range, len(times)+1)
	from, to := len(times), len(times) // of the next window, for event i
	for i := len(times) - 1; i >= 0; i-- {
		for from > i+1 && times[from-1]+r.d >= times[i]+span {
			from--
		}
		for to > i+1 && times[to-1] >= times[i]+r.d+span {
			to--
		}
		best := Range{math.MaxInt64, 0}
		for next := from; next <= to && r.steps <= r.limit; next++ {
			r.steps++
			over := max(0, int64(next-i)-int64(min(n, math.MaxInt32)))
			best.Least = min(best.Least, over+found[next].Least)
			best.Most = max(best.Most, over+found[next].Most)
		}
		found[i] = best
	}
	return found[0]
}
