package ratelimit

import "github.com/lately-go/lately/internal/limit"

// An Algorithm counts the events of a limit. The zero Algorithm is [Sliding].
//
// Sliding and Exact never allow more than N in any true window (t-span, t], Fixed
// and Calendar in their own windows, and InFlight at any moment. [Limit.MaxAllowed]
// is the worst case of each in any window of a span, and [Limit.MaxLate] how much
// longer than needed it may refuse; docs/dev/proofs.md has the proofs and the
// memory of a key. Its String is the name as in a rules file.
type Algorithm = limit.Algorithm

const (
	// Sliding is the default. For a limit of up to 128 it is Exact. Above, it
	// keeps up to three times, and then counts in a ring of 60 slots (64 if 60
	// does not divide the span into whole nanoseconds). It judges on the upper
	// bound, which includes the oldest, partly expired slot: never more than N
	// in any true window, and a refusal means that N were allowed in
	// (t-span-slot, t]. A key takes some 150 bytes, or 300 with its slots, for
	// any N. If the budget has no memory for slots, a key is judged by two
	// slots of a span each.
	Sliding Algorithm = limit.Sliding

	// Exact keeps the time of each of the last N events of a key: the
	// definition itself, at 8 bytes an event. N is at most 65,535.
	Exact Algorithm = limit.Exact

	// TwoBucket adds the current window and the share of the previous window
	// that is still in the span: two counters a key, the common sliding window
	// counter. It assumes that the previous window was filled evenly; at worst
	// 2N - 1 are allowed in a span.
	TwoBucket Algorithm = limit.TwoBucket

	// GCRA spaces events by span/N after a burst of Limit.Burst (the generic
	// cell rate algorithm of ATM Forum TM 4.0): at worst N + burst - 1 in a
	// span. It is also named token-bucket: a bucket of Burst tokens that gains
	// N a span decides the same.
	GCRA Algorithm = limit.GCRA

	// LeakyBucket is a queue of Limit.Burst places that is served N times a
	// span: an event that finds a place is allowed, and [Decision.Delay] is the
	// time until its turn.
	LeakyBucket Algorithm = limit.LeakyBucket

	// Fixed is a window that begins with a key's first event and ends a span
	// later: N in each, and at worst 2N - 1 in a span across an edge.
	Fixed Algorithm = limit.Fixed

	// Calendar is a window between two edges of the calendar in Rule.Zone,
	// see [Limit.Per]: N in each, and at worst 2N across an edge.
	Calendar Algorithm = limit.Calendar

	// InFlight limits concurrent events. An event starts with [Limiter.Reserve]
	// and ends when its reservation is settled or canceled, or after Span.
	InFlight Algorithm = limit.InFlight
)
