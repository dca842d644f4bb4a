package lately

import "time"

// Rate returns the average number of events per second in the last span: the
// whole window or a shorter span. For the current rate, take a second.
//
// The slot that is cut by the left edge of the span counts in proportion to its
// part inside, so the rate is off by at most that slot's count divided by the
// span: choose a span of several slots. A counter that is younger than the span
// is averaged over the whole span. Rate returns an error if span is not positive
// or is longer than the window.
func (c *Counter) Rate(span time.Duration) (float64, error) {
	if err := c.clock.checkSpan(span, c.window.Span); err != nil {
		return 0, err
	}
	lo, hi, t := c.liveBounds(int64(span))
	return c.rate(lo, hi, t, span), nil
}

// RateAt returns the rate of the span that ends at t; see Rate and, for times in
// the past, SumAt.
func (c *Counter) RateAt(t time.Time, span time.Duration) (float64, error) {
	if err := c.clock.checkSpan(span, c.window.Span); err != nil {
		return 0, err
	}
	ns := c.clock.nanos(t)
	lo, hi, _ := c.bounds(ns, int64(span))
	return c.rate(lo, hi, ns, span), nil
}

func (c *Counter) rate(lo, hi uint64, t int64, span time.Duration) float64 {
	return (float64(lo) + inside(hi-lo, t, int64(span), int64(c.window.Slot))) / span.Seconds()
}

// PeakRate returns the highest rate of any one slot of the window that ends
// now, in events a second: the largest count of a slot, by the slot's width. The
// slots are those that Sum adds up, the current one included, whose count may
// still rise.
func (c *Counter) PeakRate() float64 {
	now := c.clock.now()
	for {
		if most, whole := c.peak(c.notBehind(now)); whole {
			return float64(most) / c.window.Slot.Seconds()
		}
	}
}

// PeakRateAt returns the highest rate of any one slot of the window that ends at
// t; see PeakRate and, for times in the past, SumAt.
func (c *Counter) PeakRateAt(t time.Time) float64 {
	most, _ := c.peak(c.clock.nanos(t))
	return float64(most) / c.window.Slot.Seconds()
}

// peak returns the largest count of a slot of the window at t.
func (c *Counter) peak(t int64) (most uint64, whole bool) {
	last, whole := c.ring.Slot(t), true
	for s := last - c.ring.Slots() + 1; s <= last; s++ {
		count, kept := c.ring.Sum(s, s)
		most, whole = max(most, count), whole && kept
	}
	return most, whole
}
