// Package events passes what happens in a server to any number of subscribers, none of which
// can delay a decision.
//
//	hub := events.New()
//	go hub.Run(stop)
//	hub.Publish(api.Event{Type: api.RulesChanged, Time: now})
package events

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
)

// A Hub passes events to subscribers through one ring, which all of them read.
//
// Publishing is one store into the ring. The first subscriber that reads an event encodes it.
// A goroutine wakes the subscribers that wait, less often if there are many. A subscription
// ends when its reader falls behind by more than the ring.
type Hub struct {
	n      atomic.Int64  // subscribers
	events atomic.Uint64 // published
	cut    atomic.Uint64 // slow subscribers

	ring    []atomic.Pointer[published]
	next    atomic.Uint64                             // sequence number of the next event
	wake    [wakeGroups]atomic.Pointer[chan struct{}] // closed to wake the waiting subscribers of a group
	waiting atomic.Bool                               // a subscriber may wait
	work    chan struct{}                             // wakes Run, which wakes subscribers
	joined  int                                       // subscriptions so far; under mu

	mu     sync.Mutex
	all    map[*Subscription]struct{}
	closed bool
}

// ringSize is how many events a subscriber may be behind.
const ringSize = 4096

// A published is an event in the ring.
type published struct {
	seq    uint64
	encode sync.Once
	event  Event
}

// An Event is what subscribers receive. JSON is its form in all protocols.
type Event struct {
	api.Event
	JSON []byte
}

// encode sets ev.JSON.
func (ev *Event) encode() {
	ev.Time = ev.Time.UTC()              // as the times of bans
	ev.JSON, _ = json.Marshal(&ev.Event) // texts, numbers and times of this era have no errors
}

// New returns a Hub. Run must be running for subscribers to be woken.
func New() *Hub {
	h := &Hub{ring: make([]atomic.Pointer[published], ringSize), work: make(chan struct{}, 1), all: make(map[*Subscription]struct{})}
	for i := range h.wake {
		h.wake[i].Store(new(make(chan struct{})))
	}
	return h
}

// Publish passes ev to the subscribers, without waiting. The memory that ev refers to must
// not change afterwards.
func (h *Hub) Publish(ev api.Event) {
	h.events.Add(1)
	if h.n.Load() == 0 {
		return
	}
	p := &published{event: Event{Event: ev}, seq: h.next.Add(1) - 1}
	at := &h.ring[p.seq%ringSize]
	for was := at.Load(); was == nil || was.seq < p.seq; was = at.Load() {
		if at.CompareAndSwap(was, p) {
			break
		}
	}
	if h.waiting.Load() && h.waiting.CompareAndSwap(true, false) {
		select {
		case h.work <- struct{}{}:
		default: // Run has not received the last one
		}
	}
}

// Run wakes subscribers when there are events, until stop is closed: group by group,
// with a pause for each subscriber, so that thousands do not delay decisions.
func (h *Hub) Run(stop <-chan struct{}) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-stop:
			return
		case <-h.work:
		}
		n := max(h.n.Load(), 1)
		each := min(wakePause, maxWakePause/time.Duration(n)) * time.Duration(n) / wakeGroups
		var owed time.Duration
		for i := range h.wake {
			close(*h.wake[i].Swap(new(make(chan struct{}))))
			if owed += each; owed < leastPause && i < wakeGroups-1 {
				continue
			}
			pause.Reset(owed)
			owed = 0
			select {
			case <-stop:
				return
			case <-pause.C:
			}
		}
	}
}

const (
	wakeGroups = 32

	// wakePause is the pause per woken subscriber, and maxWakePause the longest
	// pause. A pause is not made before it is leastPause.
	wakePause    = 30 * time.Microsecond
	maxWakePause = 100 * time.Millisecond
	leastPause   = time.Millisecond
)

// Subscribe begins a subscription to all events.
func (h *Hub) Subscribe() *Subscription {
	s := &Subscription{hub: h, done: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(s.done)
		return s
	}
	h.n.Add(1)
	s.group, h.joined = h.joined%wakeGroups, h.joined+1
	s.next = h.next.Load()
	h.all[s] = struct{}{}
	return s
}

// remove ends a subscription, and reports whether it had not ended.
func (h *Hub) remove(s *Subscription) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.all[s]; !ok {
		return false
	}
	delete(h.all, s)
	h.n.Add(-1)
	close(s.done)
	return true
}

// Close ends all subscriptions.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	all := slices.Collect(maps.Keys(h.all))
	h.mu.Unlock()
	for _, s := range all {
		h.remove(s)
	}
}

// A Subscription reads events, in order, from when it began:
//
//	for {
//		for ev, ok := sub.Next(); ok; ev, ok = sub.Next() {
//			// ev
//		}
//		select {
//		case <-sub.Wait():
//		case <-sub.Done():
//			return
//		}
//	}
//
// The subscription of a reader that falls behind by more than 4,096 events ends, and Slow
// reports true: it must read the state and subscribe again. One goroutine at a time may
// call Next and Wait.
type Subscription struct {
	hub   *Hub
	group int    // of subscriptions that are woken together
	next  uint64 // sequence number of the event that Next returns next
	done  chan struct{}
	slow  atomic.Bool
}

// CountDropped counts a subscriber that was disconnected because it does not read what it is sent. Those
// whose Slow reports true are counted.
func (h *Hub) CountDropped() { h.cut.Add(1) }

// Stats returns how many events were published, and how many subscribers were dropped because they
// were too slow.
func (h *Hub) Stats() (published, dropped uint64) { return h.events.Load(), h.cut.Load() }

// Next returns the next event, or false if there is none yet or the subscription has
// ended. The event is shared and must not be changed.
func (s *Subscription) Next() (*Event, bool) {
	select {
	case <-s.done:
		return nil, false
	default:
	}
	p := s.hub.ring[s.next%ringSize].Load()
	if p == nil || p.seq < s.next {
		return nil, false
	}
	if p.seq > s.next {
		if s.slow.Store(true); s.hub.remove(s) {
			s.hub.cut.Add(1)
		}
		return nil, false
	}
	s.next++
	p.encode.Do(p.event.encode)
	return &p.event, true
}

// Wait returns a channel that is closed when there may be a next event.
func (s *Subscription) Wait() <-chan struct{} {
	wake := *s.hub.wake[s.group].Load()
	s.hub.waiting.Store(true)
	if p := s.hub.ring[s.next%ringSize].Load(); p != nil && p.seq >= s.next {
		return closed
	}
	return wake
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// Done returns a channel that is closed when the subscription has ended.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Slow reports whether the subscription ended because its reader was too slow.
func (s *Subscription) Slow() bool { return s.slow.Load() }

// Close ends the subscription.
func (s *Subscription) Close() { s.hub.remove(s) }
