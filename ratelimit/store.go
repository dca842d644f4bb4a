package ratelimit

import "errors"

// A Store is where windows and bans live.
//
// A store is made for one Set. It judges each request in one step: no other
// request sees the counts between the judging and the charging, and nothing is
// charged when an enforced rule refuses.
type Store interface {
	// Decide judges one event under the rules in r.Subjects and fills in
	// the Outcome of each. An error means that nothing was counted and no
	// outcome holds.
	Decide(r *Request) error
}

// A Request is one event as a store sees it.
type Request struct {
	// Now is the time of the event, in nanoseconds since 1970.
	Now int64
	// Cost is how much each limit is charged; a ban counts events. 0 only
	// looks: no limit refuses it and no ban counts it.
	Cost uint64
	// Subjects is the rules that match, in the order of the Set.
	Subjects []Subject
}

// A Subject is one rule of a request and the key it counts the event by.
type Subject struct {
	Key     []byte
	Outcome Outcome // Rule is set by the caller, the rest by the store
}

// ErrKeyTooLong is the error of a key that a store does not take; see the
// store's own documentation for how long is too long.
var ErrKeyTooLong = errors.New("ratelimit: key too long")
