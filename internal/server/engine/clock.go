package engine

import (
	"time"

	"github.com/lately-go/lately/api"
)

// The clocks by which an Engine judges. It begins undecided; what comes first
// decides, for good.
const (
	undecided = iota
	live      // its own
	eventTime // the times that events bring
)

var (
	errLive = &Error{api.BadArg, "AT is for a server that has judged no live event, and has counted, banned and brought back nothing: " +
		"it judges by one clock, and this one has begun by its own; start another without a data directory"}
	errEventTime = &Error{api.BadArg, "this server judges by the times that events bring, and nothing but events with AT changes what it holds: " +
		"it judges by one clock; start another for what happens now"}
)

// Now returns the time at which e judges at this moment: that of its own clock, or
// the newest that an event has brought.
func (e *Engine) Now() time.Time { return e.now() }

func (e *Engine) now() time.Time {
	if e.clock.Load() == eventTime {
		return time.UnixMilli(e.newest.Load())
	}
	return e.limiter.Load().Now()
}

// asLive sees to it that e judges by its own clock, before anything is counted or
// changed by it, or says why it does not. A limiter that was loaded before is the
// one in force after it.
func (e *Engine) asLive() error {
	if e.clock.Load() == live {
		return nil
	}
	return e.toLive()
}

func (e *Engine) toLive() error {
	if e.clock.Load() == eventTime {
		return errEventTime
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.clock.Load() == eventTime {
		return errEventTime
	}
	e.clock.Store(live)
	return nil
}

// toEventTime sees to it that e judges by event time, and that it is ms at least.
func (e *Engine) toEventTime(ms int64) error {
	if e.clock.Load() != eventTime {
		if err := e.leaveLive(ms); err != nil {
			return err
		}
	}
	for was := e.newest.Load(); was < ms && !e.newest.CompareAndSwap(was, ms); {
		was = e.newest.Load()
	}
	return nil
}

// leaveLive makes an engine that holds nothing judge by event time.
func (e *Engine) leaveLive(ms int64) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch e.clock.Load() {
	case eventTime:
		return nil
	case live:
		return errLive
	}
	e.newest.Store(ms)
	e.clock.Store(eventTime)
	return nil
}
