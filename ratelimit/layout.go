package ratelimit

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// A layout is what a rule's records depend on: rules with equal layouts can use
// the same records.
type layout struct {
	algorithm Algorithm
	zone      *time.Location
	limits    []Limit   // of the rule, then those of former
	keep      []uint64  // the largest N that a record holds for each limit, see retain
	most      uint64    // the largest N that an Adapt can reach; 0 without one
	former    *former   // or nil
	ban       banLayout // zero without a ban
}

// A banLayout is what is counted for a ban.
type banLayout struct {
	After uint64
	Of    Cause
	Span  time.Duration
	Field string `json:",omitempty"` // whose values are counted
}

// A former is the limits that a rule had before its algorithm changed. They judge
// and are charged together with the rule's own limits for one span of theirs. So no
// count has to be translated, and no window holds more than one of the two
// algorithms admits.
type former struct {
	layout
	since time.Time    // of the change
	seen  atomic.Int64 // when they judged last, so long after since
	over  atomic.Bool  // an event came after their end
}

// judged says that an event was judged at now, where f judges until then.
func (f *former) judged(now, until int64) {
	switch {
	case f.over.Load():
	case now >= until:
		f.over.Store(true)
	default:
		f.seen.Store(int64(time.Since(f.since)))
	}
}

// ended reports whether f judges no more: an event has shown it, or there was none
// for as long as f judges. (Times of events need not be those of a clock.)
func (f *former) ended() bool {
	return f.over.Load() || time.Since(f.since)-time.Duration(f.seen.Load()) >= f.longest()
}

// longest returns the longest window of the limits.
func (l *layout) longest() (d time.Duration) {
	for _, rl := range l.limits {
		d = max(d, rl.Window())
	}
	return d
}

// newLayout returns the layout of r, which was before until now; before is nil for
// a new rule.
func newLayout(r *Rule, before *memoryRule) (layout, error) {
	l := layout{algorithm: r.Algorithm, zone: r.Zone, limits: r.Limits}
	if r.Adapt != nil {
		l.most = r.Adapt.most()
	}
	if r.Ban != nil {
		l.ban = banLayout{After: r.Ban.After, Of: r.Ban.Of, Span: r.Ban.Span, Field: r.Ban.Field}
	}
	for _, rl := range l.limits {
		l.keep = append(l.keep, max(rl.N, l.most))
	}
	if before == nil {
		return l, nil
	}
	l.retain(&before.records.layout)
	return l, l.follow(before)
}

// follow sets l.former. Counts of what is under way mean nothing to other
// algorithms, and theirs nothing to InFlight: nothing judges on then.
func (l *layout) follow(before *memoryRule) error {
	was := &before.records.layout
	pending := was.former
	if pending != nil && pending.ended() {
		pending = nil
	}
	changed := l.algorithm != was.algorithm && was.own() > 0 && len(l.limits) > 0
	switch {
	case len(l.limits) == 0 || changed && (l.algorithm == InFlight || was.algorithm == InFlight):
		return nil
	case changed && pending != nil:
		return fmt.Errorf("algorithm is %s, and was changed from %s to %s less than %v ago: must be %s until %s",
			l.algorithm, pending.algorithm, was.algorithm, pending.longest(), was.algorithm, pending.since.Add(pending.longest()).UTC().Format(time.RFC3339))
	case changed:
		pending = &former{since: time.Now(), layout: layout{
			algorithm: was.algorithm, zone: was.zone, most: was.most,
			limits: slices.Clone(was.limits[:was.own()]), keep: was.keep[:was.own()],
		}}
		if before.adapt != nil {
			for i := range pending.limits {
				pending.limits[i].N = before.adapt.n.Load()
			}
		}
	}
	if l.former = pending; pending != nil {
		l.limits = append(l.limits[:len(l.limits):len(l.limits)], pending.limits...)
		l.keep = append(l.keep, pending.keep...)
	}
	return nil
}

// own returns how many of the limits are the rule's own: the first.
func (l *layout) own() int {
	if l.former == nil {
		return len(l.limits)
	}
	return len(l.limits) - len(l.former.limits)
}

// part returns the layout that the i-th limit is of, and its number there.
func (l *layout) part(i int) (*layout, int) {
	if own := l.own(); i >= own {
		return &l.former.layout, i - own
	}
	return l, i
}

// retainedTimes bounds the times that a log retains of what was counted in slots.
const retainedTimes = 1024

// retain keeps as many counts as old can hold: when a limit is lowered and raised
// again, what was counted before is still known. The size of a log costs memory only
// when it is taken.
func (l *layout) retain(old *layout) {
	if l.algorithm.bursts() {
		return // what a bucket holds is bounded by its N
	}
	for i := range l.limits {
		j := l.heir(i, old)
		if j < 0 {
			continue
		}
		keep := old.keep[j]
		if l.logged(i) && !old.logged(j) {
			keep = min(keep, retainedTimes)
		}
		l.keep[i] = max(l.keep[i], keep)
	}
}

// logged reports whether the i-th limit is counted in a log.
func (l *layout) logged(i int) bool {
	l, i = l.part(i)
	c := l.limits[i].config(l.algorithm, nil)
	c.N = max(c.N, l.most)
	return c.Exact()
}

func (l layout) equal(o layout) bool {
	return l.algorithm == o.algorithm && sameZone(l.zone, o.zone) && l.most == o.most &&
		slices.Equal(l.limits, o.limits) && slices.Equal(l.keep, o.keep) && l.former == o.former && l.ban == o.ban
}

// sameZone reports whether a and b are one zone, which a rules file that is read
// again loads again: two of one name may differ only if they were made by hand.
func sameZone(a, b *time.Location) bool {
	return a == b || a != nil && b != nil && a.String() == b.String() && januaryOffset(a) == januaryOffset(b)
}

// januaryOffset returns the offset of a zone in January 2025, in seconds.
func januaryOffset(zone *time.Location) int {
	_, seconds := time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC).In(zone).Zone()
	return seconds
}

// meters returns the counters of a record, limits first, then the ban's.
func (l *layout) meters(resolution time.Duration) ([]limit.Counter, error) {
	var ms []limit.Counter
	for i, rl := range l.limits {
		part, _ := l.part(i)
		c := rl.config(part.algorithm, part.zone)
		if c.N, c.Resolution = l.keep[i], resolution; part.algorithm == Sliding && l.logged(i) {
			c.Algorithm = limit.Exact
		}
		m, err := limit.New(c)
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	if l.ban.Span > 0 {
		m, err := limit.New(limit.Config{Algorithm: limit.Exact, Distinct: l.ban.Of == Distinct, N: l.ban.After, Span: l.ban.Span, Resolution: resolution})
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// heir returns which limit of old the i-th limit of l takes its counts over from,
// or -1 if there is none. It is one of the same algorithm: the same limit, else the
// one with the shortest span that is no shorter, else the one with the longest.
func (l *layout) heir(i int, old *layout) int {
	part, _ := l.part(i)
	best, span := -1, l.limits[i].Window()
	for j := range old.limits {
		if was, _ := old.part(j); was.algorithm != part.algorithm {
			continue
		}
		if l.limits[i] == old.limits[j] {
			return j
		}
		if best < 0 || nearer(old.limits[j].Window(), old.limits[best].Window(), span) {
			best = j
		}
	}
	return best
}

// nearer reports whether counts of a window of length a serve one of length span
// better than those of length b.
func nearer(a, b, span time.Duration) bool {
	switch {
	case (a >= span) != (b >= span):
		return a >= span
	case a >= span:
		return a < b
	}
	return a > b
}
