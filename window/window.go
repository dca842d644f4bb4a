package window

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
)

// Bounds of a [Window].
const (
	// MaxSlots is the largest number of slots of a window, enough for a day in
	// seconds. Such a window takes 1 MiB.
	MaxSlots = 100_000

	// MaxSpan is the longest span of a window, ten years of 365 days.
	MaxSpan = 10 * 365 * 24 * time.Hour
)

// A Window is the span of time in which events are counted: the last Span, in slots of
// width Slot.
//
// At time t the window is (t-Span, t]: an event exactly Span ago is out. Events
// leave the window a slot at a time, so the slot is the resolution: more slots
// give tighter bounds (see [Counter.Bounds]), at 8 bytes and about a nanosecond
// a read each.
//
// The zero Window is not valid: Span has no default. A Window is a plain value;
// it is checked once, by the constructor that takes it.
type Window struct {
	// Span is the length of the window, in whole milliseconds, from 1 ms to
	// MaxSpan.
	Span time.Duration

	// Slot is the width of a slot, in whole nanoseconds. Span must be a
	// multiple of it, MaxSlots times at most. 0 means the slot that Last picks.
	Slot time.Duration

	// Ahead bounds how far an event may be ahead of the newest one; 0 means no
	// bound. It concerns only the methods that take a time.
	//
	// An event further ahead is refused as future, so that one line dated 2099
	// cannot empty the window. A second such event, within one Span of the
	// refused one, confirms that time has really jumped: it is counted and the
	// window moves on. Ahead is measured from the end of the newest event's
	// slot, so an event up to a Slot further than Ahead may be accepted. An
	// empty window accepts any time.
	Ahead time.Duration
}

// Last returns a window of that span with 60 slots: a second each for a minute,
// a minute each for an hour. If 60 does not divide the span into whole
// nanoseconds, it has 64 slots. Last checks nothing; the constructor that is
// given the window does.
func Last(span time.Duration) Window {
	return Window{Span: span, Slot: defaultSlot(span)}
}

func defaultSlot(span time.Duration) time.Duration { return time.Duration(ring.Width(int64(span))) }

// Slots returns the number of slots of w, or 0 if w is not valid.
func (w Window) Slots() int {
	w, err := w.checked()
	if err != nil {
		return 0
	}
	return int(w.Span / w.Slot)
}

// checked returns w with its default filled in, or what is wrong with it.
func (w Window) checked() (Window, error) {
	switch {
	case w.Span < time.Millisecond || w.Span > MaxSpan:
		return w, fmt.Errorf("window: span %v: must be from 1ms to %v", w.Span, MaxSpan)
	case w.Span%time.Millisecond != 0:
		return w, fmt.Errorf("window: span %v: must be whole milliseconds, as %v", w.Span, w.Span.Truncate(time.Millisecond))
	}
	w.Slot = cmp.Or(w.Slot, defaultSlot(w.Span))
	switch {
	case w.Slot < 0:
		return w, fmt.Errorf("window: slot %v: must be positive, or 0 for the default", w.Slot)
	case w.Span%w.Slot != 0:
		return w, fmt.Errorf("window: span %v is not a multiple of slot %v; the slot must divide the span, as %v does", w.Span, w.Slot, defaultSlot(w.Span))
	case w.Span/w.Slot > MaxSlots:
		return w, fmt.Errorf("window: span %v has %d slots of %v; at most %d are allowed, so the slot must be %v or more",
			w.Span, w.Span/w.Slot, w.Slot, MaxSlots, (w.Span+MaxSlots-1)/MaxSlots)
	case w.Ahead < 0 || w.Ahead > MaxSpan:
		return w, fmt.Errorf("window: ahead %v: must be from 0 (no bound) to %v", w.Ahead, MaxSpan)
	}
	return w, nil
}
