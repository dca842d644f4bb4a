package ratelimit

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A Decision is the result for one event under all its rules.
//
// The Decision of a [match.Answer] is always Allowed, and has the counts of its rules. If the
// answer has begun a ban, Started is true and BannedUntil is the end of the ban.
type Decision struct {
	// Allowed reports whether the event is allowed.
	Allowed bool

	// Unmatched reports that no rule judged the event, because it lacks the rules' keys or their
	// conditions do not hold. It is then allowed. Unmatched is false for an event of a client on
	// the allow list, and for an event that shadow rules judged.
	Unmatched bool

	// Started says that this event started the ban that refuses it.
	Started bool

	// Rule is the name of the deciding rule: of a refusal the one that
	// refused, else the one with the least remaining. It is empty when no
	// rule matched or the client is on the allow list; such an event is
	// allowed, and the fields below are zero.
	Rule string

	// Missing is the field of the key of the deciding rule that the event lacks, if that is why
	// it is refused: its [match.Source] has Refuse. RetryAfter is [Never] then, and Limit is 0. The field of alternatives
	// is called "user | session".
	Missing string

	// Limit is how much the deciding rule's limit allows at once: N, or the
	// burst of the algorithms that have one; of a rule that only bans, and
	// during a ban, the number of hits or refusals before it begins. Of
	// several limits it is the one with the least left, and of such the one
	// that refuses for longest. Remaining is what is
	// left of Limit after this event, never above it.
	Limit, Remaining uint64

	// LimitIndex is which of the rule's Limits that is, from 0.
	LimitIndex int

	// RetryAfter is how long until an event like this one would be allowed
	// by all rules, if none came in between; 0 when it was allowed, and
	// [Never] when no waiting helps: its cost is above a limit, or it lacks a field.
	RetryAfter time.Duration

	// ResetAfter is how long until the deciding rule has forgotten all it
	// counted for this key.
	ResetAfter time.Duration

	// BannedUntil is when the ban ends that refused the event; the zero
	// time when no ban did.
	BannedUntil time.Time

	// Delay is how long an event that a [LeakyBucket] allowed has to wait
	// for its turn; the longest of all rules.
	Delay time.Duration

	// Err is [ErrCost] for an event whose cost is above the deciding
	// rule's limit. Of a [RuleLimiter] it is why no rule could judge the key.
	// Otherwise it is why the store could not decide, and the rules' fail
	// policies then made the decision: with the memory store, only for a key
	// that is too long.
	Err error
}

// ErrCost is the error of an event whose cost is above a limit, so that no waiting
// helps. Of a limit of 0, which refuses everything, it is an error of [Limiter.Wait]
// only.
var ErrCost = errors.New("ratelimit: cost above the limit")

// A costError is an ErrCost.
type costError struct {
	Rule        string
	Cost, Limit uint64
}

func (e *costError) Is(target error) bool { return target == ErrCost }

func (e *costError) Error() string {
	if e.Limit == 0 {
		return fmt.Sprintf("ratelimit: rule %q has a limit of 0, which refuses every event", e.Rule)
	}
	return fmt.Sprintf("ratelimit: cost is %d; rule %q allows at most %d", e.Cost, e.Rule, e.Limit)
}

// Never is the RetryAfter of an event that will not be allowed at any time: the longest duration.
const Never time.Duration = math.MaxInt64

// An Outcome is what one rule said of one event. Outcomes are for reports:
// what to do about the event stands in the [Decision].
type Outcome struct {
	Rule int // its number in the Set

	// Set is the rules that Rule is a number of: those that the event was
	// judged under, which an Update may have replaced since. A
	// Decision is about the same ones.
	Set *Set

	// Refused says that the rule refuses the event. Of a shadow rule it is
	// what it would have done.
	Refused bool

	// Banned says that a ban of the rule refuses it, Started that this very
	// event started that ban.
	Banned, Started bool

	// Skipped says that the rule neither judged nor counted the event,
	// because a ban held for it, or a refusal that a shared store had not to be asked
	// about. RetryAfter is set all the same.
	Skipped bool

	// Charged says that the event was allowed and the rule's limits were
	// charged its cost, be it 0: a [Reservation] can correct that. It is false
	// for an event that was refused, also if the rule counts refused ones, and
	// for one of cost 0 under InFlight, which is not under way.
	Charged bool

	// Missing is the field of the key that the event lacks, if the rule refuses it for that. Then the fields below but
	// RetryAfter, which is Never, are zero.
	Missing string

	Limit, Remaining uint64
	LimitIndex       int // see Decision
	RetryAfter       time.Duration
	ResetAfter       time.Duration
	Delay            time.Duration // see Decision
	BannedUntil      time.Time
}

// fold folds what the rules said of an event into its decision. An answer is allowed, but for what a ban
// says that holds or begins.
func fold(r *request) (d Decision) {
	var deciding *outcome
	var wait time.Duration
	for i := range r.Subjects {
		o := &r.Subjects[i].Outcome
		if r.Set.rules[o.Rule].Shadow {
			continue
		}
		wait = max(wait, o.RetryAfter)
		d.Delay = max(d.Delay, o.Delay)
		if !o.Skipped && (deciding == nil || decidesOver(o, deciding)) {
			deciding = o
		}
	}
	if deciding == nil {
		d.Allowed = true
		return d
	}
	d.Allowed, d.Started = !deciding.Refused || r.Answer, deciding.Started
	d.Rule = r.Set.rules[deciding.Rule].Name
	d.Limit, d.Remaining, d.LimitIndex = deciding.Limit, deciding.Remaining, deciding.LimitIndex
	d.ResetAfter, d.BannedUntil = deciding.ResetAfter, deciding.BannedUntil
	if r.Answer {
		d.Delay = 0
	}
	if d.Allowed {
		return d
	}
	d.RetryAfter, d.Delay = wait, 0
	if deciding.RetryAfter == Never && !deciding.Banned && 0 < deciding.Limit && deciding.Limit < r.Cost {
		d.Err = &costError{Rule: d.Rule, Cost: r.Cost, Limit: deciding.Limit}
	}
	return d
}

// decidesOver reports whether o decides rather than p, which is earlier in
// order and so decides when they are alike.
func decidesOver(o, p *outcome) bool {
	switch {
	case o.Refused != p.Refused:
		return o.Refused
	case !o.Refused:
		return o.Remaining < p.Remaining
	case o.Banned != p.Banned:
		return o.Banned
	}
	return o.RetryAfter > p.RetryAfter
}
