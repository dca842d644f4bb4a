package ratelimit

import (
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/invalid"
	"github.com/lately-go/lately/match"
)

// A Rule limits or bans the keys of the events that it selects, or both.
type Rule struct {
	// Name identifies the rule in its Set and in its decisions. Required.
	Name string

	// Key extracts the key that events are counted by. An event without it is
	// not judged by this rule. Required.
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

// validate returns the invalid fields.
func (r *Rule) validate() (wrong invalid.Fields) {
	wrong.Check(r.Name != "", "name", invalid.Missing, "must be a name of its own for each rule")
	wrong.Check(len(r.Key.Fields()) > 0, "key", invalid.Missing, "must be a field or a list of fields")
	wrong.Check(r.OnStoreFailure < numFailPolicies, "on_store_failure", uint8(r.OnStoreFailure), "must be FailLocal, FailOpen or FailClosed")
	if wrong.Check(r.Algorithm.Known(), "algorithm", uint8(r.Algorithm), "must be Sliding to InFlight"); !r.Algorithm.Known() {
		return wrong
	}
	r.validateLimits(&wrong)
	wrong.Check(r.Zone == nil || r.Algorithm == Calendar, "zone", r.Zone, "must be left out with algorithm %s, or the algorithm must be calendar", r.Algorithm)
	wrong.Check(!r.CountRefused || r.Algorithm != InFlight, "count_refused", true, "must be left out with algorithm in-flight, where a refused event is never under way")
	if r.Adapt != nil {
		r.Adapt.validate(r, &wrong)
	}
	if r.Ban != nil {
		wrong = append(wrong, r.Ban.policy().Validate()...)
	}
	return wrong
}

// validateLimits adds what is wrong with the limits, and with a rule without any.
func (r *Rule) validateLimits(wrong *invalid.Fields) {
	varying := 0
	for i, l := range r.Limits {
		name := "limit"
		if len(r.Limits) > 1 {
			name = fmt.Sprintf("limit[%d]", i)
		}
		if l.validate(name, r.Algorithm, wrong); l.AtMost > 0 {
			varying++
		}
	}
	limited := len(r.Limits) > 0
	wrong.Check(limited || r.Ban != nil, "limit", invalid.Missing, "must be given, or a ban")
	wrong.Check(limited || r.Ban == nil || r.Ban.Of != Refusals, "limit", invalid.Missing, "must be given with a ban after refusals")
	wrong.Check(limited || r.Adapt == nil, "limit", invalid.Missing, "must be given with adapt")
	wrong.Check(varying <= 1, "limit", nil, "%d have AtMost: must be one", varying)
	wrong.Check(varying > 0 || r.LimitBy == nil, "at_most", invalid.Missing, "must be given by one limit with LimitBy")
}

// clone returns a copy of r that shares nothing with it that can change.
func (r *Rule) clone() *Rule {
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
	return &c
}

// distinct returns the field whose distinct values the ban counts, as a key; it is zero
// if the ban counts something else.
func (r *Rule) distinct(wrong *invalid.Fields) match.Key {
	if r.Ban == nil || r.Ban.Of != Distinct {
		return match.Key{}
	}
	k, err := match.NewKey(r.Key.Fold(), r.Ban.Field)
	wrong.CheckNil(err, "ban.after")
	wrong.Check(!slices.Contains(r.Key.Fields(), r.Ban.Field), "ban.after", nil, "distinct %s: the key has one value of it: must be another field", r.Ban.Field)
	return k
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
