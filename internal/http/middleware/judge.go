package middleware

import (
	"github.com/lately-go/lately/internal/event/intake"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A Request is the event of a request and the memory that judging it takes, for use by
// one goroutine at a time.
type Request struct {
	Event match.Event
	Text  []byte // of headers and bodies

	digests     intake.Digests
	reservation *ratelimit.Reservation
}

// Reset releases the texts that the event refers to, and keeps the memory.
func (r *Request) Reset() { r.Event.Reset() }

// Reserve judges the event of r under the rules of p. The outcomes are about the
// rules of p, and are valid until r judges again.
func (rs *Rules[R]) Reserve(p *Plan[R], r *Request, cost uint64) (d ratelimit.Decision, outcomes []ratelimit.Outcome, l Lease) {
	if r.reservation == nil {
		r.reservation = new(ratelimit.Reservation)
	}
	reserved := r.reservation
	open := rs.limiter.Internal().ReserveAt(rs.limiter.Now(), &r.Event, cost, reserved)
	d, l.cost = reserved.Decision, cost
	if open {
		l.reservation, r.reservation = reserved, nil
	}
	return d, p.Policies.Known(reserved.Outcomes, &d), l
}

// Answer counts the event of r, which has an answer.
func (rs *Rules[R]) Answer(r *Request, cost uint64) {
	rs.limiter.TakeAt(rs.limiter.Now(), &r.Event, cost)
}

// A Lease is a request that holds places under in-flight limits. The zero Lease holds
// none.
type Lease struct {
	reservation *ratelimit.Reservation
	cost        uint64
}

// Done ends the request. If the store fails, its places are free when the span of the
// limit is over.
func (l Lease) Done() {
	if l.reservation != nil {
		_ = l.reservation.Settle(l.cost)
	}
}

// Cancel takes back the charge of a request that will not be served.
func (l Lease) Cancel() {
	if l.reservation != nil {
		_ = l.reservation.Cancel()
	}
}
