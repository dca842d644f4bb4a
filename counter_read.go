package lately

import (
	"iter"
	"time"

	"github.com/lately-go/lately/internal/ring"
)

// Sum returns the count of the window that ends now, leaving out the oldest
// slot, which has partly expired. It is the lo of [Counter.Bounds].
func (c *Counter) Sum() uint64 { return c.liveSum(c.clock.now(), int64(c.window.Span)) }

// SumAt returns the sum of the window that ends at t.
//
// A Counter keeps the slots of one window, the one that ends in the newest slot
// added to, and the partly expired slot before it. A read at a time later than
// all events is as good as any, and moves nothing. A read at an earlier t gets
// what is left of that window: the slots that have gone since count as empty,
// and the slot of t counts with what has happened in it after t.
func (c *Counter) SumAt(t time.Time) uint64 {
	sum, _ := c.sum(c.clock.nanos(t), int64(c.window.Span))
	return sum
}

// SumLast returns the sum of a shorter span that ends now: of the slots that
// lie wholly inside it, the current one included. The error says so if span is
// not positive or longer than the window; the sum is 0 then.
func (c *Counter) SumLast(span time.Duration) (uint64, error) {
	if err := c.clock.checkSpan(span, c.window.Span); err != nil {
		return 0, err
	}
	return c.liveSum(c.clock.now(), int64(span)), nil
}

// SumLastAt returns the sum of a shorter span that ends at t; see SumLast and,
// for times in the past, SumAt.
func (c *Counter) SumLastAt(t time.Time, span time.Duration) (uint64, error) {
	if err := c.clock.checkSpan(span, c.window.Span); err != nil {
		return 0, err
	}
	sum, _ := c.sum(c.clock.nanos(t), int64(span))
	return sum, nil
}

// Bounds returns what the true count of the window that ends now lies between:
// lo counts the slots wholly inside it, the current one included, hi also the
// oldest one, which is partly inside. They differ by the count of that slot; at
// the very end of the current slot, when it has expired, by nothing.
func (c *Counter) Bounds() (lo, hi uint64) {
	lo, hi, _ = c.liveBounds(int64(c.window.Span))
	return lo, hi
}

// BoundsAt returns the bounds of the window that ends at t, for a t that is not
// earlier than the newest event. For an earlier t they are bounds of what is
// left of that window; see SumAt.
func (c *Counter) BoundsAt(t time.Time) (lo, hi uint64) {
	lo, hi, _ = c.bounds(c.clock.nanos(t), int64(c.window.Span))
	return lo, hi
}

// Estimate returns one figure between the Bounds: lo and the share of the
// oldest slot that is still inside the window, as if its events were spread
// evenly. It is off by no more than that slot's count.
func (c *Counter) Estimate() uint64 { return c.estimate(c.liveBounds(int64(c.window.Span))) }

// EstimateAt returns the estimate for the window that ends at t; for times in
// the past see SumAt.
func (c *Counter) EstimateAt(t time.Time) uint64 {
	ns := c.clock.nanos(t)
	lo, hi, _ := c.bounds(ns, int64(c.window.Span))
	return c.estimate(lo, hi, ns)
}

// Finished returns the count of the last Span/Slot slots that are over, the
// current one left out. It changes only when a slot ends, so it suits figures
// that are to be compared with each other.
func (c *Counter) Finished() uint64 {
	now := c.clock.now()
	for {
		if sum, whole := c.finished(c.notBehind(now)); whole {
			return sum
		}
	}
}

// FinishedAt returns the count of the last Span/Slot slots that are over at t;
// for times in the past see SumAt.
func (c *Counter) FinishedAt(t time.Time) uint64 {
	sum, _ := c.finished(c.clock.nanos(t))
	return sum
}

// SlotAt returns the count of the one slot that t lies in. ok is false if that
// slot is older than what is kept, see SumAt, and its count no longer known.
func (c *Counter) SlotAt(t time.Time) (count uint64, ok bool) {
	slot := c.ring.Slot(c.clock.nanos(t))
	return c.ring.Sum(slot, slot)
}

// Slots returns the slots that Sum adds up, oldest first, empty ones included:
// the start of each, in UTC, and its count. The window is that of the moment
// when the iteration begins; each slot is read when its turn comes, and is
// empty if it has left the window by then.
func (c *Counter) Slots() iter.Seq2[time.Time, uint64] {
	return func(yield func(time.Time, uint64) bool) {
		c.each(c.notBehind(c.clock.now()), yield)
	}
}

// SlotsAt returns the slots that SumAt(t) adds up, as Slots does.
func (c *Counter) SlotsAt(t time.Time) iter.Seq2[time.Time, uint64] {
	return func(yield func(time.Time, uint64) bool) {
		c.each(c.clock.nanos(t), yield)
	}
}

func (c *Counter) each(t int64, yield func(time.Time, uint64) bool) {
	last := c.ring.Slot(t)
	for s := last - c.ring.Slots() + 1; s <= last; s++ {
		count, _ := c.ring.Sum(s, s)
		if !yield(time.Unix(0, s*int64(c.window.Slot)).UTC(), count) {
			return
		}
	}
}

// notBehind returns the time that a live read is about: now, or the start of
// the newest slot if that is later. Then all slots of the window are kept; a
// read that finds one gone was overtaken by the window moving on, and repeats.
func (c *Counter) notBehind(now int64) int64 {
	if newest, ok := c.ring.Newest(); ok {
		return max(now, newest*int64(c.window.Slot))
	}
	return now
}

// sum is the lo of the last span at t. It is not whole if a slot that it should
// have in it is no longer kept.
func (c *Counter) sum(t, span int64) (lo uint64, whole bool) {
	last := c.ring.Slot(t)
	if span == int64(c.window.Span) { // the common case, without a division
		return c.ring.Sum(last-c.ring.Slots()+1, last)
	}
	first, _ := ring.Oldest(t, span, int64(c.window.Slot))
	return c.ring.Sum(first, last)
}

func (c *Counter) liveSum(now, span int64) uint64 {
	for {
		if lo, whole := c.sum(c.notBehind(now), span); whole {
			return lo
		}
	}
}

// bounds returns the bounds of the last span at t.
func (c *Counter) bounds(t, span int64) (lo, hi uint64, whole bool) {
	width, last := int64(c.window.Slot), c.ring.Slot(t)
	first, partly := last-c.ring.Slots()+1, t != last*width+width-1
	if span != int64(c.window.Span) {
		first, partly = ring.Oldest(t, span, width)
	}
	lo, whole = c.ring.Sum(first, last)
	if !partly {
		return lo, lo, whole
	}
	oldest, kept := c.ring.Sum(first-1, first-1)
	return lo, lo + oldest, whole && kept
}

// liveBounds returns the bounds of the last span now, and the time it took for now.
func (c *Counter) liveBounds(span int64) (lo, hi uint64, t int64) {
	now := c.clock.now()
	for {
		t = c.notBehind(now)
		if lo, hi, whole := c.bounds(t, span); whole {
			return lo, hi, t
		}
	}
}

func (c *Counter) estimate(lo, hi uint64, t int64) uint64 {
	return between(lo, hi, t, int64(c.window.Span), int64(c.window.Slot))
}

// between returns lo and the share of hi - lo, the count of the slot that the
// left edge of (t-span, t] cuts, that is inside if its events are spread evenly.
func between(lo, hi uint64, t, span, width int64) uint64 {
	return lo + uint64(inside(hi-lo, t, span, width)+0.5)
}

// inside returns the share of count, that of the slot which the left edge of
// (t-span, t] cuts, that is inside.
func inside(count uint64, t, span, width int64) float64 {
	first, _ := ring.Oldest(t, span, width)
	times := first*width - 1 - (t - span) // of that slot after the left edge
	return float64(count) * float64(times) / float64(width)
}

func (c *Counter) finished(t int64) (sum uint64, whole bool) {
	current := c.ring.Slot(t)
	return c.ring.Sum(current-c.ring.Slots(), current-1)
}
