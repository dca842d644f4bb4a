package window

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/ring"
)

// Sum returns the count of key in the longest window, which ends now, leaving
// out the oldest slot, which has partly expired. It is the lo of Bounds. A key
// that is not held has 0.
func (tb *Table) Sum(key string) uint64 {
	lo, _ := tb.Bounds(key)
	return lo
}

// SumAt returns the sum of key in the longest window, which ends at t.
//
// A table keeps the slots of the windows that end in the slot of its newest
// event. A read at a time later than all events is as good as any. A read at an
// earlier t gets what is left: the slots that have gone since count as empty,
// and the slot of t counts with what has happened in it after t. This holds for
// all methods that read at a given time.
func (tb *Table) SumAt(t time.Time, key string) uint64 {
	lo, _ := tb.BoundsAt(t, key)
	return lo
}

// SumLast returns the sum of key over a span that ends now, of the slots of the
// shortest window that contains it. It returns an error if span is not positive
// or is longer than all windows.
func (tb *Table) SumLast(key string, span time.Duration) (uint64, error) {
	lo, _, err := tb.BoundsLast(key, span)
	return lo, err
}

// SumLastAt is SumLast for a span that ends at t.
func (tb *Table) SumLastAt(t time.Time, key string, span time.Duration) (uint64, error) {
	lo, _, err := tb.BoundsLastAt(t, key, span)
	return lo, err
}

// Bounds returns what the true count of key in the longest window, which ends
// now, lies between: lo counts the slots wholly inside it, the current one
// included, hi also the oldest one, which is partly inside.
func (tb *Table) Bounds(key string) (lo, hi uint64) {
	lo, hi, _ = tb.BoundsLast(key, tb.longest())
	return lo, hi
}

// BoundsAt is Bounds for the longest window, which ends at t.
func (tb *Table) BoundsAt(t time.Time, key string) (lo, hi uint64) {
	lo, hi, _ = tb.BoundsLastAt(t, key, tb.longest())
	return lo, hi
}

// BoundsLast returns the bounds of a span that ends now; see SumLast.
func (tb *Table) BoundsLast(key string, span time.Duration) (lo, hi uint64, err error) {
	return tb.bounds(key, live(tb.clock.now()), span)
}

// BoundsLastAt is BoundsLast for a span that ends at t.
func (tb *Table) BoundsLastAt(t time.Time, key string, span time.Duration) (lo, hi uint64, err error) {
	return tb.bounds(key, tb.clock.at(t), span)
}

// Estimate returns the estimated count of key in the longest window, which ends
// now: lo of [Table.Bounds] and the share of the oldest slot that is still inside
// the window, as if the events of that slot were spread evenly. For steady
// traffic it is unbiased, unlike Sum. Its error is at most hi - lo.
func (tb *Table) Estimate(key string) uint64 {
	n, _ := tb.EstimateLast(key, tb.longest())
	return n
}

// EstimateAt is Estimate for the longest window, which ends at t.
func (tb *Table) EstimateAt(t time.Time, key string) uint64 {
	n, _ := tb.EstimateLastAt(t, key, tb.longest())
	return n
}

// EstimateLast returns the estimated count of key in a span that ends now; see
// Estimate and SumLast.
func (tb *Table) EstimateLast(key string, span time.Duration) (uint64, error) {
	return tb.estimate(key, live(tb.clock.now()), span)
}

// EstimateLastAt is EstimateLast for a span that ends at t.
func (tb *Table) EstimateLastAt(t time.Time, key string, span time.Duration) (uint64, error) {
	return tb.estimate(key, tb.clock.at(t), span)
}

// A part is a span of a table's windows, and the window that it is read from.
type part struct {
	*tableWindow
	span int64
}

func (tb *Table) longest() time.Duration {
	tb.mustBeMade()
	return tb.windows[len(tb.windows)-1].window.Span
}

func (tb *Table) part(span time.Duration) (part, error) {
	tb.mustBeMade()
	for i := range tb.windows {
		if 0 < span && span <= tb.windows[i].window.Span {
			return part{&tb.windows[i], int64(span)}, nil
		}
	}
	return part{}, fmt.Errorf("lately: span %v: must be positive and at most the longest window's %v", span, tb.longest())
}

// timeOf returns the time that a read of w at m is about: for a live one, now or the
// start of the newest slot if that is later.
func (w *tableWindow) timeOf(m moment) int64 {
	if m.live {
		return max(m.t, w.newest.Load()*w.width)
	}
	return m.t
}

func (tb *Table) bounds(key string, m moment, span time.Duration) (lo, hi uint64, err error) {
	part, err := tb.part(span)
	if err == nil {
		lo, hi, _ = tb.boundsIn(part, key, m)
	}
	return lo, hi, err
}

func (tb *Table) estimate(key string, m moment, span time.Duration) (uint64, error) {
	part, err := tb.part(span)
	if err != nil {
		return 0, err
	}
	lo, hi, t := tb.boundsIn(part, key, m)
	return between(lo, hi, t, part.span, part.width), nil
}

// boundsIn returns the bounds of key in p at m, and the time that it took for m.
func (tb *Table) boundsIn(p part, key string, m moment) (lo, hi uint64, t int64) {
	r, state := tb.in.Lock(tb.in.Hash(key), key)
	if state != keytable.Found {
		return 0, 0, m.t
	}
	t = p.timeOf(m)
	lo, hi = tb.boundsOf(r, t, p)
	r.Unlock()
	return lo, hi, t
}

func (tb *Table) boundsOf(r keytable.Record, t int64, p part) (lo, hi uint64) {
	first, partly := ring.Oldest(t, p.span, p.width)
	lo = tb.clippedSum(p.tableWindow, r, first, ring.FloorDiv(t, p.width))
	if !partly {
		return lo, lo
	}
	oldest := tb.clippedSum(p.tableWindow, r, first-1, first-1)
	return lo, lo + min(oldest, ^lo)
}

// clippedSum is sum without the slots that the windows have left, which a record
// may still have if its key has been silent.
func (tb *Table) clippedSum(w *tableWindow, r keytable.Record, first, last int64) uint64 {
	return tb.sum(w, r, max(first, w.newest.Load()-w.slots), last)
}
