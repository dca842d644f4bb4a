package ratelimit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/limit"
)

// An Algorithm counts the events of a limit. The zero Algorithm is [Sliding].
//
// Sliding and Exact never allow more than N in any true window (t-span, t], Fixed
// and Calendar in their own windows, and InFlight at any moment. [Limit.MaxAllowed]
// is the worst case of each in any window of a span, and [Limit.MaxLate] how much
// longer than needed it may refuse; docs/dev/proofs.md has the proofs and the
// memory of a key.
type Algorithm uint8

const (
	// Sliding is the default. For a limit of up to 128 it is Exact. Above, it
	// keeps up to three times, and then counts in a ring of 60 slots (64 if 60
	// does not divide the span into whole nanoseconds). It judges on the upper
	// bound, which includes the oldest, partly expired slot: never more than N
	// in any true window, and a refusal means that N were allowed in
	// (t-span-slot, t]. A key takes some 150 bytes, or 300 with its slots, for
	// any N. If the budget has no memory for slots, a key is judged by two
	// slots of a span each.
	Sliding Algorithm = iota

	// Exact keeps the time of each of the last N events of a key: the
	// definition itself, at 8 bytes an event. N is at most MaxExact.
	Exact

	// TwoBucket adds the current window and the share of the previous window
	// that is still in the span: two counters a key, the common sliding window
	// counter. It assumes that the previous window was filled evenly; at worst
	// 2N - 1 are allowed in a span.
	TwoBucket

	// GCRA spaces events by span/N after a burst of Limit.Burst (the generic
	// cell rate algorithm of ATM Forum TM 4.0): at worst N + burst - 1 in a
	// span. It is also named token-bucket: a bucket of Burst tokens that gains
	// N a span decides the same.
	GCRA

	// LeakyBucket is a queue of Limit.Burst places that is served N times a
	// span: an event that finds a place is allowed, and [Decision.Delay] is the
	// time until its turn.
	LeakyBucket

	// Fixed is a window that begins with a key's first event and ends a span
	// later: N in each, and at worst 2N - 1 in a span across an edge.
	Fixed

	// Calendar is a window between two edges of the calendar in Rule.Zone,
	// see [Limit.Per]: N in each, and at worst 2N across an edge.
	Calendar

	// InFlight limits concurrent events. An event starts with [Limiter.Reserve]
	// and ends when its reservation is settled or canceled, or after Span.
	InFlight

	numAlgorithms
)

const (
	// MaxExact is the largest N of Exact and InFlight, and of a ban: 65,535. A
	// key then takes up to 512 KiB.
	MaxExact = 1<<16 - 1

	// MaxSliding is the largest N of all other algorithms: 4,294,967,295.
	MaxSliding = 1<<32 - 1
)

// tokenBucket is another name of GCRA.
const tokenBucket = "token-bucket"

// Algorithms returns the names of all algorithms, by their number. GCRA has another
// name, token-bucket, which is not among them.
func Algorithms() []string { return limit.Algorithms() }

// String returns the algorithm's name as in a rules file.
func (a Algorithm) String() string { return limit.Algorithm(a).String() }

// AlgorithmNamed returns the algorithm of that name; "" is [Sliding], and
// token-bucket is [GCRA]. The error lists the names.
func AlgorithmNamed(name string) (Algorithm, error) {
	switch name {
	case "":
		return Sliding, nil
	case tokenBucket:
		return GCRA, nil
	}
	names := Algorithms()
	if i := slices.Index(names, name); i >= 0 {
		return Algorithm(i), nil
	}
	names = slices.Insert(names, int(GCRA)+1, tokenBucket)
	return 0, fmt.Errorf("algorithm: %q: must be %s", name, strings.Join(names, ", "))
}

// bursts reports whether a has Limit.Burst. The others compare a count with
// N, so that an N that changes from one decision to the next means something.
func (a Algorithm) bursts() bool { return limit.Algorithm(a).Bursts() }
