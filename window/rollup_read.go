package window

import (
	"fmt"
	"time"
)

// A RollupCount is the bounds of the count of one span; see [Rollup.Bounds].
type RollupCount struct {
	Span   time.Duration
	Lo, Hi uint64
}

// Sum returns the count of the span that ends now, leaving out the slot that it
// cuts: the lo of [Rollup.Bounds].
func (r *Rollup) Sum(span time.Duration) (uint64, error) {
	lo, _, err := r.Bounds(span)
	return lo, err
}

// SumAt is Sum for the span that ends at t. For times before the newest event it is
// what is left of that window, as in [Counter.SumAt].
func (r *Rollup) SumAt(t time.Time, span time.Duration) (uint64, error) {
	lo, _, err := r.BoundsAt(t, span)
	return lo, err
}

// Bounds returns what the true count of the span that ends now lies between: lo
// counts the slots wholly inside it, the current one included, hi also the one
// that is partly inside. A slot is a 60th of the span (a 64th of some).
//
// The span may be any that is not longer than the longest of r. One that r does
// not have is answered from the next longer one that it has, in slots of that.
// The error says so if span is too long, or not positive; lo and hi are 0 then.
func (r *Rollup) Bounds(span time.Duration) (lo, hi uint64, err error) {
	return r.bounds(live(r.clock.now()), span)
}

// BoundsAt is Bounds for the span that ends at t; see SumAt.
func (r *Rollup) BoundsAt(t time.Time, span time.Duration) (lo, hi uint64, err error) {
	return r.bounds(r.clock.at(t), span)
}

// AppendCounts appends the count of each span of r, shortest first, to dst, and
// returns it. All are as of one moment, now, so a longer span never counts less,
// unless it is so little longer, by less than a 30th, that the widths of the slots
// matter more. If dst has enough capacity, it does not allocate.
func (r *Rollup) AppendCounts(dst []RollupCount) []RollupCount {
	return r.appendCounts(live(r.clock.now()), dst)
}

// AppendCountsAt is AppendCounts for the spans that end at t.
func (r *Rollup) AppendCountsAt(t time.Time, dst []RollupCount) []RollupCount {
	return r.appendCounts(r.clock.at(t), dst)
}

// Stats returns the numbers of calls that were refused or did not fit since r
// was made.
func (r *Rollup) Stats() Stats {
	return Stats{Late: r.late.Load(), Future: r.guard.future.Load(), Saturated: r.saturated.Load()}
}

func (r *Rollup) bounds(m moment, span time.Duration) (lo, hi uint64, err error) {
	if longest := r.spans[len(r.spans)-1]; span <= 0 || span > longest {
		return 0, 0, fmt.Errorf("lately: span %v: must be positive and at most the longest of the rollup, %v", span, longest)
	}
	i := 0
	for span > r.spans[i] {
		i++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	lo, hi = r.boundsIn(i, r.at(m), span)
	return lo, hi, nil
}

func (r *Rollup) appendCounts(m moment, dst []RollupCount) []RollupCount {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.at(m)
	for i, span := range r.spans {
		lo, hi := r.boundsIn(i, t, span)
		dst = append(dst, RollupCount{span, lo, hi})
	}
	return dst
}

// at returns the time that a read at m is about: for a live one, now or the time of the
// newest event if that is later.
//
// REQUIRES: r.mu.
func (r *Rollup) at(m moment) int64 {
	if m.live {
		return max(m.t, r.newest)
	}
	return m.t
}

// boundsIn returns the bounds of a span that ends at t, in the slots of window i.
//
// REQUIRES: r.mu.
func (r *Rollup) boundsIn(i int, t int64, span time.Duration) (lo, hi uint64) {
	a := &r.windows[i]
	without, with := a.bounds(0, a.in(t, int64(span)))
	return uint64(without), uint64(with)
}
