package engine

import (
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/reservations"
	"github.com/lately-go/lately/ratelimit"
)

// DefaultHold is how long a reservation can be settled if its client does not say.
const DefaultHold = time.Minute

// Terms say what a queued decision does, besides the cost. Their zero value counts the event.
type Terms struct {
	// Peek changes nothing.
	Peek bool

	// Outcome says that the event is the answer to a request that was allowed, with the fields of both: rules that
	// count answers count it, whatever their limits allow. Hold and Report must be 0.
	Outcome bool

	// ByID says that an Outcome is the answer to the request whose decision has ID: the event need not have the fields of the
	// request, and those that the decision had win. An id is counted once; when it comes again, the decision is that of a
	// Peek. Nothing is counted for the id "", as of a request whose answer no rule looks at.
	ByID bool
	ID   string

	// Hold, if it is not 0, has an allowed event make a reservation that can be settled for so long; see Session.ID.
	Hold time.Duration

	// Report, if it is not 0, has an allowed event get an id by which its Outcome can be reported for so long; see
	// Session.ID. QueueTake ignores it.
	Report time.Duration

	// Limit, if it is not 0, is N of an event of a key, for a rule with at_most. QueueCheck ignores it.
	Limit uint64
}

// Charge counts a cost of a key under a rule, whatever the limits allow. No ban counts it.
func (s *Session) Charge(rule string, cost uint64, key ...string) error {
	r, err := s.rule(rule, key, false)
	if err != nil {
		return err
	}
	return apierror.Of(r.Charge(cost, s.values...))
}

// ID reports whether the decision that Decide has just yielded was asked for an id, by Hold or Report, and returns it. It is empty
// if the event is refused, and if there is nothing to report: no rule looks at the answer to such a request. The id is valid until
// the next decision.
func (s *Session) ID() (id []byte, asked bool) {
	if !s.asked {
		return nil, false
	}
	return s.id, true
}

// An idRequest says what the id of a queued decision is for.
type idRequest struct {
	query        int // its number in the batch
	hold, report time.Duration
}

// identify makes s.id the id of the decision d about q, if it can have one.
func (s *Session) identify(now time.Time, r idRequest, q *batch.Query, d *ratelimit.Decision) {
	s.id, s.asked = s.id[:0], true
	if !d.Allowed {
		return
	}
	x := &s.made
	x.Life, x.Asked, x.Ticket = s.e.lives.Current(), reservations.Request{Fields: x.Asked.Fields[:0], Place: s.place}, batch.Ticket{}
	if q.Ticket != nil {
		q.Ticket.Ends = now.Add(r.hold)
		x.Ticket = *q.Ticket
	}
	if r.report > 0 {
		s.e.rules.Load().fields.answers.request(&x.Asked, q.Event, now.Add(r.report), q.Ticket != nil)
	}
	if q.Ticket != nil || !x.Asked.Ends.IsZero() {
		s.id, s.plain = s.e.ids.Seal(s.id, s.plain, x)
	}
}

// Settle corrects the charge of the reservation of that id to actual, under all rules that it has charged, and ends
// events in flight. It reports false, and changes nothing, if it was settled before: at any server of a store, or at
// this one if the store has nothing of it. If the key was reset meanwhile, or the rule has other limits or is gone, what
// was charged stays.
//
// The error is of code BadID for a text that is not the id of a reservation, and of code Expired for one whose time
// is over: what it has reserved stays charged.
func (s *Session) Settle(text string, actual uint64) (settled bool, err error) {
	x, number, err := s.e.ids.Open(text)
	if err != nil {
		return false, err
	}
	now, t := s.e.Now(), &x.Ticket
	if t.Ends.IsZero() {
		return false, apierror.New(api.BadID, "id: not that of a reservation: must be of one")
	}
	if now.After(t.Ends) {
		return false, apierror.New(api.Expired, "id: its time was over at %s: what it has reserved is charged; CHARGE what was used beyond it", t.Ends.UTC().Format(time.RFC3339))
	}
	if s.e.Shared() && len(t.Charges) > 0 { // else the store has nothing of it, and this process remembers it
		settled, err = s.e.limiter.Internal().SettleTicket(t, actual)
		return settled, apierror.Of(err)
	}
	s.e.lives.Judge(x.Life, t)
	defer s.e.settled.Lock(number).Unlock()
	first, fits := s.e.settled.Add(now, number, t.Ends)
	if !fits {
		return false, apierror.New(api.Overload, "id: no memory for another settled one, which are remembered until their time is over: what it has reserved is charged; reserve FOR a shorter time")
	}
	if !first || len(t.Charges) == 0 {
		return first, nil
	}
	_, err = s.e.limiter.Internal().SettleTicket(t, actual)
	return true, apierror.Of(err)
}
