package hotkey

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/lately-go/lately/match"
)

// A Rule says which events are counted, by which key, and when a key is hot.
type Rule struct {
	// Name identifies the rule in its Set. Required.
	Name string

	// Key is what events are counted by. An event that lacks it is not counted.
	// Required.
	Key match.Key

	// When selects the events; the zero When selects all.
	When match.When

	// Threshold is T: the T-th event of a key in (t-Span, t] makes it hot.
	// From 1 to MaxThreshold.
	Threshold uint64

	// Span is the length of the window, in whole milliseconds from 1 ms to
	// MaxSpan.
	Span time.Duration

	// Hold is how long a key stays hot, from the event that made it hot, in
	// whole milliseconds up to MaxSpan. 0 means Span.
	Hold time.Duration
}

const (
	// MaxThreshold is the largest Threshold. A key then takes up to 8 MiB.
	MaxThreshold = 1 << 20

	// MaxSpan is the longest Span and Hold: ten years.
	MaxSpan = 10 * 365 * 24 * time.Hour
)

// validate returns an error that names the first value that is wrong.
func (r *Rule) validate() error {
	switch {
	case r.Name == "":
		return errors.New("name: missing")
	case len(r.Key.Fields()) == 0:
		return errors.New("key: missing: must be a field or a list of fields")
	case r.Threshold < 1 || r.Threshold > MaxThreshold:
		return fmt.Errorf("threshold: %d: must be 1 to %d", r.Threshold, MaxThreshold)
	}
	return cmp.Or(validateSpan("span", r.Span), validateSpan("hold", r.hold()))
}

func validateSpan(what string, d time.Duration) error {
	if d < time.Millisecond || d > MaxSpan || d%time.Millisecond != 0 {
		return fmt.Errorf("%s: %v: must be whole milliseconds from 1ms to %v", what, d, MaxSpan)
	}
	return nil
}

// hold returns Hold or its default.
func (r *Rule) hold() time.Duration { return cmp.Or(r.Hold, r.Span) }
