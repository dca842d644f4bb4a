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

	// Started reports that this event started the ban that refuses it.
	Started bool

	// Rule is the name of the deciding rule: the rule that refused the event,
	// or else the rule with the least remaining. It is empty when no rule
	// matched or the client is on the allow list; such an event is allowed, and
	// the fields below are zero.
	Rule string

	// Missing is the field of the key of the deciding rule that the event lacks, if the event
	// is refused for that, see Refuse of [match.Source]. RetryAfter is then [Never], and Limit
	// is 0. A field with alternatives is called "user | session".
	Missing string

	// Limit is the number that the deciding rule's limit allows at once: N, or
	// the burst if the algorithm has one. For a rule that only bans, and during
	// a ban, it is the number of hits or refusals before the ban. Among several
	// limits it is the one with the least remaining, then the one that refuses
	// for longest. Remaining is the part of Limit that is left after this
	// event.
	Limit, Remaining uint64

	// LimitIndex is the index of that limit in the rule's Limits.
	LimitIndex int

	// RetryAfter is the time until an event like this one is allowed by all
	// rules, if no other event comes before. It is 0 if the event was allowed,
	// and [Never] if its cost is above a limit or it lacks a field.
	RetryAfter time.Duration

	// ResetAfter is the time until the deciding rule has no events of this key
	// in its windows.
	ResetAfter time.Duration

	// BannedUntil is the end of the ban that refused the event; zero if no ban
	// did.
	BannedUntil time.Time

	// Delay is the time that an event allowed by a [LeakyBucket] must wait for
	// its turn, the longest of all rules.
	Delay time.Duration

	// Err is [ErrCost] for an event whose cost is above the deciding rule's
	// limit. From a [RuleLimiter] it can be the reason why no rule could judge
	// the key. Otherwise it is the error of the store, and the rules' fail
	// policies made the decision; the memory store has an error only for a key
	// that is too long.
	Err error
}

// ErrCost is the error for an event whose cost is above a limit, so that waiting
// does not help. For a limit of 0, which refuses everything, only [Limiter.Wait]
// returns it.
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

// An Outcome is the result for one event under one rule. Outcomes are for
// reports; the [Decision] determines what to do with the event.
type Outcome struct {
	Rule int // its number in the Set

	// Set is the Set that the event was judged under, which Rule is an index
	// of. An Update may have replaced it since.
	Set *Set

	// Refused reports that the rule refuses the event, or, for a shadow rule,
	// that it would.
	Refused bool

	// Banned reports that a ban of the rule refuses the event, Started that
	// this event started the ban.
	Banned, Started bool

	// Skipped reports that the rule neither judged nor counted the event,
	// because the key is banned, or because this process knew of a refusal and
	// did not call the shared store. RetryAfter is set.
	Skipped bool

	// Charged reports that the event was allowed and its cost was charged to
	// the rule's limits, even a cost of 0; a [Reservation] can correct the
	// charge. It is false for a refused event, even if the rule counts refused
	// events, and for a cost of 0 under InFlight.
	Charged bool

	// Missing is the field of the key that the event lacks, if the rule refuses it for that.
	// RetryAfter is then Never, and the other fields below are zero.
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
