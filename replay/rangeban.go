package replay

import (
	"cmp"
	"math"
	"sort"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A state is that of a key before an event, if no event before that counts any more:
// how many bans the key had, when, at the earliest, the last of them ended, and how many
// events were refused on the ways that lead to it.
type state struct {
	bans    int
	ended   int64
	refused Range
}

// banning returns how often a rule that bans refuses events of the key.
//
// Before the first ban the limits refuse as often as their models say; the m-th
// refusal is no earlier than that of the model that refuses most, and no later than
// that of the one that refuses least. So a ban begins with one of a range of events,
// and ends before one of another range. Bans are no shorter than
// what limits remember: after one, or a pause that is long enough, nothing that came
// before counts again. The bound is the best and the worst of all ways through these
// states, up to the first event that other rules may refuse.
func (b *keyBounds) banning() Range {
	b.free = append(b.free, make([]bool, len(b.times))...)
	before := make([][]state, len(b.times)+1) // the states before each event
	before[0] = []state{{}}
	for event := range b.alone {
		for _, s := range before[event] {
			b.follow(event, s, before)
		}
		before[event] = nil
		if b.steps > b.maxSteps {
			return Range{}
		}
	}
	all, free := Range{math.MaxInt64, 0}, false
	for event := b.alone; event < len(before); event++ {
		for _, s := range before[event] {
			all.widen(s.refused)
			free = true
		}
		if free && event < len(b.times) {
			b.free[event] = true
		}
	}
	if b.alone < len(b.times) {
		all.Most = b.wide().Most
	}
	return all
}

// follow adds the states that may come next after state s before an event.
func (b *keyBounds) follow(event int, s state, before [][]state) {
	w := b.watch(event)
	for i := event; i < w.free; i++ {
		b.free[i] = true
	}
	for i, begin := range w.begins {
		b.afterBan(begin, s, func(next int, after state) {
			during := int64(next - begin - 1)
			after.refused = s.refused
			after.refused.add(w.refused[i])
			after.refused.add(Range{during, during})
			reach(&before[next], after)
		})
	}
	if !w.sure {
		s.refused.add(w.total)
		reach(&before[w.end], s)
	}
}

// reach adds a state to those before an event.
func reach(states *[]state, s state) {
	for i := range *states {
		if known := &(*states)[i]; known.bans == s.bans && known.ended == s.ended {
			known.refused.widen(s.refused)
			return
		}
	}
	*states = append(*states, s)
}

// banned returns which events of the key a ban of the rule holds for, whatever the
// fractions and the other rules; nil if that is not known.
func (b *keyBounds) banned() []bool {
	if b.rule.Shadow || len(b.free) == 0 {
		return nil
	}
	banned := make([]bool, len(b.free))
	for i, free := range b.free {
		banned[i] = !free
	}
	return banned
}

// A watched is what may become of a key up to its first ban.
type watched struct {
	begins  []int   // events that may begin the ban
	refused []Range // of each, how many are refused up to it, itself among them
	sure    bool    // the ban begins at one of these
	end     int     // otherwise: the first event for which no earlier one counts
	total   Range   // and how many are refused before it
	free    int     // the first event for which a ban holds for sure, or end
}

// watch follows a key from event i on, before which nothing counts, to its first ban.
func (b *keyBounds) watch(i int) (w watched) {
	ban, times := b.rule.Ban, b.times
	b.least.reset()
	b.most.reset()
	span, after := int64(ban.Span), count32(ban.After)
	memory := max(b.least.memory(), b.most.memory(), span) + b.unknown
	var early, late []int64 // times of refusals in either model, or of hits
	var now Range
	j := i
	for ; j < b.alone && (j == i || times[j]-times[j-1] < memory); j++ {
		if b.steps++; b.steps > b.maxSteps {
			return w
		}
		s, before, strike := times[j], now, true
		if len(b.rule.Limits) > 0 {
			if b.least.refuses(s) {
				now.Least++
			}
			if b.most.refuses(s) {
				now.Most++
			}
		}
		if ban.Of == ratelimit.Hits || now.Most > before.Most {
			early = append(early, s)
		}
		if ban.Of == ratelimit.Hits || now.Least > before.Least {
			late = append(late, s)
		}
		up := Range{before.Least + 1, before.Most + 1}
		if ban.Of == ratelimit.Refusals {
			strike = now.Most > before.Least
			up.Least = max(before.Least, int64(after)) + 1
		}
		if !strike || !b.mayBegin(early, late, s) {
			continue
		}
		up.Most = max(up.Most, up.Least)
		w.begins, w.refused = append(w.begins, j), append(w.refused, up)
		if b.mustBegin(early, late) {
			w.sure, w.free = true, j+1
			return w
		}
	}
	w.end, w.free, w.total = j, j, now
	return w
}

// mayBegin reports whether a strike at s may begin a ban: whether enough others may have
// come less than a span before it. The m-th strike came at early[m] or later, and at
// late[m], if there is such, or earlier.
func (b *keyBounds) mayBegin(early, late []int64, s int64) bool {
	after := count32(b.rule.Ban.After)
	if len(early) <= after {
		return false
	}
	if after == 0 {
		return true
	}
	// The strike at s may be any one from the number of the late ones on to that of
	// the early ones; the least demanding is one whose predecessors are latest.
	first := s
	if m := len(early) - 1 - after; m < len(late) {
		first = min(first, late[m])
	}
	return s-first-b.unknown < int64(b.rule.Ban.Span)
}

// mustBegin reports whether the last strike that has come for sure began a ban.
func (b *keyBounds) mustBegin(early, late []int64) bool {
	last := len(late) - 1
	first := last - count32(b.rule.Ban.After)
	return first >= 0 && late[last]+b.unknown-early[first] < int64(b.rule.Ban.Span)
}

// afterBan calls f with each state in which the key may be after a ban that began with
// event begin, if it was in state s before, and the event that it is before.
func (b *keyBounds) afterBan(begin int, s state, f func(next int, after state)) {
	ban := b.rule.Ban
	counts := []int{s.bans}
	if s.bans > 0 && b.times[begin]+b.unknown-s.ended > int64(cmp.Or(ban.Remember, 24*time.Hour)) {
		counts = append(counts, 0) // the earlier bans may be forgotten
	}
	for _, earlier := range counts {
		shortest := int64(ban.Duration(earlier))
		from, to := b.firstAfter(begin, shortest-b.unknown), b.firstAfter(begin, b.withJitter(shortest)+b.unknown)
		b.steps += 1 + (to-from)/16
		after := state{bans: b.bansThatCount(earlier + 1)}
		if after.bans > 0 {
			after.ended = b.times[begin] + shortest
		}
		for next := from; next <= to; next++ {
			f(next, after)
		}
	}
}

// bansThatCount returns how many of the earlier bans make a difference to the next one.
func (b *keyBounds) bansThatCount(bans int) int {
	ban := b.rule.Ban
	if ban.Duration(bans) == ban.Duration(bans-1) && ban.Duration(bans) == ban.Duration(bans+1) {
		return bans - 1
	}
	return bans
}

// firstAfter returns the first event that a ban of that length, which began with event
// begin, does not hold for.
func (b *keyBounds) firstAfter(begin int, long int64) int {
	times := b.times
	if !b.rule.Ban.Extend {
		return begin + 1 + sort.Search(len(times)-begin-1, func(i int) bool { return times[begin+1+i] >= times[begin]+long })
	}
	next := begin + 1
	for next < len(times) && times[next]-times[next-1] < long {
		next++
	}
	return next
}
