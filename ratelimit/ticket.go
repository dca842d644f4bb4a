package ratelimit

import (
	"hash/fnv"
	"slices"

	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
)

// fillTicket makes t the ticket of a query that was decided with d, and of which r was asked. It has no charges if nothing was charged,
// or if a fail policy decided while the store was unavailable.
func fillTicket(t *batch.Ticket, q *batch.Query, r *request, d *Decision) {
	*t = batch.Ticket{At: r.Now, Cost: q.Cost, Charges: t.Charges[:0]}
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

// subjectsOf returns the charges of t as set numbers their rules.
func subjectsOf(t *batch.Ticket, set *Set) []subject {
	subjects := make([]subject, 0, len(t.Charges))
	for i := range t.Charges {
		c := &t.Charges[i]
		if rule, ok := set.names[c.Rule]; ok && set.forms[rule] == c.Form {
			subjects = append(subjects, subject{Key: c.Key, Mark: c.Mark, Outcome: outcome{Rule: rule, Charged: true}})
		}
	}
	return subjects
}
