package rules

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// LimitSentence returns what r means, in words, after its name: what is
// allowed, what follows, and whatever of the rule is not the default.
func LimitSentence(r *ratelimit.Rule) string {
	s := sentence{}
	subject := ofRequests(r.When) + article(keyNoun(r.Key))
	if len(r.Limits) > 0 {
		s.limits(subject, r)
	}
	if r.Ban != nil {
		s.ban(subject, r)
	}
	if r.Shadow {
		s.add("The rule is a shadow: it reports, and refuses nothing.")
	}
	switch r.OnStoreFailure {
	case ratelimit.FailOpen:
		s.add("While the store is away, requests are let through.")
	case ratelimit.FailClosed:
		s.add("While the store is away, requests are refused.")
	}
	return r.Name + ": " + strings.Join(s, " ")
}

// A sentence is the sentences about one rule.
type sentence []string

func (s *sentence) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

// limits adds what subject may do under r, which request is refused, and how
// that is counted.
func (s *sentence) limits(subject string, r *ratelimit.Rule) {
	var may, refused []string
	for _, l := range r.Limits {
		if l.N == 0 && r.Adapt == nil {
			s.add("%s may make no requests.", subject)
			return
		}
		one, other := limitWords(r.Algorithm, l, len(r.Limits))
		may = append(may, one)
		if other != "" && !slices.Contains(refused, other) {
			refused = append(refused, other)
		}
	}
	verb := "make"
	switch r.Algorithm {
	case ratelimit.InFlight:
		verb = "have"
	case ratelimit.LeakyBucket:
		verb = "queue"
	}
	text := fmt.Sprintf("%s may %s %s", subject, verb, join(may, "and"))
	switch len(refused) {
	case 0:
	case 1:
		text += "; " + refused[0] + " is refused"
	default:
		text += "; " + join(refused, "and") + " are refused"
	}
	s.add("%s.", text)
	s.counting(r)
}

// limitWords returns what l, one of so many, allows under a, and what is
// refused; "" where no single request can be named.
func limitWords(a ratelimit.Algorithm, l ratelimit.Limit, of int) (may, refused string) {
	span, next := FormatDuration(l.Span), ordinal(l.N+1)
	requests, burst := count(l.N, "request"), l.Burst
	if burst == 0 {
		burst = l.N
	}
	atOnce, served := count(burst, "request"), fmt.Sprintf("%d per %s", l.N, span)
	switch a {
	case ratelimit.Weighted, ratelimit.TwoBucket:
		return "about " + requests + " per " + span, ""
	case ratelimit.GCRA:
		return atOnce + " at once" + aside("then evenly "+served, of), "what comes sooner"
	case ratelimit.TokenBucket:
		return atOnce + " at once" + aside("regained at "+served, of), "what comes when none is left"
	case ratelimit.LeakyBucket:
		return atOnce + aside("served at "+served, of), "what finds the queue full"
	case ratelimit.Fixed:
		return fmt.Sprintf("%s in the %s from the first on", requests, span), "the " + next + " in that " + span
	case ratelimit.Calendar:
		period := periodOf(l)
		one := article(period.String())
		if period == ratelimit.PerHour {
			one = "an hour"
		}
		return requests + " per " + period.String(), "the " + next + " in " + one
	case ratelimit.InFlight:
		return requests + " under way at once" + aside("each believed to last at most "+span, of), "the " + next + " at once"
	}
	return requests + " per " + span, "the " + next + " within any " + span
}

// aside returns s as it follows one of so many words of a list.
func aside(s string, of int) string {
	if of > 1 {
		return " (" + s + ")"
	}
	return ", " + s
}

func periodOf(l ratelimit.Limit) ratelimit.Period {
	if l.Per != 0 {
		return l.Per
	}
	return periods[l.Span]
}

// counting adds how the limits of r count, as far as it is not the default.
func (s *sentence) counting(r *ratelimit.Rule) {
	switch r.Algorithm {
	case ratelimit.Sliding:
	case ratelimit.Weighted:
		s.add("The algorithm is weighted: at worst, a slot's worth more are let through.")
	case ratelimit.TwoBucket:
		s.add("The algorithm is two-bucket: at worst, nearly twice as many are let through.")
	case ratelimit.Calendar:
		zone := r.Zone
		if zone == nil {
			zone = time.UTC
		}
		s.add("The algorithm is calendar, in the time of %s.", zone)
	default:
		s.add("The algorithm is %s.", r.Algorithm)
	}
	if r.Adapt != nil {
		s.add("%s", adaptation(r.Adapt))
	}
	if r.CountRefused {
		s.add("Refused requests count too.")
	}
}

// adaptation says how the limits of a rule follow its traffic.
func adaptation(a *ratelimit.Adapt) string {
	var rows []string
	for i, s := range a.Steps {
		unit := ""
		if i == 0 {
			unit = " a second"
		}
		rows = append(rows, fmt.Sprintf("%d below %s%s", s.Limit, number(s.Below), unit))
	}
	span := a.Span
	if span == 0 {
		span = time.Minute
	}
	s := fmt.Sprintf("The number follows the rule's traffic, all keys together, averaged over %s: %s, else %d",
		FormatDuration(span), strings.Join(rows, ", "), a.Above)
	switch {
	case a.Smooth != 0:
		s += "; it moves smoothly, most of the way in " + FormatDuration(a.Smooth)
	case a.Hysteresis < 0:
		s += "; it goes back at once"
	case a.Hysteresis > 0:
		s += fmt.Sprintf("; it goes back when the traffic is %s lower", percent(a.Hysteresis))
	}
	return s + "."
}

// ban adds what starts a ban of subject under r, and how long bans last.
func (s *sentence) ban(subject string, r *ratelimit.Rule) {
	b := r.Ban
	lasts := lengths(b) + growth(b)
	switch {
	case len(r.Limits) == 0:
		s.add("%s with %s is banned for %s.", subject, tooMany(b), lasts)
	case b.After == 0:
		s.add("%s bans it for %s.", upperFirst(tooMany(b)), lasts)
	default:
		s.add("%s ban it for %s.", upperFirst(tooMany(b)), lasts)
	}
	if b.Extend {
		s.add("Every hit during a ban starts it anew.")
	}
}

// tooMany says what starts a ban.
func tooMany(b *ratelimit.Ban) string {
	what := "hit"
	if b.Of == ratelimit.Refusals {
		what = "refusal"
	}
	if b.After == 0 {
		return "any " + what
	}
	return "more than " + count(b.After, what) + " in " + FormatDuration(b.Span)
}

// lengths says how long bans last: each of a list, or the first.
func lengths(b *ratelimit.Ban) string {
	if len(b.Steps) == 0 {
		return FormatDuration(b.For)
	}
	s := FormatDuration(b.Steps[0])
	for i, d := range b.Steps[1:] {
		if i+2 < len(b.Steps) {
			s += fmt.Sprintf(", the %s time for %s", ordinal(uint64(i+2)), FormatDuration(d))
		} else {
			s += fmt.Sprintf(", from the %s time on for %s", ordinal(uint64(i+2)), FormatDuration(d))
		}
	}
	return s
}

// growth says how further bans differ from the first.
func growth(b *ratelimit.Ban) string {
	s := ""
	switch {
	case b.Factor == 2:
		s = ", each further ban twice as long"
	case b.Factor > 1:
		s = ", each further ban " + number(b.Factor) + " times as long"
	}
	if b.Jitter > 0 {
		s += ", each up to " + percent(b.Jitter) + " longer by chance"
	}
	if s == "" && len(b.Steps) < 2 {
		return ""
	}
	if b.Max != 0 {
		s += ", at most " + FormatDuration(b.Max)
	}
	if b.Remember != 0 {
		s += "; a ban is forgotten " + FormatDuration(b.Remember) + " after its end"
	}
	return s
}
