package ratelimit

import (
	"errors"
	"iter"
)

// A Store is where windows and bans live. [Memory] is one; storetest holds what
// every Store has to pass.
//
// A store is made for one Set, and moves to another by Update. It judges each
// request in one step: no other request sees the counts between the judging and
// the charging, and nothing is charged when an enforced rule refuses. All
// methods may be called by any number of goroutines.
type Store interface {
	// Decide judges one event under the rules in r.Subjects and fills in
	// the Outcome of each, and r.Now. An error means that nothing was counted
	// and no outcome holds.
	Decide(r *Request) error

	// Settle corrects what an earlier request has charged. What has left the
	// windows meanwhile, or was reset, stays as it is: a settlement never
	// makes room that the event had not taken. If it is ErrStale, Charged is false
	// in the outcomes of those subjects that were settled all the same.
	Settle(s *Settlement) error

	// Refund gives back what nobody knows when it was charged, the oldest first,
	// and sets r.Taken. It makes no room that the oldest had not taken.
	Refund(r *Refund) error

	// Reset forgets what the limits and bans of these subjects have counted.
	// Bans that hold go on.
	Reset(set *Set, subjects []Subject) error

	// Update moves the store to another Set. Counts are carried as
	// [Limiter.Update] says. It calls published as soon as the store answers
	// requests for set; it answers those for the Set before with ErrStale from
	// then on, or a little earlier. An error means that nothing has changed.
	Update(set *Set, published func()) error

	// Ban bans the key in b, whatever was counted. A ban of that key that ends
	// later stays as it is.
	Ban(b BanRecord) error

	// Unban ends the ban of a key under the named rule, and deletes earlier
	// ones. It reports whether a ban held.
	Unban(rule string, key []byte) (bool, error)

	// Bans yields the bans that hold, in no particular order. An error ends it.
	Bans() iter.Seq2[BanRecord, error]
}

// A Request is one event as a store sees it.
type Request struct {
	// Set is the rules that the Subjects' numbers are of.
	Set *Set
	// Now is the time of the event, in nanoseconds since 1970. The store sets
	// it to the time that the event was judged at, which is later if a record
	// has been judged at a later one.
	Now int64
	// Cost is how much each limit is charged; a ban counts events. 0 only
	// moves the windows on: no limit refuses it and no ban counts it.
	Cost uint64
	// Look asks what the decision would be, and changes nothing.
	Look bool
	// Subjects is the rules that match, in the order of the Set.
	Subjects []Subject

	spare *spare // Memory's own
}

// A Subject is one rule of a request and the key it counts the event by.
type Subject struct {
	Key     []byte
	Outcome Outcome // Rule is set by the caller, the rest by the store

	// Mark is the store's own, for a Settlement.
	Mark uint64
}

// A Settlement corrects the charge of a Request: it was Charged, and is Actual.
// Subjects are those of the request, as the store left them.
type Settlement struct {
	Set             *Set
	At, Now         int64 // Request.Now as the store left it, and now
	Charged, Actual uint64
	Subjects        []Subject
}

// A Refund gives back to a key, under the limits of one rule, what they count of
// it, without saying what was charged when. Each limit gives back up to N of what is
// in its window, the oldest first: then no later window has more room than if any
// other N of them had never come.
type Refund struct {
	Set  *Set
	Rule int // its number in Set
	Key  []byte
	N    uint64

	// Now is the time, in nanoseconds since 1970. The store sets it to the
	// time that it was done at, which is later if the record has been judged
	// at a later one.
	Now int64

	// Taken is how much was given back: the least of the limits. The store
	// sets it; it is 0 for a rule without a limit.
	Taken uint64
}

// ErrKeyTooLong is the error of a key that a store does not take; see the
// store's own documentation for how long is too long.
var ErrKeyTooLong = errors.New("ratelimit: key too long")

// ErrStale is the answer of a store to a request for a Set that it has moved
// away from.
var ErrStale = errors.New("ratelimit: the store has moved to another set of rules")
