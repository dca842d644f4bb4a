package window

import (
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/ring"
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
// event. A read at a time later than all events is exact as well. A read at an
// earlier t gets the part that is still kept: the slots that have left since count as
// empty, and the slot of t counts with the events in it after t. This holds for
// all methods that read at a given time.
func (tb *Table) SumAt(t time.Time, key string) uint64 {
	lo, _ := tb.BoundsAt(t, key)
	return lo
}

// Bounds returns bounds of the true count of key in the longest window, which
// ends now: lo counts the slots wholly inside it, the current one included, hi
// also the oldest one, which is partly inside.
func (tb *Table) Bounds(key string) (lo, hi uint64) {
	c := tb.count(key, live(tb.clock.now()), tb.longest())
	return c.Lo, c.Hi
}

// BoundsAt is Bounds for the longest window, which ends at t.
func (tb *Table) BoundsAt(t time.Time, key string) (lo, hi uint64) {
	c := tb.count(key, tb.clock.at(t), tb.longest())
	return c.Lo, c.Hi
}

// Estimate returns one figure between the Bounds; see [Count].
func (tb *Table) Estimate(key string) uint64 {
	return tb.count(key, live(tb.clock.now()), tb.longest()).Estimate
}

// EstimateAt is Estimate for the longest window, which ends at t.
func (tb *Table) EstimateAt(t time.Time, key string) uint64 {
	return tb.count(key, tb.clock.at(t), tb.longest()).Estimate
}

// Count returns the count of key in a span that ends now, from the slots of the shortest
// window that contains it. It returns an error if span is not positive or is longer than
// all windows.
func (tb *Table) Count(key string, span time.Duration) (Count, error) {
	return tb.countOf(key, live(tb.clock.now()), span)
}

// CountAt is Count for a span that ends at t.
func (tb *Table) CountAt(t time.Time, key string, span time.Duration) (Count, error) {
	return tb.countOf(key, tb.clock.at(t), span)
}

// A part is a span of a table's windows, and the window that it is read from.
type part struct {
	*tableWindow
	span int64
}

// longest returns the longest window, whole.
func (tb *Table) longest() part {
	tb.mustBeMade()
	w := &tb.windows[len(tb.windows)-1]
	return part{w, int64(w.window.Span)}
}

func (tb *Table) part(span time.Duration) (part, error) {
	tb.mustBeMade()
	for i := range tb.windows {
		if 0 < span && span <= tb.windows[i].window.Span {
			return part{&tb.windows[i], int64(span)}, nil
		}
	}
	return part{}, fmt.Errorf("window: span %v: must be positive and at most the longest window's %v", span, tb.longest().window.Span)
}

// timeOf returns the time that a read of w at m is about: for a live one, now or the
// start of the newest slot if that is later.
func (w *tableWindow) timeOf(m moment) int64 {
	if m.live {
		return max(m.t, w.newest.Load()*w.width)
	}
	return m.t
}

func (tb *Table) countOf(key string, m moment, span time.Duration) (Count, error) {
	p, err := tb.part(span)
	if err != nil {
		return Count{}, err
	}
	return tb.count(key, m, p), nil
}

// count returns the count of key in p at m.
func (tb *Table) count(key string, m moment, p part) Count {
	r, state := tb.in.Lock(tb.in.Hash(key), key)
	if state != keytable.Found {
		return Count{}
	}
	t := p.timeOf(m)
	lo, hi := tb.boundsOf(r, t, p)
	r.Unlock()
	return newCount(lo, hi, t, p.span, p.width)
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
