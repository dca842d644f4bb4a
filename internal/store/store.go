// Package store declares what a limiter asks of the store that keeps its limit
// counters and bans: decisions in batches, corrections, and changes of the rules.
//
// The types have two parameters, since this package must not import ratelimit: R is
// a rule set, *ratelimit.Set, from which a store takes all that it has to know of a
// rule; B is a ban, ratelimit.BanRecord. The store of one process is in ratelimit,
// which calls it directly, one request at a time; storetest holds what every store
// must pass.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/lately-go/lately/internal/ban"
)

// A Store keeps limit counters and bans. It is made for one rule set and moves to
// another by Update.
//
// A store judges each request in one step: no other request sees the counts between
// the judging and the charging, and nothing is charged when an enforced rule refuses.
// It returns at the deadline of the context, at the latest. Its methods are safe for
// concurrent use.
type Store[R, B any] interface {
	Counters[R]

	// Decide judges the requests of a batch, each by itself and in any order, and
	// fills in Err, the outcomes and Now of each. A store that is reached by a network
	// sends a batch together.
	Decide(ctx context.Context, batch []*Request[R])

	// DecideKnown decides r, as Decide does, if that takes no round trip, and reports whether
	// it did. It does not allocate.
	DecideKnown(r *Request[R]) bool

	// Ban bans the key in b, with any counts. A ban of that key that ends later
	// stays as it is.
	Ban(ctx context.Context, b B) error

	// Unban ends the ban of a key under the named rule, and deletes earlier ones. It
	// reports whether a ban held.
	Unban(ctx context.Context, rule string, key []byte) (bool, error)

	// Bans returns the bans that this node knows of, without a round trip: at once those
	// that have begun or ended through it, those of other nodes a moment later.
	Bans() BanCopy[R]

	// Nodes returns how many nodes share the store, 0 if it has not learned it yet.
	Nodes() int
}

// A BanCopy is the bans that a node knows of. Its cost does not depend on their number.
type BanCopy[R any] struct {
	Table *ban.Table // nil if there is no copy yet
	Now   int64      // the present by the clock of the store, in nanoseconds since 1970

	// Numbers is the number in Table of each rule of Set.
	Set     R
	Numbers []uint32

	// Find returns how Table stores a key, and its hash.
	Find func(key []byte) (stored []byte, hash uint64)

	// Err is why Table may lack bans of other nodes that began before this one. It is nil
	// once they were read.
	Err error
}

// Counters is the part of a Store that the memory of a process implements as well.
type Counters[R any] interface {
	// Settle corrects what an earlier request has charged. What has left the
	// windows since stays as it is: a settlement never frees more than the event had
	// taken. If the key was reset since, nothing is freed or charged. If it returns ErrStale, Charged is false in the
	// outcomes of those subjects that were settled all the same.
	Settle(ctx context.Context, s *Settlement[R]) error

	// Adjust changes what a key has used under a rule, without a request.
	Adjust(ctx context.Context, a *Adjustment[R]) error

	// Update moves the store to another rule set. Counts are carried as
	// ratelimit.Limiter.Update says. It calls published as soon as the store answers
	// requests for set; it answers those for the set before with ErrStale from then
	// on, or a little earlier. An error means that nothing has changed.
	Update(ctx context.Context, set R, published func()) error
}

// ErrStale is the error of a request for a rule set that the store has moved away
// from.
var ErrStale = errors.New("store: moved to another rule set")

// A Request is one event as a store sees it.
type Request[R any] struct {
	// Set is the rules that the subjects' numbers are of.
	Set R
	// Now is the time of the event, in nanoseconds since 1970. The store sets it to
	// the time at which the event was judged, which is later if a record has been
	// judged at a later one.
	Now int64
	// Cost is how much each limit is charged; a ban counts events. 0 only moves the
	// windows on: no limit refuses it and no ban counts it.
	Cost uint64
	// Peek asks what the decision would be, and changes nothing.
	Peek bool
	// Looks is set if a Subject has Look.
	Looks bool
	// Answer is set if the event is the answer to a request that was allowed before. Limits are
	// charged beyond N, bans count it and begin, and nothing refuses it. A key that is banned is
	// not counted. Each rule judges as if it were alone.
	Answer bool
	// Refused is set if a rule that is not among Subjects has refused the event already: bans count it, and only limits
	// that count refused events are charged.
	Refused bool
	// Settled is set if another process may settle the request. The store then makes Marks for it.
	Settled bool
	// Subjects are the rules that match, in the order of the set.
	Subjects []Subject[R]

	// Err is why the request was not judged: nothing was counted, and no outcome
	// holds.
	Err error

	// Scratch is memory of the store's own, which the caller keeps for the next
	// request.
	Scratch any
}

// A Subject is one rule of a request and the key by which it counts the event.
type Subject[R any] struct {
	Key     []byte
	N       uint64     // of the limit with AtMost, as the event brings it, at most that; 0 if it is the rule's
	Value   []byte     // of the field whose distinct values the ban counts; empty if there is none
	Outcome Outcome[R] // Rule is set by the caller, the rest by the store
	// Look is set if the rule counts the answer to the event, which is not known yet. Nothing is charged, and a ban
	// counts refusals only. A full limit or a ban in force refuses the event.
	Look bool

	// Mark is the store's own, for a Settlement.
	Mark uint64
}

// An Outcome is a ratelimit.Outcome, field by field. A store leaves Set and Missing as they are.
type Outcome[R any] struct {
	Rule             int
	Set              R
	Refused          bool
	Banned, Started  bool
	Skipped          bool
	Charged          bool
	Missing          string
	Limit, Remaining uint64
	LimitIndex       int
	RetryAfter       time.Duration
	ResetAfter       time.Duration
	Delay            time.Duration
	BannedUntil      time.Time
}

// A Settlement corrects the charge of a Request: it was Charged, and is Actual.
// Subjects are those of the request, as the store left them.
type Settlement[R any] struct {
	Set             R
	At, Now         int64 // Request.Now as the store left it, and now
	Charged, Actual uint64
	Subjects        []Subject[R]

	// ID, if it is not empty, identifies the settlement in a store that processes share: the store remembers it until
	// Ends. If it was done before, the store changes nothing and sets Again. The memory of a process ignores the ID.
	ID    string
	Ends  time.Time
	Again bool
}

// A Change is what an Adjustment does.
type Change uint8

// The changes.
const (
	// Charge counts N in each limit, also beyond the limit. Counts saturate.
	Charge Change = iota

	// Refund gives back up to N without knowing when it was charged, the oldest first,
	// and sets Taken. No later window has more left than if any other N of them had
	// never come.
	Refund

	// Reset deletes what the limits and the ban have counted. A ban that holds goes on.
	Reset
)

// An Adjustment changes what a key has used under all limits of one rule, by its number
// in Set.
type Adjustment[R any] struct {
	Change
	Set  R
	Rule int
	Key  []byte
	N    uint64

	// Now is the time, in nanoseconds since 1970. The store sets it to the time at
	// which it was done, which is later if the record has been judged at a later one.
	Now int64

	// Taken is how much was given back: the least of the limits. The store sets it;
	// it is 0 for a rule without a limit.
	Taken uint64
}
