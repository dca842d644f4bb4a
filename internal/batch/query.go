// Package batch has what the server asks of a limiter: decisions that are made together, and
// what settles them later, in any process.
package batch

import (
	"fmt"

	"github.com/lately-go/lately/match"
)

// A Query is one decision of a batch: about an event under all rules, or about a key under
// one.
type Query struct {
	// Event is judged under all rules that match it. If it is nil, Key is judged.
	Event *match.Event

	// Rule and Key are the name of a rule and the values of its key.
	Rule string
	Key  []string

	// Limit, when not 0, is N for Key, under a rule whose limit comes with the event.
	Limit uint64

	// Cost is charged to the limits.
	Cost uint64

	// Peek returns what the decision would be, and changes nothing.
	Peek bool

	// Partial means that Event, an answer, may lack fields that its request had: rules that
	// count answers, and need a field which it lacks, count it as lacking.
	Partial bool

	// Ticket, if it is not nil, is filled in with what settles the event when its cost is known.
	Ticket *Ticket
}

// A FixedLimitError is the error of a [Query] with a Limit under a rule whose limits have no AtMost.
type FixedLimitError struct{ Rule string }

// Error returns what the rule must have.
func (e *FixedLimitError) Error() string {
	return fmt.Sprintf("ratelimit: rule %q: its limit is fixed: must have at_most to take a limit from a request", e.Rule)
}
