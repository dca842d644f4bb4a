package ratelimit

import (
	"hash/fnv"
	"math"
	"time"

	"github.com/lately-go/lately/match"
)

// A Ticket is what must be known to settle a [Reservation] without it: later, in another process that shares the
// store, or after a restart from [Limiter.Export]. Its fields are for an encoder; only what [Reservation.Ticket] has
// returned can be settled.
//
// Where limits are in the memory of a process, the caller must settle a ticket once at most, and after a restart
// only if the counts of its time were restored.
type Ticket struct {
	// At is when the event was judged, in nanoseconds since 1970, and Cost what was charged.
	At   int64
	Cost uint64

	// Charges is what was charged, by rule.
	Charges []TicketCharge

	// ID is what a shared store knows the ticket by. It remembers until Ends that the ticket was settled.
	ID   string
	Ends time.Time
}

// A TicketCharge is the part of a [Ticket] about one rule.
type TicketCharge struct {
	Rule string
	Key  []byte // as Rule.Key joins it
	Form uint32 // of the rule's key: a rule of the same name that counts other keys is another one

	// Mark is how a store detects that the key was reset, or its limits changed, since the charge. AnyMark
	// settles without this check.
	Mark uint64
}

// AnyMark is the Mark of a charge that was not reset and whose limits have not changed, as the caller knows.
const AnyMark = math.MaxUint64

// Ticket returns r as a ticket without ID. It has no charges if nothing was charged, or if a fail policy decided while the
// store was unavailable. Its keys are valid until r is filled in again.
func (r *Reservation) Ticket() Ticket {
	t := Ticket{At: r.at, Cost: r.cost}
	if r.counts != r.limiter.counts {
		return t
	}
	for i := range r.charged {
		s := &r.charged[i]
		if !s.Outcome.Charged {
			continue
		}
		rule := &r.rules.rules[s.Outcome.Rule]
		t.Charges = append(t.Charges, TicketCharge{Rule: rule.Name, Key: s.Key, Form: formOf(&rule.Key), Mark: s.Mark})
	}
	return t
}

// formOf identifies the form of the keys of k.
func formOf(k *match.Key) uint32 {
	h := fnv.New32a()
	h.Write(k.AppendShape(nil))
	return h.Sum32()
}

// SettleTicket is [Reservation.Settle] for a ticket, now. Charges under rules that are gone, or count other keys, are left
// as they are. It reports whether it was this call that has settled the ticket: in a shared store, a second one with
// the same ID changes nothing. After an error of a shared store, it can be called again with the same ID.
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
		if rule, ok := set.names[c.Rule]; ok && formOf(&set.rules[rule].Key) == c.Form {
			subjects = append(subjects, subject{Key: c.Key, Mark: c.Mark, Outcome: outcome{Rule: rule, Charged: true}})
		}
	}
	return subjects
}
