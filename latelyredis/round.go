package latelyredis

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// A round is the calls of goroutines that decide at the same time. The first of them sends all.
type round struct {
	deadline time.Time
	calls    []*call
	over     chan struct{}
}

// rounds has the round that calls may still join.
type rounds struct {
	mu   sync.Mutex
	open *round
}

const (
	// roundCalls is how many calls are in a round, apart from those that are added together.
	roundCalls = 64

	// roundSpread is by how much the deadlines of calls in a round may differ: its calls fail at the
	// first of them.
	roundSpread = time.Millisecond
)

// join adds calls to a round, and reports whether they are the first.
func (o *rounds) join(calls []*call, deadline time.Time) (r *round, first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r = o.open; r != nil && len(r.calls) < roundCalls {
		if later := deadline.Sub(r.deadline); later >= 0 && later <= roundSpread {
			r.calls = append(r.calls, calls...)
			return r, false
		}
	}
	o.open = &round{deadline: deadline, calls: calls, over: make(chan struct{})}
	return o.open, true
}

// close ends the time in which calls may join r.
func (o *rounds) close(r *round) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.open == r {
		o.open = nil
	}
}

// exchangeTogether is exchange, together with the calls of other goroutines at the same time. It ends
// at the deadline of ctx. A ctx that is canceled before does not end it, since others may wait for the
// same answers. In a cluster, where a node that is slow would delay calls to others, and without a
// deadline, the calls are sent alone.
func (s *Store) exchangeTogether(ctx context.Context, l *layout, calls []*call) {
	if calls = s.unlessAway(l, calls); len(calls) == 0 {
		return
	}
	deadline, ok := ctx.Deadline()
	if !ok || s.slotted() {
		s.send(ctx, l, calls)
		return
	}
	defer s.breakers.note(calls) // each for itself: a round that is lost is as many lost calls
	r, first := l.rounds.join(calls, deadline)
	if !first {
		<-r.over
		return
	}
	defer close(r.over)
	runtime.Gosched() // those that are about to ask join
	l.rounds.close(r)
	if len(r.calls) > len(calls) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(context.WithoutCancel(ctx), deadline)
		defer cancel()
	}
	s.transmit(ctx, l, r.calls)
}
