package batch

import (
	"math"
	"time"
)

// A Ticket is a reservation that can be settled without the limiter that made it: later, in
// another process that shares the store, or after a restart. A limiter fills it in, with the
// memory that it has. Its fields are for an encoder.
//
// If limits are in the memory of a process, the caller must settle a ticket at most once,
// and after a restart only if the counts with its charge were restored.
type Ticket struct {
	// At is the time of the decision, in nanoseconds since 1970, and Cost the charged cost.
	At   int64
	Cost uint64

	// Charges are the charges by rule. It is empty if nothing was charged, or if a fail policy
	// decided while the store was unavailable.
	Charges []Charge

	// ID is the name of the ticket in a shared store, which stores until Ends whether it was
	// settled.
	ID   string
	Ends time.Time
}

// A Charge is the part of a [Ticket] about one rule.
type Charge struct {
	Rule string
	Key  []byte // as the rule's key joins it
	Form uint32 // of the rule's key: a rule of the same name that counts other keys is another one

	// Mark lets a store detect that the key was reset, or its limits changed, since the
	// charge. AnyMark settles without this check.
	Mark uint64
}

// AnyMark is a Mark for callers that know that the charge was not reset and its limits have
// not changed.
const AnyMark = math.MaxUint64
