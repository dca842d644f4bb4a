package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/internal/wait"
	"github.com/lately-go/lately/match"
)

// A Reservation is an event that was judged and charged, and whose actual cost
// becomes known later: bytes sent, tokens used, or, for InFlight, that it has
// ended. It ends once, by Settle or Cancel; further calls do nothing. If it
// never ends, it keeps its charge, and under InFlight its place until the span
// of the limit is over.
//
// A Reservation is safe for concurrent use.
type Reservation struct {
	// Decision is the decision of Take. If it is not Allowed, nothing was
	// charged.
	Decision Decision

	// Outcomes has the outcome of each matching rule, in the order of the
	// rules.
	Outcomes []Outcome

	limiter *Limiter
	counts  store.Counters[*Set] // that has charged it
	rules   *Set
	at      int64
	cost    uint64
	scratch scratch   // what was judged; charged is of it
	charged []subject // what can be settled
	ended   atomic.Bool
}

// Reserve judges e now, charges the limits with n, and returns the reservation
// that corrects the charge when the event is over. It allocates.
//
// A cost of 0 reserves nothing and no limit refuses it; Settle then charges the
// actual cost. Under InFlight such an event does not count.
func (l *Limiter) Reserve(e *match.Event, n uint64) *Reservation {
	r := new(Reservation)
	l.reserve(&batch.Query{Event: e, Cost: n}, l.now(), r)
	return r
}

func (l *Limiter) reserve(q *batch.Query, now int64, r *Reservation) {
	r.Decision = Decision{}
	l.decideWith(&r.scratch, &r.Decision, q, now, false)
	r.limiter, r.counts, r.cost = l, l.counts, q.Cost
	if _, refused := r.Decision.Err.(*costError); r.Decision.Err != nil && !refused {
		if m := l.local.Load(); m != nil {
			r.counts = m // a fail policy decided
		}
	}
	request := &r.scratch.request
	r.at, r.rules = request.Now, request.Set
	r.Outcomes = r.scratch.appendOutcomes(r.Outcomes[:0])
	r.charged = nil
	if r.Decision.Allowed {
		r.charged = request.Subjects
	}
	r.ended.Store(false)
}

// open reports whether the event is under way until r ends.
func (r *Reservation) open() bool {
	if len(r.charged) == 0 || r.ended.Load() {
		return false
	}
	for i := range r.Outcomes {
		switch r.rules.rules[r.Outcomes[i].Rule].Algorithm {
		case InFlight, LeakyBucket:
			return true
		}
	}
	return false
}

// appendOutcomes appends the outcome of each rule to dst.
func (sc *scratch) appendOutcomes(dst []Outcome) []Outcome {
	r, first := &sc.request, len(dst)
	for i := range r.Subjects {
		o := &r.Subjects[i].Outcome
		o.Set = r.Set
		dst = append(dst, Outcome(*o))
	}
	if len(sc.lacking) > 0 {
		dst = sc.appendLacking(dst, first)
	}
	return dst
}

// Settle corrects the charge to actual, now, and ends an event that is in flight. If
// the charge was too high, the difference is subtracted in the slot in which it was
// counted; if that slot has left the window, or the key was reset, nothing is
// subtracted. If it was too low, the difference is charged now, even beyond the limit,
// so that the next events wait for it. Under a rule whose limits have changed since,
// the reservation is void: nothing is subtracted or charged, except that InFlight ends
// the event. The error is the store's; the reservation has ended even then.
func (r *Reservation) Settle(actual uint64) error { return r.settle(r.limiter.now(), actual) }

// Cancel takes the charge back: it is Settle(0).
func (r *Reservation) Cancel() error { return r.Settle(0) }

func (r *Reservation) settle(now int64, actual uint64) error {
	if r.ended.Swap(true) || len(r.charged) == 0 {
		return nil
	}
	if m, ok := r.counts.(*memory); ok && m != r.limiter.local.Load() {
		return nil // an Update has replaced local memory, and what it had counted
	}
	ctx, cancel := r.limiter.bounded()
	defer cancel()
	_, noted := r.counts.(*memory) // it has the event alone
	s := settlement{Set: r.rules, At: r.at, Now: now, Charged: r.cost, Actual: actual, Subjects: r.charged}
	return r.limiter.whileStale(func(set *Set) error {
		s.Subjects, s.Set = renumbered(s.Subjects, s.Set, set), set // what is settled before the store moves stays so
		if !noted {
			r.limiter.noteEnd(set, s.Subjects, r.cost)
			noted = true // once
		}
		return r.counts.Settle(ctx, &s)
	})
}

// renumbered returns the subjects, which are of the rules before, as set numbers these,
// without those of rules that are gone.
func renumbered(all []subject, before, set *Set) []subject {
	if set == before {
		return all
	}
	var subjects []subject
	for _, s := range all {
		was := before.rules[s.Outcome.Rule]
		i := slices.IndexFunc(set.rules, func(now *Rule) bool { return now.Name == was.Name && keyvalue.Equal(now.Key, was.Key) })
		if i >= 0 {
			s.Outcome.Rule = i
			subjects = append(subjects, s)
		}
	}
	return subjects
}

// ErrBanned is the error of Wait for a key in a ban.
var ErrBanned = errors.New("ratelimit: banned")

// Wait waits until e is allowed with that cost, and its turn has come if a
// [LeakyBucket] queues it, and returns the reservation, which need not be
// ended. It does not wait for the end of a ban, nor if ctx would end before.
// While it waits, others may be allowed first: only a LeakyBucket has an order.
//
// The error is that of ctx, [context.DeadlineExceeded] if ctx would end before,
// [ErrCost], also for a limit of 0, [ErrBanned], or from the store; nothing is
// charged then. The reservation's Decision names the rule that refused.
func (l *Limiter) Wait(ctx context.Context, e *match.Event, n uint64) (*Reservation, error) {
	return l.wait(ctx, batch.Query{Event: e, Cost: n})
}

func (l *Limiter) wait(ctx context.Context, q batch.Query) (*Reservation, error) {
	r := &Reservation{limiter: l}
	for {
		if err := ctx.Err(); err != nil {
			return &Reservation{limiter: l}, err
		}
		// To peek first keeps a wait from counting as a refusal each time.
		var d Decision
		now := l.now()
		q.Peek = true
		if l.decide(&d, &q, now); d.Allowed {
			q.Peek = false
			l.reserve(&q, now, r)
			if d = r.Decision; d.Allowed {
				return r, r.turn(ctx)
			}
		}
		if err := pause(ctx, &d, q.Cost); err != nil {
			return &Reservation{limiter: l, Decision: d}, err
		}
	}
}

// turn waits until the turn of an allowed event, and cancels it if ctx ends
// before.
func (r *Reservation) turn(ctx context.Context) error {
	if r.Decision.Delay == 0 {
		return nil
	}
	err := wait.Within(ctx, r.Decision.Delay)
	if err != nil {
		err = errors.Join(err, r.Cancel())
	}
	return err
}

// pause waits for as long as d, which refuses that cost, says, if that helps.
func pause(ctx context.Context, d *Decision, cost uint64) error {
	switch {
	case d.Err != nil:
		return d.Err
	case !d.BannedUntil.IsZero():
		return ErrBanned
	case d.Missing != "":
		return fmt.Errorf("ratelimit: rule %q: the event lacks the field %s", d.Rule, d.Missing)
	case d.RetryAfter == Never:
		return &costError{Rule: d.Rule, Cost: cost, Limit: d.Limit} // a limit of 0
	}
	return wait.Within(ctx, max(d.RetryAfter, 1))
}
