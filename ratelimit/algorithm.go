package ratelimit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/limit"
)

// An Algorithm is how a limit counts. The zero Algorithm is Sliding.
//
// Sliding and Exact never allow more than N in any true window (t-span, t], Fixed
// and Calendar in their own windows, and InFlight at any moment. [Limit.MaxAllowed]
// is what each allows at worst in any window of a span, and [Limit.MaxLate] by how
// much longer than needed it refuses; docs/dev/proofs.md has the proofs and what a
// key costs.
type Algorithm uint8

const (
	// Sliding is the default. For a limit of up to 128 it is Exact. Above, it
	// is so while no more than three are in the window, and then counts in a
	// ring of 60 slots (64 where 60 does not divide the span into whole
	// nanoseconds) and judges on hi, the sum that includes the oldest, partly
	// expired slot: never more than N in any true window, and every refusal is
	// justified by N allowed in (t-span-slot, t]. A key takes some 150 bytes,
	// or 300 with its slots, whatever N. When the budget has no memory for
	// slots, a key is judged by two of a span each instead.
	Sliding Algorithm = iota

	// Exact keeps the time of each of the last N events of a key: the
	// definition itself, at 8 bytes an event. N is at most MaxExact.
	Exact

	// TwoBucket weighs the window before by the share of it that is still in
	// the span: two counters a key, known as the sliding window counter. It
	// takes the window before to have been evenly filled, so that at worst
	// 2N - 1 pass in a span.
	TwoBucket

	// GCRA spaces events by span/N after a burst of Limit.Burst (the generic
	// cell rate algorithm of ATM Forum TM 4.0): at worst N + burst - 1 in a
	// span. It is also named token-bucket: a bucket of Burst tokens that gains
	// N a span decides the same.
	GCRA

	// LeakyBucket is a queue of Limit.Burst places that is served N times a
	// span: an event that finds a place is allowed, and [Decision.Delay]
	// says how long until its turn.
	LeakyBucket

	// Fixed is a window that begins with a key's first event and ends a span
	// later: N in each, and at worst 2N - 1 in a span across an edge.
	Fixed

	// Calendar is a window between two edges of the calendar in Rule.Zone,
	// see [Limit.Per]: N in each, and at worst 2N across an edge.
	Calendar

	// InFlight bounds how many events are under way at one time: one is from
	// its [Limiter.Reserve] until the reservation is settled or canceled, or
	// until Span is over, which is the longest it is believed to be.
	InFlight

	numAlgorithms
)

const (
	// MaxExact is the largest N that Exact and InFlight, and a ban, can
	// count: a key then takes up to 512 KiB.
	MaxExact = 1<<16 - 1

	// MaxSliding is the largest N that the others can count.
	MaxSliding = 1<<32 - 1
)

// tokenBucket is another name of GCRA.
const tokenBucket = "token-bucket"

// Algorithms returns the names of all algorithms, by their number. GCRA has another
// name, token-bucket, which is not among them.
func Algorithms() []string { return limit.Algorithms() }

// String returns the algorithm's name as in a rules file.
func (a Algorithm) String() string { return limit.Algorithm(a).String() }

// AlgorithmNamed returns the algorithm of that name; "" is Sliding, and token-bucket
// is GCRA. The error says which names there are.
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
