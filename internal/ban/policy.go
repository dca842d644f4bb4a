package ban

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// A Policy says when a rule bans a key, and for how long. It has the fields of
// ratelimit.Ban, which documents them.
type Policy struct {
	After    uint64
	Of       Cause
	Span     time.Duration
	For      time.Duration
	Factor   float64
	Steps    []time.Duration
	Max      time.Duration
	Jitter   float64
	Extend   bool
	Remember time.Duration
}

// A Cause is what a rule counts toward a ban.
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
	// MaxSteps is the largest number of Steps.
	MaxSteps = 64

	// MaxAfter is the largest After.
	MaxAfter = 65_535

	// MaxSpan is the longest ban, and the longest time for which one is remembered.
	MaxSpan = 10 * 365 * 24 * time.Hour

	// DefaultRemember is how long bans are remembered that no Policy governs.
	DefaultRemember = 24 * time.Hour

	maxFactor = 1000
)

// Validate returns an error that names the first bad value and what it must be.
func (p *Policy) Validate() error {
	if p.After > MaxAfter {
		return fmt.Errorf("ban: after: %d: must be at most %d", p.After, MaxAfter)
	}
	if p.Of > Refusals {
		return fmt.Errorf("ban: cause number: %d: must be Hits or Refusals", p.Of)
	}
	if err := validateSpan("span", p.Span); err != nil {
		return err
	}
	if err := p.validateLengths(); err != nil {
		return err
	}
	if !(p.Jitter >= 0 && p.Jitter <= 1) {
		return fmt.Errorf("ban: jitter: %v: must be 0 to 1", p.Jitter)
	}
	if err := p.validateMax(); err != nil {
		return err
	}
	if p.Remember != 0 {
		return validateSpan("remember", p.Remember)
	}
	return nil
}

func validateSpan(what string, d time.Duration) error {
	if d < time.Millisecond || d > MaxSpan || d%time.Millisecond != 0 {
		return fmt.Errorf("ban: %s: %v: must be whole milliseconds from 1ms to %v", what, d, MaxSpan)
	}
	return nil
}

// validateLengths checks For and Factor, or Steps.
func (p *Policy) validateLengths() error {
	if len(p.Steps) == 0 {
		if err := validateSpan("for", p.For); err != nil {
			return err
		}
		if p.Factor != 0 && !(p.Factor >= 1 && p.Factor <= maxFactor) {
			return fmt.Errorf("ban: factor: %v: must be 1 to %d", p.Factor, maxFactor)
		}
		return nil
	}
	if len(p.Steps) > MaxSteps {
		return fmt.Errorf("ban: steps: %d: must be at most %d", len(p.Steps), MaxSteps)
	}
	if p.Factor != 0 {
		return fmt.Errorf("ban: factor: %v: must be 0 with steps", p.Factor)
	}
	if p.For != 0 && p.For != p.Steps[0] {
		return fmt.Errorf("ban: for: %v: must be 0 with steps, or the first of them, %v", p.For, p.Steps[0])
	}
	for i, d := range p.Steps {
		if err := validateSpan(fmt.Sprintf("step %d", i+1), d); err != nil {
			return err
		}
	}
	return nil
}

// validateMax checks that the first ban is no longer than the longest, with jitter.
func (p *Policy) validateMax() error {
	first := p.For
	if len(p.Steps) > 0 {
		first = p.Steps[0]
	}
	if p.Max != 0 {
		if err := validateSpan("max", p.Max); err != nil {
			return err
		}
		if p.Max < first {
			return fmt.Errorf("ban: max: %v: must be at least the first ban, %v", p.Max, first)
		}
	}
	if most := p.most(); most < first {
		return fmt.Errorf("ban: for: %v: must be at most %v: with a jitter of %v it would be longer than the longest, %v",
			first, most, p.Jitter, p.Longest())
	}
	return nil
}

// Duration returns how long the ban lasts that follows that many earlier ones, to the
// nearest millisecond and without jitter.
func (p *Policy) Duration(earlier int) time.Duration {
	most := p.most()
	earlier = max(earlier, 0)
	if n := len(p.Steps); n > 0 {
		return min(p.Steps[min(earlier, n-1)], most)
	}
	if p.Factor <= 1 {
		return min(p.For, most)
	}
	d := float64(p.For) * math.Pow(p.Factor, float64(earlier))
	if d >= float64(most) {
		return most
	}
	return time.Duration(d).Round(time.Millisecond)
}

// Longest returns Max or its default.
func (p *Policy) Longest() time.Duration { return cmp.Or(p.Max, MaxSpan) }

// Remembered returns Remember or its default.
func (p *Policy) Remembered() time.Duration { return cmp.Or(p.Remember, DefaultRemember) }

// most returns the longest ban without jitter.
func (p *Policy) most() time.Duration {
	if p.Jitter == 0 {
		return p.Longest()
	}
	return time.Duration(float64(p.Longest()) / (1 + p.Jitter)).Truncate(time.Millisecond)
}
