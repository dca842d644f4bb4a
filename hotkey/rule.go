package hotkey

import (
	"errors"
	"fmt"
	"time"

	"github.com/lately-go/lately/match"
)

// A Rule says which events it is about, by which key they are counted, and
// when a key is hot.
type Rule struct {
	// Name tells the rule from the others of its Set. Required.
	Name string

	// Key is what events are counted by. An event without it is not counted
	// by this rule. Required.
	Key match.Key

	// When says which events the rule is about; the zero When is all.
	When match.When

	// Threshold is T: the T-th event of a key in (t-Span, t] makes it hot.
	// From 1 to MaxThreshold.
	Threshold uint64

	// Span is the window, in whole milliseconds from 1 ms to MaxSpan.
	Span time.Duration

	// Hold is how long a key stays hot from the event that made it so, in
	// whole milliseconds up to MaxSpan. 0 means Span.
	Hold time.Duration
}

const (
	// MaxThreshold is the largest Threshold: a key then takes up to 8 MiB.
	MaxThreshold = 1 << 20

	// MaxSpan is the longest Span and Hold: ten years.
	MaxSpan = 10 * 365 * 24 * time.Hour
)

// Validate returns an error that names the first bad value and what is allowed.
func (r *Rule) Validate() error {
	if r.Name == "" {
		return errors.New("name is empty; every rule needs a name of its own")
	}
	if len(r.Key.Fields()) == 0 {
		return errors.New("key is missing; allowed is a field or a list of fields")
	}
	if r.Threshold < 1 || r.Threshold > MaxThreshold {
		return fmt.Errorf("threshold is %d; allowed is 1 to %d", r.Threshold, MaxThreshold)
	}
	if err := validateSpan("span", r.Span); err != nil {
		return err
	}
	if r.Hold == 0 {
		return nil
	}
	return validateSpan("hold", r.Hold)
}

func validateSpan(what string, d time.Duration) error {
	if d < time.Millisecond || d > MaxSpan || d%time.Millisecond != 0 {
		return fmt.Errorf("%s is %v; allowed is whole milliseconds from 1ms to %v", what, d, MaxSpan)
	}
	return nil
}

// hold returns Hold or its default.
func (r *Rule) hold() time.Duration {
	if r.Hold == 0 {
		return r.Span
	}
	return r.Hold
}
