package lately

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/ring"
)

// MaxRollupSpans is the largest number of spans of a [Rollup].
const MaxRollupSpans = 32

// RollupConfig says which windows a [Rollup] counts in. The zero RollupConfig
// is valid.
type RollupConfig struct {
	// Spans are the spans of the windows, in any order, from 1 ms to MaxSpan,
	// in whole milliseconds, MaxRollupSpans at most. None means 5, 10 and 30
	// minutes and 1, 3, 6, 12 and 24 hours.
	Spans []time.Duration

	// Ahead bounds how far an event may be ahead of the newest one, as
	// Window.Ahead does; 0 means that there is no bound. It is the shortest
	// span within which a second event confirms the jump, and up to a slot of
	// the shortest span more than Ahead may pass.
	Ahead time.Duration
}

// A Rollup counts events over many spans at once, from a second to a month, for the
// cost of one add. Most callers need [Rollup.Add] and [Rollup.Bounds].
//
// It is exact within bounds: [Rollup.Bounds] returns the counts of two windows, lo of
// one that is at most a slot shorter than the span, hi of one that is at most a slot
// longer, and the true count lies between. A slot is a 60th of the span, or a 64th
// where 60 does not divide it into whole nanoseconds. No add that is not refused is
// lost or counted twice, with any number of goroutines, after any idle time, whatever
// the clocks do. Counts stay up to 2^63-1; see [Stats].
//
// Most methods have two forms, for now and for a given time, as in [Counter]. An add
// with the current time costs a clock reading and one atomic add. The first add after
// the end of a slot moves the windows under a mutex, which takes some nanoseconds for
// each span and each new slot. An add with a given time takes the mutex and, if it is
// late, some nanoseconds for each slot since. Reads take no lock unless the windows
// are being moved. Nothing allocates after NewRollup. Memory is about 550 bytes for
// each span and 200 bytes more: 4.5 KiB for the eight spans of the zero config. There
// is no goroutine and no timer.
//
// All methods are safe for concurrent use. A read that runs beside adds sees at least
// the adds that ended before it began, and at most those that began before it ended.
// The zero Rollup is not usable: it panics; call [NewRollup]. A Rollup must not be
// copied.
//
// A Rollup does not count per slot. It keeps the total of all events and, for each
// span, what the total was when each of its last slots began. The count of a window is
// the total less the total when the window began: prefix sums. docs/dev/proofs.md has
// the proof of the bounds.
type Rollup struct {
	// total is all events so far, and wraps. An add without the mutex has seen that its
	// time is before next.
	total atomic.Uint64
	next  atomic.Int64  // when the first of the current slots is over
	floor atomic.Uint64 // the least total that any span still needs

	seqlock              // of the writing of marks; its mutex is for the writing of all but total
	start   atomic.Int64 // when the last of the current slots began, or none
	spans   []rollupSpan // shortest first
	ahead   time.Duration
	clock   liveClock
	guard   aheadGuard // with the mutex held

	late, saturated atomic.Uint64
}

// A rollupSpan is what a Rollup keeps for one span. mark(s) is the total of all
// events before slot s.
type rollupSpan struct {
	span, width, slots int64
	newest             atomic.Int64    // slot
	head               atomic.Int64    // where in marks that of newest is
	marks              []atomic.Uint64 // of slots newest-slots to newest, in a ring
}

const (
	maxRollupCount = 1<<63 - 1

	// maxUncheckedCount is the largest add that is done before it is known whether it
	// fits. To wrap the total past maxRollupCount takes 2^31 goroutines between that
	// add and the check.
	maxUncheckedCount = 1 << 32
)

func defaultRollupSpans() []time.Duration {
	return []time.Duration{
		5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
}

// NewRollup returns an empty Rollup. The error names the field of config that
// is wrong, its value and what is allowed.
func NewRollup(config RollupConfig) (*Rollup, error) {
	spans := slices.Clone(config.Spans)
	if len(spans) == 0 {
		spans = defaultRollupSpans()
	}
	if len(spans) > MaxRollupSpans {
		return nil, fmt.Errorf("lately: rollup spans: %d given, at most %d are allowed", len(spans), MaxRollupSpans)
	}
	slices.Sort(spans)
	r := &Rollup{spans: make([]rollupSpan, len(spans)), ahead: config.Ahead, clock: newLiveClock()}
	for i, span := range spans {
		w, err := Window{Span: span, Ahead: config.Ahead}.checked()
		if err != nil {
			return nil, fmt.Errorf("%w (in RollupConfig)", err)
		}
		if i > 0 && span == spans[i-1] {
			return nil, fmt.Errorf("lately: rollup spans: %v is given twice", span)
		}
		slots := int64(w.Span / w.Slot)
		p := &r.spans[i]
		p.span, p.width, p.slots = int64(span), int64(w.Slot), slots
		p.marks = make([]atomic.Uint64, slots+1)
	}
	r.guard.init()
	r.next.Store(none)
	r.start.Store(none)
	return r, nil
}

// Spans returns the spans, shortest first.
func (r *Rollup) Spans() []time.Duration {
	spans := make([]time.Duration, len(r.spans))
	for i := range r.spans {
		spans[i] = time.Duration(r.spans[i].span)
	}
	return spans
}

// Add counts n events that happen now, in all windows. It is never refused.
//
// If the goroutine is delayed between reading the clock and counting, the events count
// at a time that the windows have reached meanwhile. If AddAt has moved the windows
// ahead of the clock, they count at the time of the newest event.
func (r *Rollup) Add(n uint64) { r.addLive(r.clock.now(), n) }

func (r *Rollup) addLive(now int64, n uint64) {
	if now >= r.next.Load() {
		r.mu.Lock()
		r.advance(now)
		r.mu.Unlock()
	}
	if n > maxUncheckedCount {
		r.mu.Lock()
		r.addExact(n)
		r.mu.Unlock()
		return
	}
	if r.total.Add(n)-r.floor.Load() > maxRollupCount {
		r.mu.Lock()
		r.saturate()
		r.mu.Unlock()
	}
}

// AddAt counts n events that happened at t, in any order of times, in all
// windows that reach back to t. It reports whether they are counted. If not,
// they were refused: as late, because t is older than what the longest span
// keeps, or as future, see [RollupConfig]. [Rollup.Stats] has the numbers of both.
//
// AddAt(t, 0) counts nothing, but moves the windows on to t.
func (r *Rollup) AddAt(t time.Time, n uint64) bool { return r.addAt(r.clock.nanos(t), n) }

func (r *Rollup) addAt(t int64, n uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	start := r.start.Load()
	switch {
	case start != none && r.guard.refuses(t, r.next.Load(), r.ahead, time.Duration(r.spans[0].span)):
		return false
	case start == none || t >= start:
		r.advance(t)
		r.addExact(n)
		return true
	case r.isLate(t):
		r.late.Add(1)
		return false
	}
	r.addBefore(t, n)
	return true
}

// isLate reports whether t is in a slot that no span keeps.
func (r *Rollup) isLate(t int64) bool {
	for i := range r.spans {
		if p := &r.spans[i]; ring.FloorDiv(t, p.width) >= p.newest.Load()-p.slots {
			return false
		}
	}
	return true
}

// addExact adds n to the total, or as much as fits, and returns how much that was.
//
// REQUIRES: r.mu.
func (r *Rollup) addExact(n uint64) uint64 {
	free := maxRollupCount - min(r.total.Load()-r.floor.Load(), maxRollupCount)
	if n > free {
		n = free
		r.saturated.Add(1)
	}
	r.total.Add(n)
	return n
}

// saturate takes back what has been added beyond what fits.
//
// REQUIRES: r.mu.
func (r *Rollup) saturate() {
	count := r.total.Load() - r.floor.Load()
	if count > maxRollupCount {
		r.total.Add(maxRollupCount - count) // wraps: less
		r.saturated.Add(1)
	}
}

// advance moves the windows on to t: the slots that begin up to then have the
// total of now for their mark.
//
// REQUIRES: r.mu.
func (r *Rollup) advance(t int64) {
	if t < r.next.Load() {
		return
	}
	first := r.start.Load() == none
	r.seq.Add(1)
	// No mark may be beyond what saturate brings the total back to.
	floor := r.floor.Load()
	total := floor + min(r.total.Load()-floor, maxRollupCount)
	for i := range r.spans {
		r.spans[i].advance(t, total, first)
	}
	r.settle()
	r.seq.Add(1)
}

// settle updates what is derived from the spans. next is last: an add that sees it
// finds the marks in place.
func (r *Rollup) settle() {
	start, next, total, most := int64(none), int64(maxTime)+int64(MaxSpan), r.total.Load(), uint64(0)
	for i := range r.spans {
		p := &r.spans[i]
		newest := p.newest.Load()
		start = max(start, newest*p.width)
		next = min(next, (newest+1)*p.width)
		most = max(most, total-p.mark(newest-p.slots))
	}
	r.floor.Store(total - most)
	r.start.Store(start)
	r.next.Store(next)
}

// addBefore counts n as of t, which is before the last of the current slots: in
// the total, and in the marks of all slots that began after t.
//
// REQUIRES: r.mu.
func (r *Rollup) addBefore(t int64, n uint64) {
	r.saturate()
	r.seq.Add(1)
	n = r.addExact(n)
	for i := range r.spans {
		r.spans[i].addBefore(t, n)
	}
	r.settle()
	r.seq.Add(1)
}

func (p *rollupSpan) advance(t int64, total uint64, first bool) {
	slot, newest := ring.FloorDiv(t, p.width), p.newest.Load()
	if !first && slot <= newest {
		return
	}
	steps := p.slots + 1
	if !first {
		steps = min(steps, slot-newest)
	}
	head := p.head.Load()
	for range steps {
		if head++; head == int64(len(p.marks)) {
			head = 0
		}
		p.marks[head].Store(total)
	}
	p.head.Store(head)
	p.newest.Store(slot)
}

func (p *rollupSpan) addBefore(t int64, n uint64) {
	after := min(p.newest.Load()-ring.FloorDiv(t, p.width), p.slots+1) // slots that began after t
	head := p.head.Load()
	for range after {
		p.marks[head].Add(n)
		if head--; head < 0 {
			head = int64(len(p.marks)) - 1
		}
	}
}

// mark returns the total of all events before slot, or before the oldest slot
// that is kept.
//
// REQUIRES: slot <= newest.
func (p *rollupSpan) mark(slot int64) uint64 {
	newest := p.newest.Load()
	at := p.head.Load() - min(newest-slot, p.slots)
	if at < 0 {
		at += int64(len(p.marks))
	}
	return p.marks[at].Load()
}
