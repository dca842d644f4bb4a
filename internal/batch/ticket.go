package batch

import (
	"math"
	"time"
)

// A Ticket is a reservation that can be settled without the limiter that made it: later, in
// another process that shares the store, or after a restart. A limiter fills it in, with the
// memory that it has. Its fields are for an encoder.
//
// Where limits are in the memory of a process, the caller must settle a ticket once at most,
// and after a restart only if the counts of its time were restored.
type Ticket struct {
	// At is when the event was judged, in nanoseconds since 1970, and Cost what was charged.
	At   int64
	Cost uint64

	// Charges is what was charged, by rule. There are none if nothing was charged, or if a fail
	// policy decided while the store was unavailable.
	Charges []Charge

	// ID is the name of the ticket in a shared store, which remembers until Ends that it was
	// settled.
	ID   string
	Ends time.Time
}

// A Charge is the part of a [Ticket] about one rule.
type Charge struct {
	Rule string
	Key  []byte // as the rule's key joins it
	Form uint32 // of the rule's key: a rule of the same name that counts other keys is another one

	// Mark is how a store detects that the key was reset, or its limits changed, since the
	// charge. AnyMark settles without this check.
	Mark uint64
}

// AnyMark is the Mark of a charge that was not reset and whose limits have not changed, as the
// caller knows.
const AnyMark = math.MaxUint64
