package engine

import (
	"time"

	"github.com/lately-go/lately/api"
)

var (
	errLive      = &Error{api.BadArg, "AT: this server judges by its own clock: to judge events at their own times, start one with --event-time"}
	errEventTime = &Error{api.BadArg, "this server judges by the times of events (--event-time): only events with AT change its state"}
)

// Now returns the time by which e judges: that of its clock, or in event time that of
// the newest event.
func (e *Engine) Now() time.Time {
	if e.config.EventTime {
		return time.UnixMilli(e.newest.Load())
	}
	return e.limiter.Now()
}

// requireLive returns an error if e judges by event time. Everything that changes e, except
// events with their time, calls it first.
func (e *Engine) requireLive() error {
	if e.config.EventTime {
		return errEventTime
	}
	return nil
}

// advance makes the time of e at least ms, or returns an error if e judges by its own clock.
func (e *Engine) advance(ms int64) error {
	if !e.config.EventTime {
		return errLive
	}
	for was := e.newest.Load(); was < ms && !e.newest.CompareAndSwap(was, ms); {
		was = e.newest.Load()
	}
	return nil
}
