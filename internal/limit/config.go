package limit

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/lately-go/lately/internal/keytable"
)

const (
	// MaxSpan is the longest Span: ten years.
	MaxSpan = 10 * 365 * 24 * time.Hour

	// MaxLog is the largest N of the kinds that keep each time: Exact and
	// InFlight.
	MaxLog = keytable.MaxLog

	// MaxSlot is the largest N of the kinds that count in slots: Sliding,
	// Weighted and TwoBucket.
	MaxSlot = math.MaxUint32

	// MaxN is the largest N, or Burst, of all others.
	MaxN = math.MaxInt64

	// SlidingExact is the largest N for which Sliding is Exact.
	SlidingExact = 128
)

// Config says what a [Counter] counts. The zero Config is not usable: a limit has
// a span.
type Config struct {
	Algorithm Algorithm // the zero Algorithm is Sliding
	N         uint64    // how many in a span; 0 refuses all

	// Span is the length of the window, whole milliseconds from 1 ms to
	// MaxSpan. Calendar has a Period and ignores it.
	Span time.Duration

	// Burst is how full GCRA, TokenBucket and LeakyBucket get. 0 means N. It
	// must not take longer than MaxSpan to drain. Other kinds have none.
	Burst uint64

	// Period and Zone are the window of Calendar; a nil Zone is UTC. Other
	// kinds have none.
	Period Period
	Zone   *time.Location

	// Resolution is what times are multiples of, when they were floored to
	// it, as replay does with the seconds of a log: Sliding, Weighted and
	// TwoBucket then know better when a slot has left. 0 means nanoseconds.
	Resolution time.Duration
}

// validate returns an error that names the bad field, its value and what is
// allowed.
func (c *Config) validate() error {
	switch {
	case c.Algorithm >= numAlgorithms:
		return fmt.Errorf("kind number is %d; allowed is 0 (%v) to %d (%v)", c.Algorithm, Algorithm(0), numAlgorithms-1, numAlgorithms-1)
	case c.N > c.maxN():
		return fmt.Errorf("limit is %d; %v allows at most %d", c.N, c.Algorithm, c.maxN())
	case c.Algorithm != Calendar && (c.Span < time.Millisecond || c.Span > MaxSpan || c.Span%time.Millisecond != 0):
		return fmt.Errorf("span is %v; allowed is whole milliseconds from 1ms to %v", c.Span, MaxSpan)
	case c.Algorithm == Calendar && (c.Period == 0 || c.Period >= numPeriods):
		return fmt.Errorf("period is %v; allowed for %v is second, minute, hour, day, week, month", c.Period, c.Algorithm)
	case c.Algorithm != Calendar && c.Period != 0:
		return fmt.Errorf("period is %v; only %v has one, and %v has a span", c.Period, Calendar, c.Algorithm)
	case c.Algorithm != Calendar && c.Zone != nil:
		return fmt.Errorf("zone is %v; only %v has one", c.Zone, Calendar)
	case c.Resolution < 0 || c.Resolution > MaxSpan:
		return fmt.Errorf("resolution is %v; allowed is 0 (nanoseconds) to %v", c.Resolution, MaxSpan)
	case !c.Algorithm.level() && c.Burst != 0:
		return fmt.Errorf("burst is %d; %v has none, only %v, %v and %v have", c.Burst, c.Algorithm, GCRA, TokenBucket, LeakyBucket)
	case c.Algorithm.level() && c.N > 0 && c.Burst > c.maxBurst():
		return fmt.Errorf("burst is %d; at %d in %v it would take more than %v to drain: allowed is at most %d", c.Burst, c.N, c.Span, MaxSpan, c.maxBurst())
	}
	return nil
}

func (c *Config) maxN() uint64 {
	switch {
	case c.Algorithm == Exact || c.Algorithm == InFlight:
		return MaxLog
	case c.Algorithm.ringed():
		return MaxSlot
	}
	return MaxN
}

// maxBurst returns the largest Burst that drains within MaxSpan, but no less
// than N.
func (c *Config) maxBurst() uint64 {
	hi, lo := bits.Mul64(c.N, uint64(MaxSpan))
	if hi >= uint64(c.Span) {
		return MaxN
	}
	q, _ := bits.Div64(hi, lo, uint64(c.Span))
	return min(q, MaxN)
}
