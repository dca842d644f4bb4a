package ratelimit

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/when"
	"github.com/lately-go/lately/match"
)

// A Rule limits or bans the keys of the events that it selects, or both.
type Rule struct {
	// Name identifies the rule in its Set and in its decisions. Required.
	Name string

	// Key is what events are counted by. An event without it is not judged
	// by this rule. Required.
	Key match.Key

	// When selects the events; the zero When selects all.
	When match.When

	// Limits are the limits of each key; an event must be within all of them. A
	// rule without limits only bans: it needs Ban.
	Limits []Limit

	// Algorithm counts the limits. A ban always counts exactly.
	Algorithm Algorithm

	// LimitBy, when not nil, takes N of the limit with AtMost from the event.
	LimitBy *LimitBy

	// Zone is the time zone of a Calendar limit; nil means UTC.
	Zone *time.Location

	// Adapt, when not nil, makes the limits follow the measured traffic of the
	// rule: it sets N of each limit.
	Adapt *Adapt

	// CountRefused makes refused events count toward the limits like allowed
	// ones: a client that keeps trying stays refused. Events during a ban are
	// never counted. It cannot be set for InFlight.
	CountRefused bool

	// Ban, when not nil, starts a ban after too many hits or refusals.
	Ban *Ban

	// Shadow makes the rule decide and report, but refuse nothing.
	Shadow bool

	// OnStoreFailure decides while the store cannot.
	OnStoreFailure FailPolicy
}

// validate returns an error that names the bad value and what is allowed.
func (r *Rule) validate() error {
	if r.Name == "" {
		return errors.New("name: missing: must be a name of its own for each rule")
	}
	if len(r.Key.Fields()) == 0 {
		return errors.New("key: missing: must be a field or a list of fields")
	}
	if len(r.Limits) == 0 && r.Ban == nil {
		return errors.New("the rule has neither a limit nor a ban")
	}
	if !r.Algorithm.Known() {
		return fmt.Errorf("algorithm: %d: must be Sliding to InFlight", r.Algorithm)
	}
	if r.OnStoreFailure >= numFailPolicies {
		return fmt.Errorf("fail policy: %d: must be FailLocal, FailOpen or FailClosed", r.OnStoreFailure)
	}
	for _, l := range r.Limits {
		if err := l.Validate(r.Algorithm); err != nil {
			return err
		}
	}
	if err := r.validateLimitBy(); err != nil {
		return err
	}
	if r.Zone != nil && r.Algorithm != Calendar {
		return fmt.Errorf("zone: %s: must be nil with %s", r.Zone, r.Algorithm)
	}
	if r.CountRefused && r.Algorithm == InFlight {
		return errors.New("refused events are to count, but with algorithm in-flight a refused event is never under way: CountRefused must be false")
	}
	if r.Adapt != nil {
		if err := r.Adapt.validate(r); err != nil {
			return err
		}
	}
	if r.Ban == nil {
		return nil
	}
	if r.Ban.Of == Refusals && len(r.Limits) == 0 {
		return errors.New("a ban after refusals needs a limit that refuses; this rule has none")
	}
	return r.Ban.Validate()
}

// clone returns a copy of r that shares nothing with it that can change.
func (r *Rule) clone() Rule {
	c := *r
	c.When, c.Limits = when.Clone(r.When), slices.Clone(r.Limits)
	if r.LimitBy != nil {
		by := *r.LimitBy
		c.LimitBy = &by
	}
	if r.Adapt != nil {
		adapt := *r.Adapt
		adapt.Steps = slices.Clone(adapt.Steps)
		c.Adapt = &adapt
	}
	if r.Ban != nil {
		ban := *r.Ban
		ban.Steps = slices.Clone(ban.Steps)
		c.Ban = &ban
	}
	return c
}

// distinct returns the field whose distinct values the ban counts, as a key; it is zero
// if the ban counts something else.
func (r *Rule) distinct() (match.Key, error) {
	if r.Ban == nil || r.Ban.Of != Distinct {
		return match.Key{}, nil
	}
	k, err := match.NewKey(r.Key.Fold(), r.Ban.Field)
	if err != nil {
		return k, fmt.Errorf("ban: field: %w", err)
	}
	if slices.Contains(r.Key.Fields(), r.Ban.Field) {
		return k, fmt.Errorf("ban: field: %q: is part of the key, which has one value of it: must be another field", r.Ban.Field)
	}
	return k, nil
}

// A FailPolicy is the decision of a rule while its store cannot decide. The
// memory store always can.
type FailPolicy uint8

const (
	FailLocal  FailPolicy = iota // decide in this process's memory, with its share of the limits; the default
	FailOpen                     // allow
	FailClosed                   // refuse
	numFailPolicies
)

var failPolicyNames = [numFailPolicies]string{"local", "open", "closed"}

// String returns the policy's name as in a rules file.
func (p FailPolicy) String() string {
	if p < numFailPolicies {
		return failPolicyNames[p]
	}
	return "policy?"
}
