// Package batch has the requests of a server to a limiter: queries that are decided
// together, and tickets that settle a decision later, in any process.
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

	// Peek returns the decision without any change.
	Peek bool

	// Partial means that Event is an answer and may lack fields of its request. Rules that
	// count answers and need such a field count the event as lacking.
	Partial bool

	// Ticket, if it is not nil, receives the reservation, to be settled when the cost is known.
	Ticket *Ticket
}

// A FixedLimitError is the error of a [Query] with a Limit under a rule whose limits have no AtMost.
type FixedLimitError struct{ Rule string }

// Error names the setting that the rule must have.
func (e *FixedLimitError) Error() string {
	return fmt.Sprintf("ratelimit: rule %q: its limit is fixed: must have at_most to take a limit from a request", e.Rule)
}
