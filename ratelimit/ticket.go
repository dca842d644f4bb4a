package ratelimit

import (
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/match"
)

// A Ticket is a [Reservation] that can be settled without the limiter that made it: later, in
// another process that shares the store, or after a restart from [Limiter.Export].
// [Limiter.TakeAll] fills it in and reuses its memory. Its fields are for an encoder.
//
// If limits are in the memory of a process, the caller must settle a ticket at most once, and after
// a restart only if the counts of its time were restored.
type Ticket struct {
	// At is the time of the decision, in nanoseconds since 1970, and Cost the charge.
	At   int64
	Cost uint64

	// Charges are the charges by rule: none if nothing was charged, or if a fail policy decided
	// while the store was unavailable.
	Charges []TicketCharge

	// ID identifies the ticket in a shared store, which remembers until Ends that it was settled.
	ID   string
	Ends time.Time
}

// A TicketCharge is the part of a [Ticket] about one rule.
type TicketCharge struct {
	Rule string
	Key  []byte // as Rule.Key joins it
	Form uint32 // form of the rule's key: after a change of the key, it is another rule

	// Mark lets a store detect that the key was reset, or its limits changed, since the charge.
	// [AnyMark] settles without this check.
	Mark uint64
}

// AnyMark is the Mark of a charge if the caller knows that the key was not reset and its limits
// have not changed.
const AnyMark = math.MaxUint64

// fill makes t the ticket of a query that was decided with d, and of which r was asked. It has no charges if nothing was charged,
// or if a fail policy decided while the store was unavailable.
func (t *Ticket) fill(q *Query, r *request, d *Decision) {
	*t = Ticket{At: r.Now, Cost: q.Cost, Charges: t.Charges[:0]}
	if _, refused := d.Err.(*costError); !d.Allowed || d.Err != nil && !refused {
		return
	}
	for i := range r.Subjects {
		s := &r.Subjects[i]
		if !s.Outcome.Charged {
			continue
		}
		n := len(t.Charges)
		t.Charges = slices.Grow(t.Charges, 1)[:n+1]
		c, rule := &t.Charges[n], s.Outcome.Rule
		c.Rule, c.Form, c.Mark, c.Key = r.Set.rules[rule].Name, r.Set.forms[rule], s.Mark, append(c.Key[:0], s.Key...)
	}
}

// formOf identifies the form of the keys of k.
func formOf(k *match.Key) uint32 {
	h := fnv.New32a()
	h.Write(keyvalue.AppendShape(nil, *k))
	return h.Sum32()
}

// SettleTicket is [Reservation.Settle] for a ticket, now. Charges under rules that were removed, or
// count other keys now, do not change. settled is true if this call settled the ticket: in a shared
// store, a second call with the same ID changes nothing. After an error of a shared store, it can
// be called again with the same ID.
func (l *Limiter) SettleTicket(t *Ticket, actual uint64) (settled bool, err error) {
	ctx, cancel := l.bounded()
	defer cancel()
	s := settlement{At: t.At, Now: l.now(), Charged: t.Cost, Actual: actual, ID: t.ID, Ends: t.Ends}
	err = l.whileStale(func(set *Set) error {
		if s.Set == nil {
			s.Subjects = subjectsOf(t, set)
		} else {
			s.Subjects = renumbered(s.Subjects, s.Set, set)
		}
		s.Set = set
		return l.counts.Settle(ctx, &s)
	})
	return !s.Again, err
}

// subjectsOf returns the charges of t as set numbers their rules.
func subjectsOf(t *Ticket, set *Set) []subject {
	subjects := make([]subject, 0, len(t.Charges))
	for i := range t.Charges {
		c := &t.Charges[i]
		if rule, ok := set.names[c.Rule]; ok && set.forms[rule] == c.Form {
			subjects = append(subjects, subject{Key: c.Key, Mark: c.Mark, Outcome: outcome{Rule: rule, Charged: true}})
		}
	}
	return subjects
}
