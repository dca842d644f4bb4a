package hotkey

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/rule/invalid"
	"github.com/lately-go/lately/match"
)

// A Rule selects events, their key, and the threshold from which a key is hot.
type Rule struct {
	// Name identifies the rule in its Detector. Required.
	Name string

	// Key extracts the key that events are counted by. An event that lacks it
	// is not counted. Required.
	Key match.Key

	// When selects the events; the zero When selects all.
	When match.When

	// Threshold is T: the T-th event of a key in (t-Span, t] makes it hot.
	// From 1 to 2^30.
	Threshold uint64

	// Span is the length of the window, in whole milliseconds from 1 ms to
	// ten years of 365 days.
	Span time.Duration

	// Exact keeps the time of each event also for a Threshold above 128, up to 65,535.
	// A key then takes up to 8 bytes for each event in the span.
	Exact bool

	// Hold is the time for which a key stays hot, from the event that made it
	// hot, in whole milliseconds up to ten years. 0 means Span.
	Hold time.Duration

	// Always are keys that are always hot, and Never keys that are not counted,
	// in the form of [match.Key.Join].
	Always, Never []string

	// Cache bounds the values that a Cache keeps for the keys; nil means no Cache.
	Cache *CachePolicy
}

const maxThreshold = 1 << 30

// Validate returns an error with all that is wrong in rules: the rule, the field, its value
// and what it must be. [New] and [NewDetector] validate their rules.
func Validate(rules ...Rule) error {
	var wrong invalid.Fields
	names := make(map[string]bool, len(rules))
	for i := range rules {
		r := &rules[i]
		found := r.validate()
		found.Check(!names[r.Name], "name", nil, "must be unique among the rules")
		names[r.Name] = true
		_, err := r.When.Compile()
		found.CheckNil(err, "when")
		wrong = append(wrong, found.Of(i, r.Name)...)
	}
	if len(wrong) > 0 {
		return fmt.Errorf("hotkey: %w", wrong)
	}
	return nil
}

// validate returns the invalid fields.
func (r *Rule) validate() (wrong invalid.Fields) {
	wrong.Check(r.Name != "", "name", invalid.Missing, "must be given")
	wrong.Check(len(r.Key.Fields()) > 0, "key", invalid.Missing, "must be a field or a list of fields")
	wrong.Check(r.Threshold >= 1 && r.Threshold <= maxThreshold, "threshold", r.Threshold, "must be 1 to %d", maxThreshold)
	wrong.Check(!r.Exact || r.Threshold <= limit.MaxLog, "threshold", r.Threshold, "must be at most %d with exact", limit.MaxLog)
	wrong.Check(limit.ValidSpan(r.Span), "span", r.Span, limit.MustSpan)
	wrong.Check(limit.ValidSpan(r.hold()), "hold", r.hold(), limit.MustSpan)
	listed := func(key string) bool { return slices.Contains(r.Never, key) }
	wrong.Check(!slices.ContainsFunc(r.Always, listed), "never", nil, "must have no key that is in always, too")
	if c := r.Cache; c != nil {
		wrong.Check(limit.ValidSpan(c.TTL), "cache.ttl", c.TTL, limit.MustSpan)
		wrong.Check(c.MaxAge == 0 || c.MaxAge >= c.TTL && c.MaxAge <= maxSpan, "cache.max_age", c.MaxAge, "must be the ttl, %v, or longer, up to 87600h", c.TTL)
		wrong.Check(c.MaxBytes >= 0, "cache.max_bytes", c.MaxBytes, "must be 0 or more")
	}
	return wrong
}

// Fields returns the names of the event fields that r reads, sorted.
func (r *Rule) Fields() []string {
	names := append(keyvalue.Fields(r.Key), when.Fields(&r.When)...)
	slices.Sort(names)
	return slices.Compact(names)
}

// clone returns a copy of r that shares nothing with it.
func (r *Rule) clone() Rule {
	c := *r
	c.When, c.Always, c.Never = when.Clone(r.When), slices.Clone(r.Always), slices.Clone(r.Never)
	if r.Cache != nil {
		policy := *r.Cache
		c.Cache = &policy
	}
	return c
}

// hold returns Hold or its default.
func (r *Rule) hold() time.Duration { return cmp.Or(r.Hold, r.Span) }

// exact reports whether the times of events are kept.
func (r *Rule) exact() bool { return r.Exact || r.Threshold <= limit.SlidingExact }
