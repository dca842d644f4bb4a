package ratelimit

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/match"
)

// Internal returns the methods that only packages of this module call. They may change in any
// version.
func (l *Limiter) Internal() internal { return internal{l} }

// internal is what the server, the middlewares and replay need of a [Limiter], and programs do not.
type internal struct{ l *Limiter }

// TakeAll judges the queries now, each by itself as Take does, and appends the decisions to
// dst, in order. It is for queries that arrive together: a store behind a network receives
// up to 256 in one round trip, and [Config.StoreTimeout] applies to each 256. Events and
// keys must not change until it returns. With the memory store it does not allocate, and is
// no faster than a loop.
func (in internal) TakeAll(queries []batch.Query, dst []Decision) []Decision {
	l, now := in.l, in.l.now()
	if l.memory == nil {
		for part := range slices.Chunk(queries, maxBatch) {
			dst = l.takeBatch(now, part, dst)
		}
		return dst
	}
	first := len(dst)
	dst = slices.Grow(dst, len(queries))[:first+len(queries)]
	sc := l.scratch.Get().(*scratch)
	for i := range queries {
		d := &dst[first+i]
		*d = Decision{}
		l.decideWith(sc, d, &queries[i], now, true)
	}
	l.scratch.Put(sc)
	return dst
}

// SettleTicket is [Reservation.Settle] for a ticket, now. Charges under rules that were removed, or
// count other keys now, do not change. settled is true if this call settled the ticket: in a shared
// store, a second call with the same ID changes nothing. After an error of a shared store, it can
// be called again with the same ID.
func (in internal) SettleTicket(t *batch.Ticket, actual uint64) (settled bool, err error) {
	ctx, cancel := in.l.bounded()
	defer cancel()
	s := settlement{At: t.At, Now: in.l.now(), Charged: t.Cost, Actual: actual, ID: t.ID, Ends: t.Ends}
	err = in.l.whileStale(func(set *Set) error {
		if s.Set == nil {
			s.Subjects = subjectsOf(t, set)
		} else {
			s.Subjects = renumbered(s.Subjects, s.Set, set)
		}
		s.Set = set
		return in.l.counts.Settle(ctx, &s)
	})
	return !s.Again, err
}

// JudgeAt makes the decision about q at time t, and returns it with the outcome of each matching
// rule, appended to dst in the order of the rules.
func (in internal) JudgeAt(t time.Time, q *batch.Query, dst []Outcome) (d Decision, _ []Outcome) {
	sc := in.l.scratch.Get().(*scratch)
	in.l.decideWith(sc, &d, q, nanos(t), false)
	dst = sc.appendOutcomes(dst)
	in.l.scratch.Put(sc)
	return d, dst
}

// ReserveAt is [Limiter.Reserve] at time t. It fills in r, which must be zero or must have ended, and
// uses its memory again: then it does not allocate. It reports whether the event is under way until
// the reservation ends, because it has a place under an [InFlight] limit or in the queue of a
// [LeakyBucket]. Any other reservation may be left as it is.
func (in internal) ReserveAt(t time.Time, e *match.Event, n uint64, r *Reservation) (open bool) {
	in.l.reserve(&batch.Query{Event: e, Cost: n}, nanos(t), r)
	return r.open()
}

// Exempt makes l allow these clients as if they were on the allow list, until it is called again.
// It is for clients that become known at run time. A client whose key is an IPv6 network is not
// exempt.
func (in internal) Exempt(clients []netip.Prefix) {
	if len(clients) == 0 {
		in.l.exempt.Store(nil)
	} else {
		in.l.exempt.Store(new(address.NewSet(clients...)))
	}
}

// A keyHolder is a store that holds the key of hashed fields for the processes that share it.
type keyHolder interface {
	HashKey(ctx context.Context) ([32]byte, error)
}

// HashKey returns the secret key for digests of hashed fields that all processes of a shared
// store use. held is false if the store has no such key; the memory store never has one.
// Middleware without a key of its own calls it. The error is the store's.
func (in internal) HashKey(ctx context.Context) (key [32]byte, held bool, err error) {
	holder, held := in.l.store.(keyHolder)
	if held {
		key, err = holder.HashKey(ctx)
	}
	return key, held, err
}

// BanPage returns a page of the bans that q selects, newest first, how many it selects on all pages, and the
// cursor of the next page, which is empty on the last. A ban that lasts from the first page to the
// last is on exactly one of them; a ban that begins meanwhile is on none. With a shared store, it
// reads this process's copy; see [BanList.Get].
//
// The error is a [*RuleError] for an unknown rule. Otherwise it reports a cursor that no page has
// returned, or that the copy is not available yet. Each page scans all bans, some hundred at a
// time under a lock that decisions take only to begin a ban, and allocates for the bans that it
// returns.
func (in internal) BanPage(q ban.Query) (bans []BanRecord, total int, next string, err error) {
	c := in.l.Bans().copy()
	return c.page(q)
}

// RestoreBan adds a ban that was kept over a restart, with its start, end and count. It skips a ban
// that has ended, whose client is on the allow list now, or whose rule is gone or has another key,
// and keeps an existing ban of the key that ends later. The error is about a record that is not
// valid, or the store's.
func (in internal) RestoreBan(r BanRecord) error { return in.l.restoreBan(&r, in.l.now()) }

// Internal returns the methods that only packages of this module call. They may change in any
// version.
func (s *Set) Internal() internalSet { return internalSet{s} }

// internalSet is what the server, the middlewares and replay need of a [Set], and programs do not.
type internalSet struct{ s *Set }

// Sources returns the sources of SetConfig.Fields, which must not be changed.
func (in internalSet) Sources() []match.Source { return in.s.from }

// CountsAnswers reports whether the condition of a rule uses a field of the answer: status, size
// or duration.
func (in internalSet) CountsAnswers() bool { return slices.Contains(in.s.answers, true) }

// Allowed reports whether the event's client is on the allow list.
func (in internalSet) Allowed(e *match.Event) bool { return in.s.allowed(e) }

// Fields returns the names of the event fields that keys, conditions and limits of the set use,
// sorted.
func (in internalSet) Fields() []string {
	s, names := in.s, []string(nil)
	if !s.allow.IsEmpty() {
		names = append(names, match.Client.String())
	}
	for i := range s.rules {
		names = append(names, keyvalue.Fields(s.rules[i].Key)...)
		names = append(names, keyvalue.Fields(s.distinct[i])...)
		names = append(names, keyvalue.Fields(s.by[i])...)
		names = append(names, when.Fields(&s.rules[i].When)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
