package hotkey

import (
	"cmp"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/invalid"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/when"
	"github.com/lately-go/lately/match"
)

// A Rule selects events, their key, and the threshold from which a key is hot.
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

	// Exact keeps the time of each event also for a Threshold above ExactThreshold,
	// up to MaxExact. A key then takes up to 8 bytes for each event in the span.
	Exact bool

	// Hold is how long a key stays hot, from the event that made it hot, in
	// whole milliseconds up to MaxSpan. 0 means Span.
	Hold time.Duration

	// Always are keys that are always hot, and Never keys that are not counted,
	// in the form of [match.Key.Join].
	Always, Never []string

	// Cache bounds the values that a Cache keeps for the keys; nil means no Cache.
	Cache *CachePolicy
}

const (
	// MaxThreshold is the largest Threshold: 2^30.
	MaxThreshold = 1 << 30

	// ExactThreshold is the largest Threshold for which the times of events are kept:
	// 128. Above it they are counted in slots of a sixtieth of the span.
	ExactThreshold = 128

	// MaxExact is the largest Threshold of a rule that is Exact: 65,535.
	MaxExact = 1<<16 - 1

	// MaxSpan is the longest Span and Hold: ten years of 365 days.
	MaxSpan = 10 * 365 * 24 * time.Hour
)

// validate returns the invalid fields.
func (r *Rule) validate() (wrong invalid.Fields) {
	wrong.Check(r.Name != "", "name", invalid.Missing, "must be given")
	wrong.Check(len(r.Key.Fields()) > 0, "key", invalid.Missing, "must be a field or a list of fields")
	wrong.Check(r.Threshold >= 1 && r.Threshold <= MaxThreshold, "threshold", r.Threshold, "must be 1 to %d", MaxThreshold)
	wrong.Check(!r.Exact || r.Threshold <= MaxExact, "threshold", r.Threshold, "must be at most %d with exact", MaxExact)
	wrong.Check(limit.ValidSpan(r.Span), "span", r.Span, limit.MustSpan)
	wrong.Check(limit.ValidSpan(r.hold()), "hold", r.hold(), limit.MustSpan)
	listed := func(key string) bool { return slices.Contains(r.Never, key) }
	wrong.Check(!slices.ContainsFunc(r.Always, listed), "never", nil, "must have no key that is in always, too")
	if c := r.Cache; c != nil {
		wrong.Check(limit.ValidSpan(c.TTL), "cache.ttl", c.TTL, limit.MustSpan)
		wrong.Check(c.MaxAge == 0 || c.MaxAge >= c.TTL && c.MaxAge <= MaxSpan, "cache.max_age", c.MaxAge, "must be the ttl or longer, up to 87600h")
		wrong.Check(c.MaxBytes >= 0, "cache.max_bytes", c.MaxBytes, "must be 0 or more")
	}
	return wrong
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
func (r *Rule) exact() bool { return r.Exact || r.Threshold <= ExactThreshold }
