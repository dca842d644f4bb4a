package lately

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/ring"
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
	if longest := r.spans[len(r.spans)-1].span; span <= 0 || int64(span) > longest {
		return 0, 0, fmt.Errorf("lately: span %v: must be positive and at most the longest of the rollup, %v", span, time.Duration(longest))
	}
	i := 0
	for int64(span) > r.spans[i].span {
		i++
	}
	r.view(func() {
		t := r.end(m)
		lo, hi = r.spans[i].bounds(r.total.Load(), t, int64(span))
	})
	return lo, hi, nil
}

func (r *Rollup) appendCounts(m moment, dst []RollupCount) []RollupCount {
	before := len(dst)
	r.view(func() {
		t := r.end(m)
		total := r.total.Load()
		dst = dst[:before]
		for i := range r.spans {
			p := &r.spans[i]
			lo, hi := p.bounds(total, t, p.span)
			dst = append(dst, RollupCount{time.Duration(p.span), lo, hi})
		}
	})
	return dst
}

// end returns the time that a read at m is about: for a live one, now or when the last
// of the current slots began if that is later.
func (r *Rollup) end(m moment) int64 {
	if m.live {
		return max(m.t, r.start.Load())
	}
	return m.t
}

// bounds counts the span that ends at t, the total being total.
func (p *rollupSpan) bounds(total uint64, t, span int64) (lo, hi uint64) {
	last := p.newest.Load()
	if uint64(t-last*p.width) >= uint64(p.width) {
		last = ring.FloorDiv(t, p.width)
	}
	first, cut := last-p.slots+1, t != last*p.width+p.width-1
	if span != p.span {
		first, cut = ring.Oldest(t, span, p.width)
	}
	after := p.markOr(last+1, total)
	lo = after - p.markOr(first, total)
	if !cut {
		return lo, lo
	}
	return lo, after - p.markOr(first-1, total)
}

// markOr is mark for any slot: before one that is yet to come, all is total.
func (p *rollupSpan) markOr(slot int64, total uint64) uint64 {
	if slot > p.newest.Load() {
		return total
	}
	return p.mark(slot)
}
