package ratelimit

import (
	"slices"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// A layout is what a rule's records depend on: rules with equal layouts can use
// the same records.
type layout struct {
	algorithm Algorithm
	zone      *time.Location
	limits    []Limit
	keep      []uint64 // the largest N of each that a record has room for, see keepOf
	most      uint64   // the largest N that an Adapt can bring; 0 without one
	bans      bool
	after     uint64
	of        Cause
	span      time.Duration
}

// newLayout returns the layout of r, whose counts are taken over from records of
// the layout old, unless that is nil.
func newLayout(r *Rule, old *layout) layout {
	l := layout{algorithm: r.Algorithm, zone: r.Zone, limits: r.Limits}
	if r.Adapt != nil {
		l.most = r.Adapt.most()
	}
	if r.Ban != nil {
		l.bans, l.after, l.of, l.span = true, r.Ban.After, r.Ban.Of, r.Ban.Span
	}
	for _, rl := range l.limits {
		l.keep = append(l.keep, max(rl.N, l.most))
	}
	if old != nil {
		l.keepOf(old)
	}
	return l
}

// keptAnew is how many times a log keeps at most that were counted in slots.
const keptAnew = 1024

// keepOf makes room for what old has room for: when a limit is lowered and raised
// again, what was counted before is still known. Room in a log costs memory only
// when it is taken.
func (l *layout) keepOf(old *layout) {
	for i := range l.limits {
		j, ok := l.heir(i, old)
		if !ok || l.algorithm.bursts() || old.algorithm.bursts() {
			continue // what a bucket holds is bounded by its N
		}
		keep := old.keep[j]
		switch {
		case !l.logged(i):
		case old.logged(j):
			keep = min(keep, MaxExact)
		default:
			keep = min(keep, keptAnew)
		}
		l.keep[i] = max(l.keep[i], keep)
	}
}

// logged reports whether the i-th limit is counted in a log.
func (l *layout) logged(i int) bool {
	return l.algorithm == Exact || l.algorithm == InFlight ||
		l.algorithm == Sliding && max(l.limits[i].N, l.most) <= limit.SlidingExact
}

// outgrows reports whether a key may come to take many times what its record
// does, so that the record's own bytes matter less than how soon it is found.
func (l *layout) outgrows() bool {
	for i := range l.limits {
		if l.keep[i] >= 16 && (l.logged(i) || l.algorithm == Sliding) {
			return true
		}
	}
	return l.bans && l.after >= 16
}

func (l layout) equal(o layout) bool {
	return l.algorithm == o.algorithm && sameZone(l.zone, o.zone) && l.most == o.most &&
		slices.Equal(l.limits, o.limits) && slices.Equal(l.keep, o.keep) &&
		l.bans == o.bans && l.after == o.after && l.of == o.of && l.span == o.span
}

// sameZone reports whether a and b are one zone, which a rules file that is read
// again loads anew.
func sameZone(a, b *time.Location) bool {
	if a == nil || b == nil || a == b {
		return a == b
	}
	for month := time.January; month <= time.December; month++ {
		at := time.Date(2025, month, 1, 0, 0, 0, 0, time.UTC)
		if offset(at, a) != offset(at, b) {
			return false
		}
	}
	return a.String() == b.String()
}

func offset(at time.Time, zone *time.Location) int {
	_, seconds := at.In(zone).Zone()
	return seconds
}

// meters returns the meters of a record, limits first, then the ban's.
func (l layout) meters(resolution time.Duration) ([]limit.Counter, error) {
	var ms []limit.Counter
	for i, rl := range l.limits {
		c := limit.Config{
			Algorithm: limit.Algorithm(l.algorithm), N: l.keep[i], Span: rl.Span, Burst: rl.Burst,
			Resolution: resolution,
		}
		switch {
		case l.algorithm == Calendar:
			c.Span, c.Period, c.Zone = 0, limit.Period(rl.period()), l.zone
		case l.algorithm == Sliding && l.logged(i):
			c.Algorithm = limit.Exact
		}
		m, err := limit.New(c)
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	if l.bans {
		m, err := limit.New(limit.Config{Algorithm: limit.Exact, N: l.after, Span: l.span, Resolution: resolution})
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	return ms, nil
}

// heir returns which limit of old the i-th limit of l takes its counts over from:
// the one with the shortest span that is no shorter, or if all are, the longest.
// ok is false if there is none.
func (l *layout) heir(i int, old *layout) (best int, ok bool) {
	if len(old.limits) == 0 || (l.algorithm == InFlight) != (old.algorithm == InFlight) {
		return 0, false // one counts what has come, the other what is under way
	}
	span := l.limits[i].Window()
	for j := range old.limits {
		a, b := old.limits[best].Window(), old.limits[j].Window()
		switch covered := a >= span; {
		case covered != (b >= span):
			if !covered {
				best = j
			}
		case covered && b < a, !covered && b > a:
			best = j
		}
	}
	return best, true
}
