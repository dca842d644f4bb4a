package window

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync"
	"time"
)

// RecentConfig configures a [Recent]. Only Span is required.
type RecentConfig struct {
	// Span is the length of the window: at time t, the events in (t-Span, t] are
	// kept. From 1 ms to MaxSpan, in whole milliseconds.
	Span time.Duration

	// Max is the largest number of events that are kept, from 1 to 2^30; 0
	// means 1024.
	Max int

	// RefuseNew makes a full Recent refuse new events. By default it drops the
	// oldest event.
	RefuseNew bool

	// Ahead bounds how far an event may be ahead of the newest one, as
	// Window.Ahead does, to the nanosecond; 0 means no bound.
	Ahead time.Duration
}

// An Event is one thing that happened, and when.
type Event[T any] struct {
	Time  time.Time // in UTC, without a monotonic reading
	Value T
}

// A Recent keeps the events of the last Span, not only their number: the trades of
// the last five minutes, the last errors.
//
// It is exact to the nanosecond: the window is (t-Span, t], without slots. It is
// bounded: beyond [RecentConfig].Max events it drops the oldest event or refuses the
// new one, as configured, and counts how often; see [Recent.Stats]. Events are kept
// in the order of their times, and events of equal time in the order of their
// arrival. A late event is inserted at its place; an event that is older than the
// window of the newest event is refused.
//
// An add costs a mutex, and a late one some nanoseconds for each newer event. It
// also removes the events that have left the window, so that what T points to can be
// collected. Without adds they stay until [Recent.Expire] is called. Memory is the
// size of an Event less 16 bytes, for the largest number of events held so far,
// rounded up to a power of two. Only that growth and the reads that return events
// allocate.
//
// All methods are safe for concurrent use. A read is a snapshot of one moment. The
// zero Recent is not usable: it panics; call [NewRecent]. A Recent must not be
// copied.
type Recent[T any] struct {
	span      int64
	ahead     time.Duration
	max       int
	refuseNew bool
	clock     liveClock

	mu     sync.Mutex // guards all that follows
	guard  aheadGuard
	ring   []recentEvent[T] // the events, oldest first, from head on
	head   int
	n      int
	newest int64 // the time of the newest event ever kept, or none

	stats RecentStats
}

type recentEvent[T any] struct {
	t     int64
	value T
}

const (
	defaultRecentMax = 1024
	maxRecent        = 1 << 30
)

// NewRecent returns an empty Recent. The error names the bad field of config,
// its value and what it must be.
func NewRecent[T any](config RecentConfig) (*Recent[T], error) {
	if _, err := (Window{Span: config.Span, Slot: config.Span, Ahead: config.Ahead}).checked(); err != nil {
		return nil, fmt.Errorf("%w (in RecentConfig)", err)
	}
	config.Max = cmp.Or(config.Max, defaultRecentMax)
	if config.Max < 0 || config.Max > maxRecent {
		return nil, fmt.Errorf("window: recent max %d: must be from 1 to %d events, or 0 for %d", config.Max, maxRecent, defaultRecentMax)
	}
	r := &Recent[T]{span: int64(config.Span), ahead: config.Ahead, max: config.Max, refuseNew: config.RefuseNew, clock: newLiveClock(), newest: none}
	r.guard.init()
	return r, nil
}

// Add keeps value as an event that happens now, and reports whether it did:
// false if the Recent is full and refuses new events. If AddAt has put
// the window ahead of the clock by Span or more, now is the time of the newest
// event.
func (r *Recent[T]) Add(value T) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addLive(r.clock.now(), value) // read with the mutex held, so that times are in the order of adds
}

func (r *Recent[T]) addLive(now int64, value T) bool {
	if r.isLate(now) {
		now = r.newest
	}
	return r.keep(now, value)
}

// AddAt keeps value as an event that happened at t, in any order of times, and
// reports whether it did. If not, it was refused: as late, because t had left
// the window as of the newest event; as future, see [RecentConfig]; or because
// r is full. [Recent.Stats] has the numbers of each.
func (r *Recent[T]) AddAt(t time.Time, value T) bool {
	ns := r.clock.nanos(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.isLate(ns):
		r.stats.Late++
		return false
	case r.newest != none && r.guard.refuses(ns, r.newest, r.ahead, time.Duration(r.span)):
		return false
	}
	return r.keep(ns, value)
}

func (r *Recent[T]) isLate(t int64) bool { return r.newest != none && t <= r.newest-r.span }

// keep inserts the event in the order of times. Events that have left the window by
// its time are removed first, and then the oldest event if r is still full. If no event
// had left, an event that is refused has changed nothing.
func (r *Recent[T]) keep(t int64, value T) bool {
	if r.newest == none || t > r.newest {
		r.expire(t)
	}
	if r.n == r.max {
		switch {
		case r.refuseNew:
			r.stats.Refused++
			return false
		case t < r.at(0).t: // itself the oldest
			r.stats.Dropped++
			return false
		}
		r.stats.Dropped++
		r.pop()
	}
	if r.n == len(r.ring) {
		r.grow()
	}
	i := r.n
	for ; i > 0 && r.at(i-1).t > t; i-- {
		*r.at(i) = *r.at(i - 1)
	}
	*r.at(i) = recentEvent[T]{t, value}
	r.n++
	r.newest = max(r.newest, t)
	return true
}

// at returns the i-th place, counted from the oldest event.
func (r *Recent[T]) at(i int) *recentEvent[T] {
	if i += r.head; i >= len(r.ring) {
		i -= len(r.ring)
	}
	return &r.ring[i]
}

// pop removes the oldest event, and what it points to.
func (r *Recent[T]) pop() {
	r.ring[r.head] = recentEvent[T]{}
	if r.head++; r.head == len(r.ring) {
		r.head = 0
	}
	r.n--
}

func (r *Recent[T]) grow() {
	ring := make([]recentEvent[T], min(max(16, 2*len(r.ring)), r.max))
	n := copy(ring, r.ring[r.head:])
	copy(ring[n:], r.ring[:r.head])
	r.ring, r.head = ring, 0
}

// expire removes the events that have left the window at t.
func (r *Recent[T]) expire(t int64) (expired int) {
	for r.n > 0 && r.at(0).t <= t-r.span {
		r.pop()
		expired++
	}
	return expired
}

// Expire removes the events that have left the window by now and returns how many.
// Adds do the same; call it to free what events point to when there are no adds.
func (r *Recent[T]) Expire() int { return r.expireAt(live(r.clock.now())) }

// ExpireAt is Expire for the window that ends at t.
func (r *Recent[T]) ExpireAt(t time.Time) int { return r.expireAt(r.clock.at(t)) }

func (r *Recent[T]) expireAt(m moment) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expire(r.end(m))
}

// Len returns the number of events of the window that ends now.
func (r *Recent[T]) Len() int { return r.length(live(r.clock.now())) }

// LenAt returns the number of events of the window that ends at t. For times
// before the newest event it counts the part of the window that is still kept.
func (r *Recent[T]) LenAt(t time.Time) int { return r.length(r.clock.at(t)) }

func (r *Recent[T]) length(m moment) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, end := r.window(r.end(m))
	return end - first
}

// Append appends the events of the window that ends now to dst, oldest first,
// and returns it. If dst has enough capacity, it does not allocate.
func (r *Recent[T]) Append(dst []Event[T]) []Event[T] { return r.append(live(r.clock.now()), dst) }

// AppendAt is Append for the window that ends at t; see LenAt.
func (r *Recent[T]) AppendAt(t time.Time, dst []Event[T]) []Event[T] {
	return r.append(r.clock.at(t), dst)
}

// end returns the time that a read at m is about: for a live one, now or the time of
// the newest event if that is later.
func (r *Recent[T]) end(m moment) int64 {
	if m.live {
		return max(m.t, r.newest)
	}
	return m.t
}

// window returns the places of the events in (t-span, t]: first to end-1.
func (r *Recent[T]) window(t int64) (first, end int) {
	return r.after(t - r.span), r.after(t)
}

// after returns the place of the first event later than t, or n.
func (r *Recent[T]) after(t int64) int {
	if t >= r.newest { // as in every read of the window that ends now
		return r.n
	}
	return sort.Search(r.n, func(i int) bool { return r.at(i).t > t })
}

func (r *Recent[T]) append(m moment, dst []Event[T]) []Event[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, end := r.window(r.end(m))
	dst = slices.Grow(dst, end-first)
	for i := first; i < end; i++ {
		e := r.at(i)
		dst = append(dst, Event[T]{time.Unix(0, e.t).UTC(), e.value})
	}
	return dst
}

// RecentStats are the numbers of events that a [Recent] dropped or refused since
// it was made.
type RecentStats struct {
	Dropped uint64 // dropped early because there were more than Max
	Refused uint64 // refused because there were Max; see RecentConfig.RefuseNew
	Late    uint64 // refused because they are older than the window
	Future  uint64 // refused because they are too far ahead; see RecentConfig.Ahead
}

// Stats returns the numbers of events that r dropped or refused since it was
// made.
func (r *Recent[T]) Stats() RecentStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	stats.Future = r.guard.future.Load()
	return stats
}
