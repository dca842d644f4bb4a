package replay

import (
	"math"
	"sort"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// from returns how often events are refused from the state on, by a rule that bans.
//
// Before the first ban the limits refuse as often as their models say; the m-th
// refusal is no earlier than that of the model that refuses most, and no later than
// that of the one that refuses least. So the event that begins a ban is known but for
// a range of events, and so is the first one after the ban. Bans are no shorter than
// what limits remember: after one, or a pause that is long enough, the key is in a
// state of the same kind again. The bound is the best and the worst of all these ways.
func (r *ranger) from(s state) Range {
	if found, ok := r.recall(s); ok {
		return found
	}
	start := s
	var sofar Range
	var w watched
	for s.event < len(r.times) && r.steps <= r.limit {
		w = r.watch(s.event)
		for i := s.event; i < w.free; i++ {
			r.free[i] = true
		}
		if len(w.begins) > 0 {
			break
		}
		sofar.add(w.total)
		s.event = w.end
	}
	if s.event >= len(r.times) || r.steps > r.limit {
		if r.steps <= r.limit {
			r.keep(start, sofar)
		}
		return sofar
	}
	found := Range{math.MaxInt64, 0}
	better := func(o, plus Range) {
		found.Least = min(found.Least, o.Least+plus.Least)
		found.Most = max(found.Most, o.Most+plus.Most)
	}
	for i, b := range w.begins {
		r.bans(b, s, func(next state) {
			during := int64(next.event - b - 1)
			better(r.from(next), Range{w.refused[i].Least + during, w.refused[i].Most + during})
		})
	}
	if !w.sure {
		better(r.from(state{w.end, s.bans, s.ended}), w.total)
	}
	if found.Least == math.MaxInt64 { // there were too many steps
		found.Least = 0
	}
	found.add(sofar)
	r.keep(start, found)
	return found
}

func (r *ranger) recall(s state) (Range, bool) {
	if s.bans == 0 {
		if s.event >= len(r.times) {
			return Range{}, true
		}
		return r.first[s.event].Range, r.first[s.event].ok
	}
	found, ok := r.next[s]
	return found, ok
}

func (r *ranger) keep(s state, found Range) {
	if s.bans == 0 {
		r.first[s.event] = known{found, true}
	} else {
		r.next[s] = found
	}
}

// A watched is what may become of a key up to its first ban.
type watched struct {
	begins  []int   // events that may begin the ban
	refused []Range // of each, how many are refused up to it, itself among them
	sure    bool    // the ban begins at one of these
	end     int     // else: the first event before which all was forgotten
	total   Range   // and how many are refused up to it
	free    int     // the first event for which a ban holds for sure, or end
}

// watch follows a key of which nothing is known before event i to its first ban.
func (r *ranger) watch(i int) (w watched) {
	ban, d, times := r.rule.Ban, r.d, r.times
	least, most := r.copies()
	span, after := int64(ban.Span), int(ban.After)
	memory := max(least.memory(), most.memory(), span) + d
	var early, late []int64 // times of refusals in either model, or of hits
	var now Range
	for j := i; j < len(times); j++ {
		if j > i && times[j]-times[j-1] >= memory {
			w.end, w.free, w.total = j, j, now
			return w
		}
		if r.steps++; r.steps > r.limit {
			return w
		}
		s := times[j]
		before := now
		if len(r.rule.Limits) > 0 {
			now.add(Range{ones(least.refuses(s)), ones(most.refuses(s))})
		}
		strike := true
		if ban.Of == ratelimit.Refusals {
			strike = now.Most > before.Least
			if now.Most > before.Most {
				early = append(early, s)
			}
			if now.Least > before.Least {
				late = append(late, s)
			}
		} else {
			early, late = append(early, s), append(late, s)
		}
		if strike && mayBegin(early, late, s, after, span, d) {
			w.begins = append(w.begins, j)
			up := Range{max(before.Least, int64(after)) + 1, before.Most + 1}
			if ban.Of == ratelimit.Hits {
				up.Least = before.Least + 1
			}
			up.Most = max(up.Most, up.Least)
			w.refused = append(w.refused, up)
			if mustBegin(early, late, after, span, d) {
				w.sure, w.free = true, j+1
				return w
			}
		}
	}
	w.end, w.free, w.total = len(times), len(times), now
	return w
}

// copies returns models of the limits for a key that nothing is known of.
func (r *ranger) copies() (least, most *pace) {
	r.least.reset()
	r.most.reset()
	return r.least, r.most
}

func ones(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// mayBegin reports whether a strike at s may be one too many: whether after others
// may have come less than a span before it. The m-th strike came at early[m] or later,
// and at late[m], where there is such, or earlier.
func mayBegin(early, late []int64, s int64, after int, span, d int64) bool {
	if len(early) <= after {
		return false
	}
	if after == 0 {
		return true
	}
	// The strike at s may be any one from the number of the late ones on to that of
	// the early ones; the least demanding is one whose predecessors are latest.
	m := len(early) - 1
	first := s
	if m-after < len(late) {
		first = min(first, late[m-after])
	}
	return s-first-d < span
}

// mustBegin reports whether a ban has begun for sure: whether the last strike that
// has come for sure was one too many.
func mustBegin(early, late []int64, after int, span, d int64) bool {
	m := len(late) - 1
	return m >= after && late[m]+d-early[m-after] < span
}

// bans calls f with each state in which the key may be after a ban that began with
// event b, where it was in state s before.
func (r *ranger) bans(b int, s state, f func(state)) {
	ban := r.rule.Ban
	counts := []int{s.bans}
	if s.bans > 0 { // it may be forgotten that there were any
		remember := ban.Remember
		if remember == 0 {
			remember = 24 * time.Hour
		}
		if r.times[b]+r.d-s.ended > int64(remember) {
			counts = append(counts, 0)
		}
	}
	for _, before := range counts {
		shortest := int64(ban.Duration(before))
		longest := shortest
		if ban.Jitter > 0 {
			longest += int64(float64(shortest)*ban.Jitter) + int64(time.Millisecond)
		}
		from, to := r.over(b, shortest-r.d), r.over(b, longest+r.d)
		r.steps += 1 + (to-from)/16
		for next := from; next <= to; next++ {
			if r.steps > r.limit {
				return
			}
			after := state{event: next, bans: r.remembered(before + 1)}
			if after.bans > 0 {
				after.ended = r.times[b] + shortest
			}
			f(after)
		}
	}
}

// remembered returns the number of bans that make a difference.
func (r *ranger) remembered(bans int) int {
	ban := r.rule.Ban
	if ban.Duration(bans) == ban.Duration(bans-1) && ban.Duration(bans) == ban.Duration(bans+1) {
		return bans - 1
	}
	return bans
}

// over returns the first event after b that a ban of that length, which began with b,
// does not hold for.
func (r *ranger) over(b int, long int64) int {
	times := r.times
	if !r.rule.Ban.Extend {
		return b + 1 + sort.Search(len(times)-b-1, func(i int) bool { return times[b+1+i] >= times[b]+long })
	}
	next := b + 1
	for next < len(times) && times[next]-times[next-1] < long {
		next++
	}
	return next
}
