package limit

import (
	"math"
	"time"
)

// An Algorithm is how a [Counter] counts. docs/dev/proofs.md has for each what it
// admits at worst, what it refuses wrongly, and what it costs.
type Algorithm uint8

const (
	// Sliding never admits more than N in any window. Up to N = SlidingExact
	// it is Exact. Above, it counts in a ring of slots and judges on hi, the
	// sum that includes the oldest, partly expired slot, so that an event
	// leaves up to one slot late.
	Sliding Algorithm = iota

	// Exact keeps the time of each of the last N events.
	Exact

	// Weighted is the ring of Sliding, for any N, with the oldest slot
	// counted for the part of it that is still in the window, rounded up, as
	// if its events were spread evenly.
	Weighted

	// TwoBucket is Weighted with one slot as long as the span: the current
	// bucket, and the part of the one before that is still in the window.
	TwoBucket

	// GCRA is the generic cell rate algorithm: N in a span at an even pace,
	// and up to Burst at once. A token bucket of Burst into which N tokens flow
	// in a span decides the same.
	GCRA

	// LeakyBucket is a queue with room for Burst, the one whose turn it is
	// included, out of which N go in a span at an even pace. Delay is how
	// long an event that was admitted has to wait for its turn.
	LeakyBucket

	// Fixed counts in a window that begins with its first event.
	Fixed

	// Calendar counts in the seconds, minutes ... months of a time zone.
	Calendar

	// InFlight counts what is under way: Exact, where Span is the longest
	// that an event may take, and Refund ends it before.
	InFlight

	numAlgorithms
)

// SlidingExact is the largest N for which Sliding is Exact.
const SlidingExact = 128

// A method is what is known of an algorithm. The functions are of a valid Config.
type method struct {
	name   string
	maxN   uint64
	bursts bool // it has Config.Burst
	window func(c *Config) window
	admits func(n, burst uint64) uint64  // see Config.MaxAdmitted
	late   func(c *Config) time.Duration // see Config.MaxLate
}

var methods = [numAlgorithms]method{
	Sliding:     {"sliding", math.MaxUint32, false, newSliding, once, slidingLate},
	Exact:       {"exact", MaxLog, false, newLog, once, never},
	Weighted:    {"weighted", math.MaxUint32, false, newWeighted, acrossEdge, slotLate},
	TwoBucket:   {"two-bucket", math.MaxUint32, false, newTwoBucket, acrossEdge, spanLate},
	GCRA:        {"gcra", math.MaxInt64, true, newLevel, afterBurst, never},
	LeakyBucket: {"leaky-bucket", math.MaxInt64, true, newLevel, afterBurst, never},
	Fixed:       {"fixed", math.MaxInt64, false, newFixed, acrossEdge, never},
	Calendar:    {"calendar", math.MaxInt64, false, newCalendar, twice, never},
	InFlight:    {"in-flight", MaxLog, false, newLog, once, never},
}

func once(n, _ uint64) uint64           { return n }
func twice(n, _ uint64) uint64          { return 2 * n }
func acrossEdge(n, _ uint64) uint64     { return 2*n - 1 }
func afterBurst(n, burst uint64) uint64 { return n + burst - 1 }

func never(*Config) time.Duration      { return 0 }
func slotLate(c *Config) time.Duration { return slotWidth(c.Span) }
func spanLate(c *Config) time.Duration { return c.Span }

func slidingLate(c *Config) time.Duration {
	if c.N <= SlidingExact {
		return 0
	}
	return slotWidth(c.Span)
}

// slotWidth returns the width of the slots that Sliding and Weighted cut a span
// into: a 60th of it, or a 64th where 60 does not divide it, as 64 does every whole
// millisecond.
func slotWidth(span time.Duration) time.Duration {
	if span%60 != 0 {
		return span / 64
	}
	return span / 60
}

// Algorithms returns the names of all algorithms, by their number.
func Algorithms() (names []string) {
	for i := range methods {
		names = append(names, methods[i].name)
	}
	return names
}

// String returns the algorithm's name as in a rules file.
func (a Algorithm) String() string {
	if a < numAlgorithms {
		return methods[a].name
	}
	return "algorithm?"
}

// Bursts reports whether a has a [Config.Burst].
func (a Algorithm) Bursts() bool { return a < numAlgorithms && methods[a].bursts }
