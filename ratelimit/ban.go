package ratelimit

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// A Ban says when a rule bans a key, and for how long: after more than After
// hits (or refusals) in Span, the one too many is refused and starts a ban of
// For. fail2ban's maxretry m is After = m-1.
//
// Bans of one key can grow, by Factor or along Steps: this is fail2ban's
// bantime.increment. Its formula with the factor 1 is Factor 2; its multipliers
// are Steps of bantime times each of them; its bantime.maxtime is Max.
type Ban struct {
	After uint64        // at most MaxExact; 0 bans on the first
	Of    Cause         // what is counted: hits or refusals
	Span  time.Duration // whole milliseconds, from 1 ms to MaxSpan
	For   time.Duration // whole milliseconds, from 1 ms to MaxSpan; 0 with Steps

	// Factor makes each further ban of a key longer: the k-th lasts
	// For * Factor^(k-1), but no longer than Max. 0 and 1 keep it the same.
	Factor float64

	// Steps lists how long the first ban of a key lasts, the second, and so
	// on; the last step is that of all further ones. At most MaxBanSteps of
	// them, each as For would be. It takes the place of For and Factor.
	Steps []time.Duration

	// Max is the longest ban; 0 is MaxSpan.
	Max time.Duration

	// Jitter makes each ban longer by a part of it between 0 and Jitter, so
	// that a net of clients banned together neither comes back together nor
	// knows when: from 0, which is none, to 1, which at most doubles it. No
	// ban is longer than Max for it: one that would be lasts between
	// Max / (1+Jitter) and Max. How much depends on the key, the number of
	// the ban and the seed of the store alone, so a replay repeats it.
	Jitter float64

	// Extend makes every hit during a ban that the rule began start the ban
	// anew: it then lasts from that hit for as long as it did from the first.
	// Otherwise hits during a ban change nothing.
	Extend bool

	// Remember is how long after the end of a ban it still counts as an
	// earlier one for Factor and Steps; 0 is 24 hours.
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

// MaxBanSteps is the largest number of Steps in a Ban.
const MaxBanSteps = 64

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
	if err := b.validateLengths(); err != nil {
		return err
	}
	if !(b.Jitter >= 0 && b.Jitter <= 1) {
		return fmt.Errorf("ban jitter is %v; allowed is 0 to 1", b.Jitter)
	}
	if err := b.validateMax(); err != nil {
		return err
	}
	if b.Remember != 0 {
		return validateSpan("ban memory", b.Remember)
	}
	return nil
}

// validateLengths checks what says how long bans last: For and Factor, or Steps.
func (b *Ban) validateLengths() error {
	if len(b.Steps) == 0 {
		if err := validateSpan("ban duration", b.For); err != nil {
			return err
		}
		if b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= maxFactor) {
			return fmt.Errorf("ban factor is %v; allowed is 1 to %d", b.Factor, maxFactor)
		}
		return nil
	}
	if len(b.Steps) > MaxBanSteps {
		return fmt.Errorf("ban has %d steps; allowed is at most %d", len(b.Steps), MaxBanSteps)
	}
	if b.Factor != 0 {
		return fmt.Errorf("ban has both steps and the factor %v; allowed is one of them", b.Factor)
	}
	if b.For != 0 && b.For != b.Steps[0] {
		return fmt.Errorf("ban duration is %v, but its first step %v; leave the duration out", b.For, b.Steps[0])
	}
	for i, d := range b.Steps {
		if err := validateSpan(fmt.Sprintf("ban step %d", i+1), d); err != nil {
			return err
		}
	}
	return nil
}

// validateMax checks that the first ban fits under the longest, jitter and all.
func (b *Ban) validateMax() error {
	first := b.first()
	if b.Max != 0 {
		if err := validateSpan("longest ban", b.Max); err != nil {
			return err
		}
		if b.Max < first {
			return fmt.Errorf("longest ban %v is shorter than the first one, %v", b.Max, first)
		}
	}
	if most := b.most(); most < first {
		return fmt.Errorf("the first ban, %v, would be longer than the longest, %v, with a jitter of %v; "+
			"allowed is a first ban of at most %v", first, b.longest(), b.Jitter, most)
	}
	return nil
}

// Duration returns how long the ban lasts that follows that many earlier ones,
// to the nearest millisecond and before Jitter makes it longer.
func (b *Ban) Duration(earlier int) time.Duration {
	most := b.most()
	earlier = max(earlier, 0)
	if n := len(b.Steps); n > 0 {
		return min(b.Steps[min(earlier, n-1)], most)
	}
	if b.Factor <= 1 {
		return min(b.For, most)
	}
	d := float64(b.For) * math.Pow(b.Factor, float64(earlier))
	if d >= float64(most) {
		return most
	}
	return time.Duration(d).Round(time.Millisecond)
}

// first returns the length of the first ban, if nothing caps it.
func (b *Ban) first() time.Duration {
	if len(b.Steps) > 0 {
		return b.Steps[0]
	}
	return b.For
}

// longest returns Max or its default.
func (b *Ban) longest() time.Duration {
	if b.Max == 0 {
		return MaxSpan
	}
	return b.Max
}

// most returns how long a ban can be before Jitter makes it longer.
func (b *Ban) most() time.Duration {
	if b.Jitter == 0 {
		return b.longest()
	}
	return time.Duration(float64(b.longest()) / (1 + b.Jitter)).Truncate(time.Millisecond)
}

// remember returns Remember or its default.
func (b *Ban) remember() time.Duration {
	if b.Remember == 0 {
		return defaultRemember
	}
	return b.Remember
}

// grows reports whether the length of a ban depends on how many there were.
func (b *Ban) grows() bool { return b.Factor > 1 || len(b.Steps) > 1 || b.Jitter > 0 }

// Memory returns how long after an event the ban may still act on it: the span,
// the longest ban that can follow, and if it makes a difference the time that
// this one then counts as an earlier one.
func (b *Ban) Memory() time.Duration {
	longest := b.Duration(0)
	switch {
	case len(b.Steps) > 0:
		longest = min(slices.Max(b.Steps), b.most())
	case b.Factor > 1:
		longest = b.Duration(math.MaxInt)
	}
	d := b.Span + longest + time.Duration(float64(longest)*b.Jitter)
	if b.grows() {
		d += b.remember()
	}
	return d
}
