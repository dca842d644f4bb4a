package window

import (
	"iter"
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
)

// Sum returns the count of the window that ends now, leaving out the oldest
// slot, which has partly expired. It is the lo of [Counter.Bounds].
func (c *Counter) Sum() uint64 { return c.sum(live(c.clock.now()), 0) }

// SumAt returns the sum of the window that ends at t.
//
// A Counter keeps the slots of one window, the one that ends in the newest slot
// added to, and the partly expired slot before it. A read at a time later than
// all events is exact as well, and moves nothing. A read at an earlier t gets
// the part of that window that is still kept: slots that have left since count
// as empty, and the slot of t includes its events after t. This holds for all
// methods that read at a given time.
func (c *Counter) SumAt(t time.Time) uint64 { return c.sum(c.clock.at(t), 0) }

// Bounds returns bounds of the true count of the window that ends now: lo
// counts the slots wholly inside it, the current one included, hi also the
// oldest one, which is partly inside. They differ by the count of the oldest
// slot, and are equal at the end of the current slot, when the oldest has
// expired.
func (c *Counter) Bounds() (lo, hi uint64) {
	lo, hi, _ = c.bounds(live(c.clock.now()), int64(c.window.Span))
	return lo, hi
}

// BoundsAt is Bounds for the window that ends at t. For a t before the newest
// event, they cover the part of the window that is still kept; see SumAt.
func (c *Counter) BoundsAt(t time.Time) (lo, hi uint64) {
	lo, hi, _ = c.bounds(c.clock.at(t), int64(c.window.Span))
	return lo, hi
}

// Estimate returns one figure between the Bounds; see [Count].
func (c *Counter) Estimate() uint64 {
	return c.count(live(c.clock.now()), int64(c.window.Span)).Estimate
}

// EstimateAt is Estimate for the window that ends at t.
func (c *Counter) EstimateAt(t time.Time) uint64 {
	return c.count(c.clock.at(t), int64(c.window.Span)).Estimate
}

// Count returns the count of a span that ends now and is no longer than the window. It
// returns an error if span is not positive or longer.
func (c *Counter) Count(span time.Duration) (Count, error) {
	return c.countOf(live(c.clock.now()), span)
}

// CountAt is Count for a span that ends at t.
func (c *Counter) CountAt(t time.Time, span time.Duration) (Count, error) {
	return c.countOf(c.clock.at(t), span)
}

func (c *Counter) countOf(m moment, span time.Duration) (Count, error) {
	if err := checkSpan(span, c.window.Span); err != nil {
		return Count{}, err
	}
	return c.count(m, int64(span)), nil
}

// Finished returns the count of the last Span/Slot slots that are over, without the
// current one. It changes only when a slot ends, so successive figures can be compared.
// As of a time t, it is SumAt(t.Add(-slot)), where slot is the width of a slot.
func (c *Counter) Finished() uint64 { return c.sum(live(c.clock.now()), int64(c.window.Slot)) }

// Rate returns the average number of events per second in the last span: the
// whole window or a shorter span. For the current rate, take a second.
//
// The slot that is cut by the left edge of the span counts in proportion to its
// part inside, so the rate is off by at most that slot's count divided by the
// span: choose a span of several slots. A counter that is younger than the span
// is averaged over the whole span. Rate returns an error if span is not positive
// or is longer than the window.
func (c *Counter) Rate(span time.Duration) (float64, error) { return c.rate(live(c.clock.now()), span) }

// RateAt is Rate for a span that ends at t.
func (c *Counter) RateAt(t time.Time, span time.Duration) (float64, error) {
	return c.rate(c.clock.at(t), span)
}

// PeakRate returns the highest rate of any one slot of the window that ends now,
// in events a second: the largest count of a slot, by the slot's width. It reads
// the slots that Sum adds up, including the current one, whose count may still
// rise.
func (c *Counter) PeakRate() float64 { return c.peakRate(live(c.clock.now())) }

// PeakRateAt is PeakRate for the window that ends at t.
func (c *Counter) PeakRateAt(t time.Time) float64 { return c.peakRate(c.clock.at(t)) }

// SlotAt returns the count of the one slot that t lies in. ok is false if that
// slot is no longer kept; see SumAt.
func (c *Counter) SlotAt(t time.Time) (count uint64, ok bool) {
	slot := c.ring.Slot(c.clock.nanos(t))
	return c.ring.Sum(slot, slot)
}

// Slots returns the slots that Sum adds up, oldest first, empty ones included:
// the start of each, in UTC, and its count. The window ends when the iteration
// begins. Each slot is read when the iterator reaches it, and is empty if it
// has left the window by then.
func (c *Counter) Slots() iter.Seq2[time.Time, uint64] {
	return func(yield func(time.Time, uint64) bool) { c.each(live(c.clock.now()), yield) }
}

// SlotsAt returns the slots that SumAt(t) adds up, as Slots does.
func (c *Counter) SlotsAt(t time.Time) iter.Seq2[time.Time, uint64] {
	return func(yield func(time.Time, uint64) bool) { c.each(c.clock.at(t), yield) }
}

func (c *Counter) each(m moment, yield func(time.Time, uint64) bool) {
	last := c.ring.Slot(c.end(m))
	for s := last - c.ring.Slots() + 1; s <= last; s++ {
		count, _ := c.ring.Sum(s, s)
		if !yield(time.Unix(0, s*int64(c.window.Slot)).UTC(), count) {
			return
		}
	}
}

// end returns the time that a read at m is about: for a live one, now or the start
// of the newest slot if that is later. Then all slots of the window are kept; a
// live read that finds one gone was overtaken by the window moving on, and repeats.
func (c *Counter) end(m moment) int64 {
	if m.live {
		if newest, ok := c.ring.Newest(); ok {
			return max(m.t, newest*int64(c.window.Slot))
		}
	}
	return m.t
}

// sum returns the lo of the window as of back before m.
func (c *Counter) sum(m moment, back int64) uint64 {
	for {
		last := c.ring.Slot(c.end(m) - back)
		if lo, whole := c.ring.Sum(last-c.ring.Slots()+1, last); whole || !m.live {
			return lo
		}
	}
}

// bounds returns the bounds of the last span at m, and the time that it took for m.
func (c *Counter) bounds(m moment, span int64) (lo, hi uint64, t int64) {
	for {
		t = c.end(m)
		width, last := int64(c.window.Slot), c.ring.Slot(t)
		first, partly := last-c.ring.Slots()+1, t != last*width+width-1
		if span != int64(c.window.Span) {
			first, partly = ring.Oldest(t, span, width)
		}
		lo, whole := c.ring.Sum(first, last)
		oldest, kept := uint64(0), true
		if partly {
			oldest, kept = c.ring.Sum(first-1, first-1)
		}
		if whole && kept || !m.live {
			return lo, lo + oldest, t
		}
	}
}

func (c *Counter) count(m moment, span int64) Count {
	lo, hi, t := c.bounds(m, span)
	return newCount(lo, hi, t, span, int64(c.window.Slot))
}

func (c *Counter) rate(m moment, span time.Duration) (float64, error) {
	if err := checkSpan(span, c.window.Span); err != nil {
		return 0, err
	}
	lo, hi, t := c.bounds(m, int64(span))
	return (float64(lo) + inside(hi-lo, t, int64(span), int64(c.window.Slot))) / span.Seconds(), nil
}

func (c *Counter) peakRate(m moment) float64 {
	for {
		most, whole, last := uint64(0), true, c.ring.Slot(c.end(m))
		for s := last - c.ring.Slots() + 1; s <= last; s++ {
			count, kept := c.ring.Sum(s, s)
			most, whole = max(most, count), whole && kept
		}
		if whole || !m.live {
			return float64(most) / c.window.Slot.Seconds()
		}
	}
}
