package lately

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"
)

// MaxRecent is the largest number of events that a [Recent] can be told to
// keep.
const MaxRecent = 1 << 30

// Overflow says what a [Recent] that is full does with the next event.
type Overflow uint8

const (
	DropOldest Overflow = iota // forgets the oldest event, to keep the new one
	RefuseAdd                  // does not take the new event
)

// String returns the name of the constant.
func (o Overflow) String() string {
	switch o {
	case DropOldest:
		return "DropOldest"
	case RefuseAdd:
		return "RefuseAdd"
	}
	return fmt.Sprintf("Overflow(%d)", uint8(o))
}

// RecentConfig says what a [Recent] keeps. Only Span has no default.
type RecentConfig struct {
	// Span is how long an event is kept: at time t, those of (t-Span, t] are.
	// From 1 ms to MaxSpan, in whole milliseconds.
	Span time.Duration

	// Max is the most events that are kept, from 1 to MaxRecent; 0 means 1024.
	Max int

	// Overflow says what happens when there is one more. By default it is
	// DropOldest.
	Overflow Overflow

	// Ahead bounds how far an event may be ahead of the newest one, as
	// Window.Ahead does, to the nanosecond; 0 means that there is no bound.
	Ahead time.Duration
}

// An Event is one thing that happened, and when.
type Event[T any] struct {
	Time  time.Time // in UTC, without a monotonic reading
	Value T
}

// A Recent keeps the events of the last Span themselves, to look at and not
// only to count: the trades of the last five minutes, the last errors.
//
// It is exact to the nanosecond: the window is (t-Span, t], with no slots. It
// is bounded: beyond [RecentConfig].Max events it forgets the oldest or refuses
// the new one, as it was told to, and counts how often; see [Recent.Dropped]
// and [Recent.Refused]. Events are kept in the order of their times, those of
// equal time in the order in which they came. One that comes late is put
// where it belongs; one older than the window as of the newest event is refused.
//
// Verbs come in two forms, now and at a time given, on the clock that [Counter]
// describes. An add costs a mutex, and a late one some nanoseconds for each
// event that is newer. It also lets go of the events that have left the window,
// so what T points to can be collected; nothing runs in the background, so
// without adds they stay until [Recent.Expire] is called. Memory is that of an
// Event less 16 bytes, for as many events as there have ever been at once, rounded
// up to a power of two, Max at most. Nothing allocates but that growth, and the
// reads that return a copy of the events.
//
// All methods may be called at any time by any number of goroutines. A read is
// a snapshot of one moment. The zero Recent is not usable: it panics; call
// [NewRecent]. A Recent must not be copied.
type Recent[T any] struct {
	span     int64
	max      int
	overflow Overflow
	clock    liveClock

	mu     sync.Mutex // guards all that follows
	guard  aheadGuard
	ring   []recentEvent[T] // the events, oldest first, from head on
	head   int
	n      int
	newest int64 // the time of the newest event ever kept, or none

	dropped, refused, late, future uint64
}

type recentEvent[T any] struct {
	t     int64
	value T
}

const defaultRecentMax = 1024

// NewRecent returns an empty Recent. The error names the field of config that is
// wrong, its value and what is allowed.
func NewRecent[T any](config RecentConfig) (*Recent[T], error) {
	if _, err := (Window{Span: config.Span, Slot: config.Span, Ahead: config.Ahead}).checked(); err != nil {
		return nil, fmt.Errorf("%w (in RecentConfig)", err)
	}
	if config.Max == 0 {
		config.Max = defaultRecentMax
	}
	switch {
	case config.Max < 0 || config.Max > MaxRecent:
		return nil, fmt.Errorf("lately: recent max %d: must be from 1 to %d events, or 0 for %d", config.Max, MaxRecent, defaultRecentMax)
	case config.Overflow > RefuseAdd:
		return nil, fmt.Errorf("lately: recent overflow %d: must be DropOldest or RefuseAdd", config.Overflow)
	}
	return &Recent[T]{
		span: int64(config.Span), max: config.Max, overflow: config.Overflow,
		clock:  newLiveClock(),
		guard:  aheadGuard{ahead: int64(config.Ahead), span: int64(config.Span)},
		newest: none,
	}, nil
}

// Add keeps value as an event that happens now, and reports whether it did:
// false if there is no room and the Recent refuses new events. If AddAt has put
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
// there is no room, see [Recent.Refused] and [Recent.Dropped].
func (r *Recent[T]) AddAt(t time.Time, value T) bool {
	ns := r.clock.nanos(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.addAt(ns, value)
}

func (r *Recent[T]) addAt(t int64, value T) bool {
	switch {
	case r.isLate(t):
		r.late++
		return false
	case r.newest != none && r.guard.refuses(t, r.newest):
		r.future++
		return false
	}
	return r.keep(t, value)
}

func (r *Recent[T]) isLate(t int64) bool { return r.newest != none && t <= r.newest-r.span }

// keep puts the event where it belongs, making room for it if need be. What has
// left the window by its time is let go first: if that leaves the Recent full,
// none had, so an event that is refused changes nothing.
func (r *Recent[T]) keep(t int64, value T) bool {
	if r.newest == none || t > r.newest {
		r.expire(t)
	}
	if r.n == r.max {
		switch {
		case r.overflow == RefuseAdd:
			r.refused++
			return false
		case t < r.at(0).t: // itself the oldest
			r.dropped++
			return false
		}
		r.dropped++
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

// pop lets go of the oldest event, and of what it points to.
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

// expire lets go of the events that have left the window at t.
func (r *Recent[T]) expire(t int64) (expired int) {
	for r.n > 0 && r.at(0).t <= t-r.span {
		r.pop()
		expired++
	}
	return expired
}

// Expire lets go of the events that have left the window by now and returns how
// many. Adds do the same; it is for giving memory back when none come.
func (r *Recent[T]) Expire() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expire(max(r.clock.now(), r.newest))
}

// ExpireAt lets go of the events that have left the window at t and returns how
// many.
func (r *Recent[T]) ExpireAt(t time.Time) int {
	ns := r.clock.nanos(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expire(ns)
}

// Len returns the number of events of the window that ends now.
func (r *Recent[T]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, end := r.window(max(r.clock.now(), r.newest))
	return end - first
}

// LenAt returns the number of events of the window that ends at t. For times
// before the newest event it is what is left of that window.
func (r *Recent[T]) LenAt(t time.Time) int {
	ns := r.clock.nanos(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	first, end := r.window(ns)
	return end - first
}

// Append appends the events of the window that ends now to dst, oldest first,
// and returns it. With room in dst it does not allocate.
func (r *Recent[T]) Append(dst []Event[T]) []Event[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.append(max(r.clock.now(), r.newest), dst)
}

// AppendAt appends the events of the window that ends at t to dst, oldest first,
// and returns it; see Append and LenAt.
func (r *Recent[T]) AppendAt(t time.Time, dst []Event[T]) []Event[T] {
	ns := r.clock.nanos(t)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.append(ns, dst)
}

// All returns the events of the window that ends when the iteration begins,
// oldest first, each with its time. It is a snapshot: the loop may add, and
// sees nothing of it. The copy that this takes is allocated.
func (r *Recent[T]) All() iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) { each(r.Append(nil), yield) }
}

// AllAt returns the events of the window that ends at t, as All does; see
// LenAt.
func (r *Recent[T]) AllAt(t time.Time) iter.Seq2[time.Time, T] {
	return func(yield func(time.Time, T) bool) { each(r.AppendAt(t, nil), yield) }
}

func each[T any](events []Event[T], yield func(time.Time, T) bool) {
	for _, e := range events {
		if !yield(e.Time, e.Value) {
			return
		}
	}
}

// window returns the places of the events in (t-span, t]: first to end-1.
func (r *Recent[T]) window(t int64) (first, end int) {
	return r.after(t - r.span), r.after(t)
}

// after returns the place of the first event later than t, or n.
func (r *Recent[T]) after(t int64) int {
	lo, hi := 0, r.n
	for lo < hi {
		if mid := int(uint(lo+hi) / 2); r.at(mid).t > t {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func (r *Recent[T]) append(t int64, dst []Event[T]) []Event[T] {
	first, end := r.window(t)
	dst = slices.Grow(dst, end-first)
	for i := first; i < end; i++ {
		e := r.at(i)
		dst = append(dst, Event[T]{time.Unix(0, e.t).UTC(), e.value})
	}
	return dst
}

// Dropped returns how many events were forgotten before their time because
// there were more than Max, since r was made; among them late ones that would
// have been the oldest.
func (r *Recent[T]) Dropped() uint64 { return r.figure(&r.dropped) }

// Refused returns how many events were not taken because there were Max
// already, since r was made.
func (r *Recent[T]) Refused() uint64 { return r.figure(&r.refused) }

// Late returns how many events were refused as late since r was made.
func (r *Recent[T]) Late() uint64 { return r.figure(&r.late) }

// Future returns how many events were refused as future since r was made.
func (r *Recent[T]) Future() uint64 { return r.figure(&r.future) }

func (r *Recent[T]) figure(n *uint64) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return *n
}
