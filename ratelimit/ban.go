package ratelimit

import (
	"fmt"
	"math"
	"time"
)

// A Ban says when a rule bans a key, and for how long: after more than After
// hits (or refusals) in Span, the one too many is refused and starts a ban of
// For. fail2ban's maxretry m is After = m-1.
type Ban struct {
	After uint64        // at most MaxExact; 0 bans on the first
	Of    Cause         // what is counted: hits or refusals
	Span  time.Duration // whole milliseconds, from 1 ms to MaxSpan
	For   time.Duration // whole milliseconds, from 1 ms to MaxSpan

	// Factor makes each further ban of a key longer: the k-th lasts
	// For * Factor^(k-1), but no longer than Max. 0 and 1 keep it the same.
	Factor float64

	// Max is the longest ban; 0 is MaxSpan.
	Max time.Duration

	// Remember is how long after the end of a ban it still counts as an
	// earlier one for Factor; 0 is 24 hours.
	Remember time.Duration
}

// A Cause is what a ban counts.
type Cause uint8

const (
	Hits     Cause = iota // every matching event
	Refusals              // every event that a limit of the rule refuses
)

// String returns "hits" or "refusals".
func (c Cause) String() string {
	if c == Refusals {
		return "refusals"
	}
	return "hits"
}

const (
	defaultRemember = 24 * time.Hour
	maxFactor       = 1000
)

// Validate returns an error that names the first bad value and what is allowed.
func (b *Ban) Validate() error {
	if b.After > MaxExact {
		return fmt.Errorf("ban after is %d; allowed is at most %d", b.After, MaxExact)
	}
	if b.Of > Refusals {
		return fmt.Errorf("ban cause number is %d; allowed is Hits or Refusals", b.Of)
	}
	if err := validateSpan("ban span", b.Span); err != nil {
		return err
	}
	if err := validateSpan("ban duration", b.For); err != nil {
		return err
	}
	if b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= maxFactor) {
		return fmt.Errorf("ban factor is %v; allowed is 1 to %d", b.Factor, maxFactor)
	}
	if b.Max != 0 {
		if err := validateSpan("longest ban", b.Max); err != nil {
			return err
		}
		if b.Max < b.For {
			return fmt.Errorf("longest ban %v is shorter than the first one, %v", b.Max, b.For)
		}
	}
	if b.Remember != 0 {
		return validateSpan("ban memory", b.Remember)
	}
	return nil
}

// Duration returns how long the ban lasts that follows that many earlier ones:
// For * Factor^earlier to the nearest millisecond, at most Max.
func (b *Ban) Duration(earlier int) time.Duration {
	longest := b.Max
	if longest == 0 {
		longest = MaxSpan
	}
	if b.Factor <= 1 {
		return min(b.For, longest)
	}
	d := float64(b.For) * math.Pow(b.Factor, float64(earlier))
	if d >= float64(longest) {
		return longest
	}
	return time.Duration(d).Round(time.Millisecond)
}

// remember returns Remember or its default.
func (b *Ban) remember() time.Duration {
	if b.Remember == 0 {
		return defaultRemember
	}
	return b.Remember
}

// Memory returns how long after an event the ban may still know of it: the
// span, the longest ban that can follow, and the time that this one then counts
// as an earlier one.
func (b *Ban) Memory() time.Duration {
	d := b.Span + b.Duration(0)
	if b.Factor > 1 {
		d = b.Span + b.Duration(math.MaxInt) + b.remember()
	}
	return d
}
