package limit

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"time"
)

const (
	// MaxSpan is the longest Span: ten years.
	MaxSpan = 10 * 365 * 24 * time.Hour

	// MaxLog is the largest N of the algorithms that keep each time.
	MaxLog = 1<<16 - 1

	// MaxN is the largest N of a rule with any other algorithm.
	MaxN = math.MaxUint32
)

// Config says what a [Counter] counts. The zero Config is not usable: a limit has
// a span.
type Config struct {
	Algorithm Algorithm // the zero Algorithm is Sliding
	N         uint64    // how many in a span; 0 refuses all

	// Span is the length of the window, whole milliseconds from 1 ms to
	// MaxSpan. Calendar has a Period and ignores it.
	Span time.Duration

	// Burst is how full GCRA and LeakyBucket get. 0 means N. It must not take
	// longer than MaxSpan to drain. Other algorithms have none.
	Burst uint64

	// AtMost is the largest N that [Counter.SetN] sets, for GCRA and LeakyBucket; it is 0 if
	// N stays. The other algorithms count for any N up to that of the Config.
	AtMost uint64

	// Distinct counts the values of a field instead of events: N of them, each once, at
	// the time at which it came last. They come by [Counter.CountValue]; Charge counts
	// nothing. It is for Exact only.
	Distinct bool

	// Period and Zone are the window of Calendar; a nil Zone is UTC. Other
	// algorithms have none.
	Period Period
	Zone   *time.Location

	// Resolution is what times are multiples of, when they were floored to
	// it, as replay does with the seconds of a log: Sliding and TwoBucket
	// then know better when a slot has left. 0 means nanoseconds.
	Resolution time.Duration
}

// MustSpan is what a span must be, for errors.
const MustSpan = "must be whole milliseconds from 1ms to 87600h"

// ValidSpan reports whether d can be the length of a window or of a ban: whole milliseconds from 1 ms to MaxSpan.
func ValidSpan(d time.Duration) bool {
	return d >= time.Millisecond && d <= MaxSpan && d%time.Millisecond == 0
}

// Most returns how much can be used: N, or the burst of the algorithms that have one.
func (c *Config) Most() uint64 {
	if c.Burst != 0 && c.N != 0 {
		return c.Burst
	}
	return c.N
}

// MaxAllowed returns the largest total cost that is allowed in any window of Span,
// or of the shortest period of Calendar, whatever arrives at whatever times. It is
// for N and Burst below 2^62.
func (c *Config) MaxAllowed() uint64 {
	if c.N == 0 {
		return 0
	}
	return methods[c.Algorithm].allows(c.N, c.Most())
}

// MaxLate returns by how much longer than its span an event may be counted, with
// memory for the slots of Sliding.
func (c *Config) MaxLate() time.Duration { return methods[c.Algorithm].late(c) }

// Exact reports whether the times of events are kept, each until it leaves the window.
func (c *Config) Exact() bool {
	return c.Algorithm == Exact || c.Algorithm == InFlight || c.Algorithm == Sliding && c.N <= SlidingExact
}

// validate returns an error that names the bad field, its value and what is
// allowed.
func (c *Config) validate() error {
	if c.Algorithm >= numAlgorithms {
		return fmt.Errorf("algorithm: number is %d: must be 0 (%v) to %d (%v)", c.Algorithm, Algorithm(0), numAlgorithms-1, numAlgorithms-1)
	}
	m := &methods[c.Algorithm]
	switch {
	case c.N > m.maxN:
		return fmt.Errorf("limit: %d: must be at most %d with %s", c.N, m.maxN, m.name)
	case c.Algorithm != Calendar && !ValidSpan(c.Span):
		return fmt.Errorf("span: %v: %s", c.Span, MustSpan)
	case c.Algorithm == Calendar && (c.Period == 0 || c.Period >= numPeriods):
		return fmt.Errorf("period: %s: must be second, minute, hour, day, week or month with %s", cmp.Or(c.Period.String(), "none"), m.name)
	case c.Algorithm != Calendar && c.Period != 0:
		return fmt.Errorf("period: %v: must be none with %s, which has a span", c.Period, m.name)
	case c.Algorithm != Calendar && c.Zone != nil:
		return fmt.Errorf("zone: %v: must be none with %s", c.Zone, m.name)
	case c.Resolution < 0 || c.Resolution > MaxSpan:
		return fmt.Errorf("resolution: %v: must be 0 (nanoseconds) to %v", c.Resolution, MaxSpan)
	case c.Distinct && c.Algorithm != Exact:
		return fmt.Errorf("distinct values: must be counted with %s, not %s", Exact, m.name)
	case !m.bursts && c.Burst != 0:
		return fmt.Errorf("burst: %d: must be 0 with %s, which has none", c.Burst, m.name)
	case c.AtMost != 0 && (!m.bursts || c.N == 0 || c.AtMost < c.N || c.AtMost > math.MaxUint32 || c.Burst > math.MaxUint32):
		return fmt.Errorf("at most: %d: must be the limit or more, up to %d, with an algorithm that has a burst and a limit of 1 or more", c.AtMost, uint32(math.MaxUint32))
	case m.bursts && c.N > 0 && c.Burst > c.maxBurst():
		return fmt.Errorf("burst: %d takes more than %v to drain at %d in %v: must be at most %d", c.Burst, MaxSpan, c.N, c.Span, c.maxBurst())
	}
	return nil
}

// maxBurst returns the largest Burst that drains within MaxSpan, but no less
// than N.
func (c *Config) maxBurst() uint64 {
	hi, lo := bits.Mul64(c.N, uint64(MaxSpan))
	if hi >= uint64(c.Span) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(c.Span))
	return min(q, math.MaxInt64)
}
