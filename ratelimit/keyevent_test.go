package ratelimit_test

import (
	"time"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// keyEvent returns an event that has key in every field that a rule of l counts by.
func keyEvent(l *ratelimit.Limiter, key string) *match.Event {
	e := new(match.Event)
	set := l.Set()
	for i := range set.Rules() {
		for _, field := range keyvalue.Fields(set.Rules()[i].Key) {
			e.SetNamedString(field, key)
		}
	}
	return e
}

func takeKey(l *ratelimit.Limiter, key string) ratelimit.Decision { return l.Take(keyEvent(l, key)) }

func takeKeyN(l *ratelimit.Limiter, t time.Time, key string, n uint64) ratelimit.Decision {
	return l.TakeAt(t, keyEvent(l, key), n)
}

func peekKey(l *ratelimit.Limiter, key string) ratelimit.Decision { return l.Peek(keyEvent(l, key)) }

func peekKeyN(l *ratelimit.Limiter, t time.Time, key string, n uint64) ratelimit.Decision {
	return l.PeekN(t, keyEvent(l, key), n)
}

// reserveN returns a new reservation of e.
func reserveN(l *ratelimit.Limiter, t time.Time, e *match.Event, n uint64) *ratelimit.Reservation {
	r := new(ratelimit.Reservation)
	l.Internal().ReserveAt(t, e, n, r)
	return r
}

// mustRule returns what judges under the rule of that name.
func mustRule(l *ratelimit.Limiter, name string) *ratelimit.RuleLimiter {
	r, err := l.Rule(name)
	if err != nil {
		panic(err)
	}
	return r
}

// resetKey resets key under all rules of l.
func resetKey(l *ratelimit.Limiter, key string) error {
	set := l.Set()
	for i := range set.Rules() {
		if err := mustRule(l, set.Rules()[i].Name).Reset(key); err != nil {
			return err
		}
	}
	return nil
}
