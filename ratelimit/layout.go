package ratelimit

import (
	"cmp"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// A layout is what a rule's records depend on: rules with equal layouts can use
// the same records.
type layout struct {
	algorithm Algorithm
	zone      *time.Location
	limits    []Limit   // a Burst of 0 is N, unless N changes
	keep      []uint64  // the largest N that a record holds for each limit, see retain
	most      uint64    // the largest N that an Adapt can reach; 0 without one
	ban       banLayout // zero without a ban
}

// A banLayout is what is counted for a ban.
type banLayout struct {
	After uint64
	Of    Cause
	Span  time.Duration
	Field string `json:",omitempty"` // whose values are counted
}

// newLayout returns the layout of r, whose records take over from those of before, or
// nil.
func newLayout(r *Rule, before *memoryRule) layout {
	l := layout{algorithm: r.Algorithm, zone: r.Zone, limits: slices.Clone(r.Limits)}
	if r.Adapt != nil {
		l.most = r.Adapt.most()
	}
	if r.Ban != nil {
		l.ban = banLayout{After: r.Ban.After, Of: r.Ban.Of, Span: r.Ban.Span, Field: r.Ban.Field}
	}
	for i := range l.limits {
		rl := &l.limits[i]
		if l.algorithm.Bursts() && rl.AtMost == 0 && r.Adapt == nil {
			rl.Burst = cmp.Or(rl.Burst, rl.N)
		}
		keep := max(rl.N, l.most)
		if !l.algorithm.Bursts() {
			keep = max(keep, rl.AtMost)
		}
		l.keep = append(l.keep, keep)
	}
	if before != nil {
		l.retain(&before.records.layout)
	}
	return l
}

// retainedTimes bounds the times that a log retains of what was counted in slots.
const retainedTimes = 1024

// retain keeps as many counts as old can hold: when a limit is lowered and raised
// again, what was counted before is still known. The size of a log costs memory only
// when it is taken.
func (l *layout) retain(old *layout) {
	if l.algorithm.Bursts() {
		return // what a bucket holds is bounded by its N
	}
	for i := range l.limits {
		j := l.heir(i, old)
		if j < 0 {
			continue
		}
		keep := min(old.keep[j], maxN(l.algorithm))
		if l.logged(i) && !old.logged(j) {
			keep = min(keep, retainedTimes)
		}
		l.keep[i] = max(l.keep[i], keep)
	}
}

// logged reports whether the i-th limit is counted in a log.
func (l *layout) logged(i int) bool {
	c := l.limits[i].config(l.algorithm, nil)
	c.N = max(c.N, l.most, l.limits[i].AtMost)
	return c.Exact()
}

func (l *layout) equal(o *layout) bool { return l.sameLimits(o) && l.ban == o.ban }

// sameLimits reports whether both count the same for limits, and as much of it.
func (l *layout) sameLimits(o *layout) bool {
	return l.algorithm == o.algorithm && limit.ZoneOf(l.zone) == limit.ZoneOf(o.zone) && l.most == o.most &&
		slices.Equal(l.limits, o.limits) && slices.Equal(l.keep, o.keep)
}

// counters returns the counters of a record, limits first, then the ban's.
func (l *layout) counters(resolution time.Duration) ([]limit.Counter, error) {
	var ms []limit.Counter
	for i, rl := range l.limits {
		c := rl.config(l.algorithm, l.zone)
		if c.N, c.Resolution = l.keep[i], resolution; l.algorithm == Sliding && l.logged(i) {
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
// or -1 if there is none. It is the same limit, else the one with the shortest span
// that is no shorter, else the one with the longest. Between what is under way and what
// has come in a span, nothing is taken over.
func (l *layout) heir(i int, old *layout) int {
	if (l.algorithm == InFlight) != (old.algorithm == InFlight) {
		return -1
	}
	best, span := -1, l.limits[i].Window()
	for j := range old.limits {
		if l.algorithm == old.algorithm && l.limits[i] == old.limits[j] {
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
