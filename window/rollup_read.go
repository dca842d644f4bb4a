package window

import "time"

// Count returns the count of the span that ends now. A slot is a 60th of the span, or a
// 64th where 60 does not divide it into whole nanoseconds.
//
// span may be any up to the longest of r. If r does not have it, the next longer one is
// read, with its slots. Count returns an error if span is not positive or is longer than
// all spans of r.
func (r *Rollup) Count(span time.Duration) (Count, error) {
	return r.countOf(live(r.clock.now()), span)
}

// CountAt is Count for the span that ends at t. For times before the newest event it
// counts the part of the window that is still kept, as in [Counter.SumAt].
func (r *Rollup) CountAt(t time.Time, span time.Duration) (Count, error) {
	return r.countOf(r.clock.at(t), span)
}

// AppendCounts appends the count of each span of r, in the order of [Rollup.Spans], to dst,
// and returns it. All end at the same moment, so a longer span never counts less, unless it
// is longer by less than a 30th: then the widths of the slots matter more. If dst has
// enough capacity, it does not allocate.
func (r *Rollup) AppendCounts(dst []Count) []Count {
	return r.appendCounts(live(r.clock.now()), dst)
}

// AppendCountsAt is AppendCounts for the spans that end at t.
func (r *Rollup) AppendCountsAt(t time.Time, dst []Count) []Count {
	return r.appendCounts(r.clock.at(t), dst)
}

// Stats returns the numbers of calls that were refused or did not fit since r
// was made.
func (r *Rollup) Stats() Stats {
	return Stats{Late: r.late.Load(), Future: r.guard.future.Load(), Saturated: r.saturated.Load()}
}

func (r *Rollup) countOf(m moment, span time.Duration) (Count, error) {
	if err := checkSpan(span, r.spans[len(r.spans)-1]); err != nil {
		return Count{}, err
	}
	i := 0
	for span > r.spans[i] {
		i++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.countIn(i, r.at(m), span), nil
}

func (r *Rollup) appendCounts(m moment, dst []Count) []Count {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.at(m)
	for i, span := range r.spans {
		dst = append(dst, r.countIn(i, t, span))
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

// countIn returns the count of a span that ends at t, in the slots of window i.
//
// REQUIRES: r.mu.
func (r *Rollup) countIn(i int, t int64, span time.Duration) Count {
	a := &r.windows[i]
	lo, hi := a.bounds(0, a.in(t, int64(span)))
	return newCount(uint64(lo), uint64(hi), t, int64(span), a.width)
}
