package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// compare complains if the answer to r is not v.
func (s *session) compare(r *request, v answer) {
	if r.Now != v.at {
		s.broken("the request was judged at %+d ns, want %+d ns", r.Now-s.base, v.at-s.base)
	}
	for i := range r.Subjects {
		got, want := r.Subjects[i].Outcome, v.outcomes[i]
		if !v.allowed {
			got.Delay, want.Delay = 0, 0 // there is nothing to wait for
		}
		if diff := s.differs(v.at, r.Subjects[i].N, got, want); diff != "" {
			s.broken("rule %d: %s\\ngot  %+v\\nwant %+v", want.Rule, diff, got, want.Outcome)
		}
	}
	if !r.Answer { // nothing waits
		s.retryIsTrue(r, v)
	}
}

// differs returns how got differs from want for an event that brings n and was judged at that time, or "".
func (s *session) differs(at int64, n uint64, got Outcome, want outcome) string {
	rule := s.model.set.Rules()[want.Rule]
	if slices.Contains(want.tied, got.LimitIndex) && !want.Banned && !want.Started && want.Limit == mostFor(rule.Limits[want.LimitIndex], n) {
		want.LimitIndex, want.Limit = got.LimitIndex, mostFor(rule.Limits[got.LimitIndex], n)
	}
	right := got
	right.Rule, right.Refused = want.Rule, want.Refused
	if !want.struck { // else it is unspecified what a peek returns of the ban
		right.Banned, right.Started, right.Skipped, right.Charged = want.Banned, want.Started, want.Skipped, want.Charged
	}
	counted := !want.struck && !want.Skipped
	if counted {
		right.Remaining = want.Remaining
		if !want.Banned {
			right.Limit, right.LimitIndex = want.Limit, want.LimitIndex
		}
		if !got.BannedUntil.Equal(want.BannedUntil) {
			right.BannedUntil = want.BannedUntil
		}
		if s.unlike(got.Delay, want.Delay) {
			right.Delay = want.Delay
		}
	}
	switch {
	case got != right:
		return "the outcome differs"
	case !counted, len(rule.Limits) > 0 && rule.Ban != nil: // ResetAfter may be that of either
		return ""
	case got.ResetAfter < 0 || !want.expired(at+int64(got.ResetAfter)):
		return "not all has expired after ResetAfter"
	case got.ResetAfter > 0 && want.expired(at+max(int64(got.ResetAfter-s.config.Resolution), 0)):
		return fmt.Sprintf("all has expired %v before ResetAfter", s.config.Resolution)
	}
	return ""
}

// unlike reports whether a waiting time is not the one wanted, or longer by less
// than the resolution.
func (s *session) unlike(got, want time.Duration) bool {
	return got < want || got >= want+s.config.Resolution
}

// retryIsTrue complains if the waiting time of the outcomes is not the shortest
// after which a single event is allowed.
func (s *session) retryIsTrue(r *request, v answer) {
	wait := s.wait(r)
	hopeless := slices.ContainsFunc(r.Subjects, func(sub subject) bool {
		rule := s.model.set.Rules()[sub.Outcome.Rule]
		return !rule.Shadow && slices.ContainsFunc(rule.Limits, func(l ratelimit.Limit) bool { return r.Cost > mostFor(l, sub.N) })
	})
	switch {
	case v.allowed:
		if wait != 0 {
			s.broken("it was allowed; RetryAfter is %v, want 0", wait)
		}
		return
	case hopeless:
		if wait != ratelimit.Never {
			s.broken("its cost is above a limit; RetryAfter is %v, want Never", wait)
		}
		return
	case r.Refused && wait == 0:
		if !s.allows(r, v.at) {
			s.broken("RetryAfter is 0, but its own rules refuse the event")
		}
	case !s.allows(r, v.at+never): // as under a ban after 0 hits
		if wait == 0 {
			s.broken("it was refused; RetryAfter is 0")
		}
	case wait < 0, wait == ratelimit.Never:
		s.broken("RetryAfter is %v, want a time to wait", wait)
	case !s.allows(r, v.at+int64(wait)):
		s.broken("RetryAfter is %v, but the event is refused then", wait)
	case s.allows(r, v.at+int64(wait-s.config.Resolution)):
		s.broken("RetryAfter is %v, but the event is allowed %v earlier", wait, s.config.Resolution)
	}
}

// wait returns the longest waiting time of the outcomes of r.
func (s *session) wait(r *request) (wait time.Duration) {
	for i := range r.Subjects {
		o := &r.Subjects[i].Outcome
		if s.model.set.Rules()[o.Rule].Shadow {
			continue
		}
		if o.RetryAfter == ratelimit.Never {
			return ratelimit.Never
		}
		wait = max(wait, o.RetryAfter)
	}
	return wait
}

// allows reports whether the rules of the subjects of r would allow its event at t, if nothing came
// in between.
func (s *session) allows(r *request, t int64) bool {
	then := *r
	then.Now, then.Peek, then.Refused = t, true, false
	return s.model.judge(&then).allowed
}

// allowed reports whether no enforced rule refuses r.
func allowed(r *request) bool {
	return !slices.ContainsFunc(r.Subjects, func(s subject) bool {
		return s.Outcome.Refused && !r.Set.Rules()[s.Outcome.Rule].Shadow
	})
}
