package window

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const maxRollupSpans = 32

// RollupConfig configures a [Rollup]. The zero RollupConfig is valid.
type RollupConfig struct {
	// Spans are the spans of the windows, in any order, from 1 ms to MaxSpan,
	// in whole milliseconds, 32 at most. None means 5, 10 and 30
	// minutes and 1, 3, 6, 12 and 24 hours.
	Spans []time.Duration

	// Ahead bounds how far an event may be ahead of the newest one, as
	// Window.Ahead does; 0 means no bound. A second event within the shortest span
	// confirms the jump, and up to a slot of the shortest span more than Ahead may
	// pass.
	Ahead time.Duration
}

// A Rollup counts events over many spans at once, from a second to a month, for the
// cost of one add. Most callers need [Rollup.Add] and [Rollup.Count].
//
// It is exact within bounds: [Rollup.Count] returns the counts of two windows, Lo of
// one that is at most a slot shorter than the span, Hi of one that is at most a slot
// longer, and the true count lies between. A slot is a 60th of the span, or a 64th
// if 60 does not divide it into whole nanoseconds. No add that is not refused is
// lost or counted twice, with any number of goroutines, after any idle time, and if
// clocks are changed. A slot counts up to 2^62-1, and a span up to 2^63-1; see
// [Stats].
//
// Most methods have two forms, for now and for a given time, as in [Counter]. A mutex
// guards the windows: an add costs a clock reading and two to three nanoseconds for each
// span, a read about a nanosecond for each slot. Nothing allocates after NewRollup. Memory
// is some 600 bytes for each span: 5 KiB for the eight spans of the zero config. There is
// no goroutine and no timer.
//
// All methods are safe for concurrent use, and a read is of one moment. The zero Rollup is
// not usable: it panics; call [NewRollup]. A Rollup must not be copied.
type Rollup struct {
	clock liveClock
	spans []time.Duration // shortest first
	ahead time.Duration

	mu      sync.Mutex
	windows []amounts // of each span, with one sum
	newest  int64     // the time of the newest event, or none
	guard   aheadGuard

	late, saturated atomic.Uint64
}

func defaultRollupSpans() []time.Duration {
	return []time.Duration{
		5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
}

// NewRollup returns an empty Rollup. The error names the bad field of config,
// its value and what it must be.
func NewRollup(config RollupConfig) (*Rollup, error) {
	spans := slices.Clone(config.Spans)
	if len(spans) == 0 {
		spans = defaultRollupSpans()
	}
	if len(spans) > maxRollupSpans {
		return nil, fmt.Errorf("window: rollup spans: %d given, at most %d are allowed", len(spans), maxRollupSpans)
	}
	slices.Sort(spans)
	r := &Rollup{spans: spans, ahead: config.Ahead, clock: newLiveClock(), newest: none}
	for i, span := range spans {
		w, err := Window{Span: span, Ahead: config.Ahead}.checked()
		if err != nil {
			return nil, fmt.Errorf("%w (in RollupConfig)", err)
		}
		if i > 0 && span == spans[i-1] {
			return nil, fmt.Errorf("window: rollup spans: %v is given twice", span)
		}
		r.windows = append(r.windows, newAmounts(w, 1))
	}
	r.guard.init()
	return r, nil
}

// Spans returns the spans, shortest first.
func (r *Rollup) Spans() []time.Duration { return slices.Clone(r.spans) }

// Add counts n events that happen now, in all windows. It is never refused.
//
// If the goroutine is delayed between reading the clock and counting, or if AddAt has
// moved the windows ahead of the clock, the events count at the time of the newest event.
func (r *Rollup) Add(n uint64) { r.addLive(r.clock.now(), n) }

func (r *Rollup) addLive(now int64, n uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count(max(now, r.newest), n)
}

// AddAt counts n events that happened at t, in any order of times, in all
// windows that reach back to t. It reports whether they are counted. If not,
// they were refused: as late, because t is older than all spans, or as future,
// see [RollupConfig]. [Rollup.Stats] has the numbers of both.
//
// AddAt(t, 0) counts nothing, but moves the windows on to t.
func (r *Rollup) AddAt(t time.Time, n uint64) bool { return r.addAt(r.clock.nanos(t), n) }

func (r *Rollup) addAt(t int64, n uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ahead > 0 && r.newest != none && r.guard.refuses(t, r.end(), r.ahead, r.spans[0]) {
		return false
	}
	if !r.count(t, n) {
		r.late.Add(1)
		return false
	}
	return true
}

// end returns when the first of the newest slots is over.
//
// REQUIRES: r.mu.
func (r *Rollup) end() int64 {
	end := r.windows[0].end()
	for i := range r.windows {
		end = min(end, r.windows[i].end())
	}
	return end
}

// count counts n events at t in each window that keeps the slot of t, and reports whether
// there is one.
//
// REQUIRES: r.mu.
func (r *Rollup) count(t int64, n uint64) (kept bool) {
	amount, fits := int64(min(n, math.MaxInt64)), true
	for i := range r.windows {
		a := &r.windows[i]
		if slot := a.slot(t); a.keeps(slot) {
			kept, fits = true, a.add(0, slot, amount) && fits
		}
	}
	if !fits {
		r.saturated.Add(1)
	}
	r.newest = max(r.newest, t)
	return kept
}
