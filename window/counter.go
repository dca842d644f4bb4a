package window

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
)

// A Counter counts events in one [Window].
//
// Add counts events that happen now, AddAt events that happened at a given time;
// most callers need [Counter.Add] and [Counter.Sum] or [Counter.Estimate].
//
// It is exact. Every add that is not refused counts in precisely one slot, and stays
// counted for as long as that slot is in the window, with any number of goroutines,
// across slot changes, after any idle time, and if clocks are changed. Only the left
// edge of the window is not exact, since it lies somewhere in the oldest slot:
// [Counter.Sum] leaves that slot out, and [Counter.Bounds] returns the bounds of the
// true count.
//
// Now is the wall time when the Counter was made plus the monotonic time since, so
// setting the wall clock changes nothing; while the machine sleeps, now does not
// advance. A given time with a monotonic reading, as [time.Now] returns it, is
// converted by that reading, any other by its wall time. Times before about 1735
// and after 2252 count as the nearest time that the clock can represent. Both forms
// may be used on one Counter as long as the events are not ahead of the clock; see
// [Counter.Add].
//
// An add costs one atomic add and a clock reading. The first add after idle time, or
// after a jump of the events' time, also clears the slots in between, about 10 ns
// each, at most all slots once. If goroutines on several cores add at once, they are
// spread over stripes, see docs/dev/proofs.md, so adds get faster with each core. A
// read costs about a nanosecond per slot and stripe.
//
// The first add allocates 8 bytes per slot, with the number of slots rounded up to
// a power of two. So does the first add in each stripe, and an add after idle time
// of 2^25 windows or more (9 hours for a window of 1 ms, a year for 1 s). Nothing
// else allocates. There is no goroutine and no timer, so nothing to close.
//
// A slot holds at least 2^36-1; see [Stats]. The sum of all slots of a window stays
// far below 2^64.
//
// All methods are safe for concurrent use, and none blocks. A read that runs beside
// adds includes all adds that ended before it began, and some of those that began
// before it ended; it is not atomic. The zero Counter is not usable: it panics;
// call [NewCounter]. A Counter must not be copied.
type Counter struct {
	ring   ring.Ring
	window Window
	clock  liveClock

	guard aheadGuard
	late  atomic.Uint64 // adds refused
}

const (
	none = math.MinInt64 // no time: all times are after minTime

	// Times are kept this far from the ends of int64, so that the arithmetic
	// of a window fits on both sides.
	maxTime = math.MaxInt64 - int64(MaxSpan)
	minTime = -maxTime
)

// NewCounter returns an empty Counter for the window w. The error names the bad
// field, its value and what it must be.
func NewCounter(w Window) (*Counter, error) {
	w, err := w.checked()
	if err != nil {
		return nil, err
	}
	c := &Counter{window: w, clock: newLiveClock()}
	c.guard.init()
	c.ring.Init(int64(w.Slot), int(w.Span/w.Slot))
	return c, nil
}

// Window returns the window that c counts in, its slot filled in.
func (c *Counter) Window() Window { return c.window }

// Add counts n events that happen now. It is never refused.
//
// If the goroutine is held up between reading the clock and counting, the
// events count in the slot that the window has reached by then. If AddAt has
// put the window ahead of the clock, by more than the window is long, they
// count in the newest slot; the live reads look there too.
func (c *Counter) Add(n uint64) { c.ring.AddLive(c.clock.now(), n) }

// AddAt counts n events that happened at t, in any order of times. It reports
// whether they are counted. If not, they were refused: as late, because t is
// in a slot that the window as of the newest event has left altogether, or as
// future, see [Window.Ahead]. [Counter.Stats] has the numbers of both.
//
// AddAt(t, 0) counts nothing, but moves the window on to t.
func (c *Counter) AddAt(t time.Time, n uint64) bool { return c.addAt(c.clock.nanos(t), n) }

func (c *Counter) addAt(t int64, n uint64) bool {
	if c.window.Ahead > 0 && c.isFuture(t) {
		return false
	}
	if !c.ring.AddAt(t, n) {
		c.late.Add(1)
		return false
	}
	return true
}

// isFuture reports whether an event at t must be refused as future.
func (c *Counter) isFuture(t int64) bool {
	newest, ok := c.ring.Newest()
	return ok && c.guard.refuses(t, (newest+1)*int64(c.window.Slot), c.window.Ahead, c.window.Span)
}

// AddSum counts n events that happen now and returns the sum that follows,
// those n included. It is Add and Sum with one reading of the clock, not one
// atomic step: of two goroutines that add at the same time, both or only one
// may see the other's events. If something must happen exactly once when a
// limit is passed, use package ratelimit, whose decisions are atomic.
func (c *Counter) AddSum(n uint64) uint64 {
	m := live(c.clock.now())
	c.ring.AddLive(m.t, n)
	return c.sum(m, 0)
}

// AddSumAt counts n events that happened at t and returns the sum at t that
// follows, and whether the events are counted; see [Counter.AddAt]. The sum
// is about the window that ends at t, also if the events were refused.
func (c *Counter) AddSumAt(t time.Time, n uint64) (sum uint64, ok bool) {
	m := c.clock.at(t)
	ok = c.addAt(m.t, n)
	return c.sum(m, 0), ok
}

// Stats returns the numbers of calls that were refused or did not fit since c
// was made.
func (c *Counter) Stats() Stats {
	return Stats{Late: c.late.Load(), Future: c.guard.future.Load(), Saturated: c.ring.Saturated()}
}
