package limit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/counting/ring"
)

// An Algorithm is how a [Counter] counts. The constants of package ratelimit document each;
// docs/dev/proofs.md has what it allows at worst, what it refuses wrongly, and what it
// costs.
type Algorithm uint8

const (
	Sliding     Algorithm = iota // exact up to SlidingExact, above it a ring of slots
	Exact                        // the time of each event
	TwoBucket                    // two slots as long as the span, with the older weighed
	GCRA                         // a bucket that drains evenly
	LeakyBucket                  // the same, with a Delay
	Fixed                        // windows that begin with their first event
	Calendar                     // seconds, minutes ... months of a time zone
	InFlight                     // Exact, where Refund ends an event before its Span is over

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
	allows func(n, burst uint64) uint64  // see Config.MaxAllowed
	late   func(c *Config) time.Duration // see Config.MaxLate
}

var methods = [numAlgorithms]method{
	Sliding:     {"sliding", math.MaxUint32, false, newSliding, once, slidingLate},
	Exact:       {"exact", MaxLog, false, newLog, once, never},
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
func spanLate(c *Config) time.Duration { return c.Span }

func slidingLate(c *Config) time.Duration {
	if c.N <= SlidingExact {
		return 0
	}
	return slotWidth(c.Span)
}

// slotWidth returns the width of the slots that Sliding cuts a span into.
func slotWidth(span time.Duration) time.Duration { return time.Duration(ring.Width(int64(span))) }

// Algorithms returns the names of all algorithms, by their number.
func Algorithms() (names []string) {
	for i := range methods {
		names = append(names, methods[i].name)
	}
	return names
}

// AlgorithmNames returns the names by which [AlgorithmNamed] finds an algorithm. One of them
// has two.
func AlgorithmNames() []string { return slices.Insert(Algorithms(), int(GCRA)+1, tokenBucket) }

// tokenBucket is another name for GCRA.
const tokenBucket = "token-bucket"

// AlgorithmNamed returns the algorithm of that name; "" is Sliding. The error says which names
// there are.
func AlgorithmNamed(name string) (Algorithm, error) {
	switch name {
	case "":
		return Sliding, nil
	case tokenBucket:
		return GCRA, nil
	}
	if i := slices.Index(Algorithms(), name); i >= 0 {
		return Algorithm(i), nil
	}
	return 0, fmt.Errorf("algorithm: %q: must be %s", name, strings.Join(AlgorithmNames(), ", "))
}

// Known reports whether there is such an algorithm.
func (a Algorithm) Known() bool { return a < numAlgorithms }

// String returns the algorithm's name as in a rules file.
func (a Algorithm) String() string {
	if a < numAlgorithms {
		return methods[a].name
	}
	return "algorithm?"
}

// Bursts reports whether a has a [Config.Burst].
func (a Algorithm) Bursts() bool { return a < numAlgorithms && methods[a].bursts }
