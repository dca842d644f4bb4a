package lately

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
	lo, _ := tb.bounds(key, tb.clock.now(), tb.longest(), true)
	return lo
}

// SumAt returns the sum of key in the longest window, which ends at t.
//
// A table keeps the slots of the windows that end in the slot of its newest
// event. A read at a time later than all events is as good as any. A read at an
// earlier t gets what is left: the slots that have gone since count as empty,
// and the slot of t counts with what has happened in it after t.
func (tb *Table) SumAt(t time.Time, key string) uint64 {
	lo, _ := tb.bounds(key, tb.clock.nanos(t), tb.longest(), false)
	return lo
}

// SumLast returns the sum of key over a span that ends now, of the slots of the
// shortest window that holds it. The error says so if span is not positive or
// longer than all windows; the sum is 0 then.
func (tb *Table) SumLast(key string, span time.Duration) (uint64, error) {
	lo, _, err := tb.BoundsLast(key, span)
	return lo, err
}

// SumLastAt returns the sum of key over a span that ends at t; see SumLast and,
// for times in the past, SumAt.
func (tb *Table) SumLastAt(t time.Time, key string, span time.Duration) (uint64, error) {
	lo, _, err := tb.BoundsLastAt(t, key, span)
	return lo, err
}

// Bounds returns what the true count of key in the longest window, which ends
// now, lies between: lo counts the slots wholly inside it, the current one
// included, hi also the oldest one, which is partly inside.
func (tb *Table) Bounds(key string) (lo, hi uint64) {
	return tb.bounds(key, tb.clock.now(), tb.longest(), true)
}

// BoundsAt returns the bounds of the longest window, which ends at t; for times
// in the past see SumAt.
func (tb *Table) BoundsAt(t time.Time, key string) (lo, hi uint64) {
	return tb.bounds(key, tb.clock.nanos(t), tb.longest(), false)
}

// BoundsLast returns the bounds of a span that ends now; see SumLast.
func (tb *Table) BoundsLast(key string, span time.Duration) (lo, hi uint64, err error) {
	part, err := tb.part(span)
	if err != nil {
		return 0, 0, err
	}
	lo, hi = tb.bounds(key, tb.clock.now(), part, true)
	return lo, hi, nil
}

// BoundsLastAt returns the bounds of a span that ends at t; see SumLast and, for
// times in the past, SumAt.
func (tb *Table) BoundsLastAt(t time.Time, key string, span time.Duration) (lo, hi uint64, err error) {
	part, err := tb.part(span)
	if err != nil {
		return 0, 0, err
	}
	lo, hi = tb.bounds(key, tb.clock.nanos(t), part, false)
	return lo, hi, nil
}

// Estimate returns the estimated count of key in the longest window, which ends
// now: lo of [Table.Bounds] and the share of the oldest slot that is still inside
// the window, as if the events of that slot were spread evenly. For steady
// traffic it is unbiased, unlike Sum. Its error is at most hi - lo.
func (tb *Table) Estimate(key string) uint64 {
	return tb.estimate(key, tb.clock.now(), tb.longest(), true)
}

// EstimateAt returns the estimate for the longest window, which ends at t; for
// times in the past see SumAt.
func (tb *Table) EstimateAt(t time.Time, key string) uint64 {
	return tb.estimate(key, tb.clock.nanos(t), tb.longest(), false)
}

// EstimateLast returns the estimated count of key in a span that ends now; see
// Estimate and SumLast.
func (tb *Table) EstimateLast(key string, span time.Duration) (uint64, error) {
	part, err := tb.part(span)
	if err != nil {
		return 0, err
	}
	return tb.estimate(key, tb.clock.now(), part, true), nil
}

// EstimateLastAt returns the estimated count of key in a span that ends at t; see
// Estimate, SumLast and, for times in the past, SumAt.
func (tb *Table) EstimateLastAt(t time.Time, key string, span time.Duration) (uint64, error) {
	part, err := tb.part(span)
	if err != nil {
		return 0, err
	}
	return tb.estimate(key, tb.clock.nanos(t), part, false), nil
}

func (tb *Table) estimate(key string, t int64, p part, live bool) uint64 {
	if live {
		t = tb.notBehind(p, t)
	}
	lo, hi := tb.bounds(key, t, p, false)
	return tb.estimateOf(lo, hi, t, p)
}

func (tb *Table) estimateOf(lo, hi uint64, t int64, p part) uint64 {
	return between(lo, hi, t, p.span, tb.windows[p.window].width)
}

// A part is a span of a table's windows, and the window that it is read from.
type part struct {
	window int
	span   int64
}

func (tb *Table) longest() part {
	tb.mustBeMade()
	i := len(tb.windows) - 1
	return part{i, int64(tb.windows[i].window.Span)}
}

func (tb *Table) part(span time.Duration) (part, error) {
	tb.mustBeMade()
	for i := range tb.windows {
		if 0 < span && span <= tb.windows[i].window.Span {
			return part{i, int64(span)}, nil
		}
	}
	return part{}, fmt.Errorf("lately: span %v: must be positive and at most the longest window's %v", span, tb.windows[len(tb.windows)-1].window.Span)
}

// notBehind returns the time that a live read is about: now, or the start of
// the newest slot if that is later.
func (tb *Table) notBehind(p part, now int64) int64 {
	w := &tb.windows[p.window]
	return max(now, w.newest.Load()*w.width)
}

func (tb *Table) bounds(key string, t int64, p part, live bool) (lo, hi uint64) {
	r, state := tb.in.Lock(tb.in.Hash(key), key)
	if state != keytable.Found {
		return 0, 0
	}
	if live {
		t = tb.notBehind(p, t)
	}
	lo, hi = tb.boundsOf(r, t, p)
	r.Unlock()
	return lo, hi
}

func (tb *Table) boundsOf(r keytable.Record, t int64, p part) (lo, hi uint64) {
	w := &tb.windows[p.window]
	last := ring.FloorDiv(t, w.width)
	first, partly := ring.Oldest(t, p.span, w.width)
	lo = tb.clippedSum(w, p.window, r, first, last)
	if !partly {
		return lo, lo
	}
	oldest := tb.clippedSum(w, p.window, r, first-1, first-1)
	return lo, lo + min(oldest, ^lo)
}

// clippedSum is sum without the slots that the windows have left, which a record
// may still have if its key has been silent.
func (tb *Table) clippedSum(w *tableWindow, i int, r keytable.Record, first, last int64) uint64 {
	return tb.sum(w, i, r, max(first, w.newest.Load()-w.slots), last)
}
