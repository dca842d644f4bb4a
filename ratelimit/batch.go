package ratelimit

import (
	"slices"

	"github.com/lately-go/lately/match"
)

// A Query is one decision that [Limiter.TakeAll] makes: about an event under all rules, or
// about a key under one.
type Query struct {
	// Event is judged under all rules that match it, as by [Limiter.TakeN]. If it is nil,
	// Key is judged.
	Event *match.Event

	// Rule and Key are the name of a rule and the values of its key, as for
	// [RuleLimiter.TakeN].
	Rule string
	Key  []string

	// Limit, when not 0, is N for Key, as for [RuleLimiter.TakeLimit].
	Limit uint64

	// Cost is charged to the limits.
	Cost uint64

	// Peek means that the decision is returned and nothing changes.
	Peek bool

	// Partial means that Event, an answer, may lack fields of its request: rules that count
	// answers, and need a field that it lacks, count it as lacking.
	Partial bool

	// Ticket, if it is not nil, is filled in to settle the event when its cost is known.
	Ticket *Ticket
}

// TakeAll judges the queries now, each by itself as Take does, and appends the decisions to
// dst, in order. It is for queries that arrive together: a store behind a network receives
// up to 256 in one round trip, and [Config.StoreTimeout] applies to each 256. Events and
// keys must not change until it returns. With the memory store it does not allocate, and is
// no faster than a loop.
func (l *Limiter) TakeAll(queries []Query, dst []Decision) []Decision {
	now := l.now()
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
		l.decideFor(sc, d, &queries[i], now)
	}
	l.scratch.Put(sc)
	return dst
}

// maxBatch is how many requests a store gets at a time.
const maxBatch = 256

// An open query has no decision yet.
type openQuery struct {
	*Query
	sc *scratch
	d  *Decision
}

// takeBatch is TakeAll for a store other than memory, and at most maxBatch queries.
func (l *Limiter) takeBatch(now int64, queries []Query, dst []Decision) []Decision {
	first := len(dst)
	dst = slices.Grow(dst, len(queries))[:first+len(queries)]
	open := make([]openQuery, len(queries))
	for i := range queries {
		dst[first+i] = Decision{}
		open[i] = openQuery{&queries[i], l.scratch.Get().(*scratch), &dst[first+i]}
	}
	batch := make([]*request, 0, len(open))
	for len(open) > 0 {
		set := l.set.Load()
		batch = batch[:0]
		open = slices.DeleteFunc(open, func(o openQuery) bool {
			if l.begin(o.sc, o.d, set, o.Query, now) {
				return l.answer(o)
			}
			batch = append(batch, o.sc.ask(set, o.Query, now))
			return false
		})
		l.decideBatch(batch)
		open = slices.DeleteFunc(open, func(o openQuery) bool {
			return l.finish(o.d, &o.sc.request, now, o.sc.request.Err) && l.answer(o)
		})
	}
	return dst
}

// decideBatch has the store decide batch.
func (l *Limiter) decideBatch(batch []*request) {
	if len(batch) == 0 {
		return
	}
	ctx, cancel := l.bounded()
	defer cancel()
	l.store.Decide(ctx, batch)
}

// answer makes the ticket of o, which has its decision. It returns true.
func (l *Limiter) answer(o openQuery) bool {
	if len(o.sc.lacking) > 0 {
		l.lacked(o.sc, o.d, o.Query)
	}
	if o.Ticket != nil {
		o.Ticket.fill(o.Query, &o.sc.request, o.d)
	}
	l.scratch.Put(o.sc)
	return true
}
