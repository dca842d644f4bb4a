package engine

import (
	"sync/atomic"

	"github.com/lately-go/lately/internal/server/hotlist"
)

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
	hub   *hub
	group int    // of subscriptions that are woken together
	next  uint64 // sequence number of the event that Next returns next
	done  chan struct{}
	slow  atomic.Bool
}

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
		return hotlist.Closed
	}
	return wake
}

// Done returns a channel that is closed when the subscription has ended.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Slow reports whether the subscription ended because its reader was too slow.
func (s *Subscription) Slow() bool { return s.slow.Load() }

// Close ends the subscription.
func (s *Subscription) Close() { s.hub.remove(s) }
