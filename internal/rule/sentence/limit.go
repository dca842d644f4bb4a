package sentence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/ratelimit"
)

// Limit returns the meaning of r as sentences that follow its name: the limit,
// the consequence of exceeding it, and settings that differ from the defaults.
func Limit(r *ratelimit.Rule) string {
	s := sentence{}
	who := forRequests(r.When) + article(keyNoun(r.Key))
	if len(r.Limits) > 0 {
		s.limits(who, r)
	}
	if r.Ban != nil {
		s.ban(who, r)
	}
	if when.NeedsAnswer(&r.When) {
		s.add("It counts answers: those in logs, those of handlers in middleware for HTTP, and those that services and proxies report by OUTCOME.")
	}
	if r.Shadow {
		s.add("The rule is a shadow: it reports, and refuses nothing.")
	}
	switch r.OnStoreFailure {
	case ratelimit.FailOpen:
		s.add("While the store is unavailable, requests are allowed.")
	case ratelimit.FailClosed:
		s.add("While the store is unavailable, requests are refused.")
	}
	return r.Name + ": " + strings.Join(s, " ")
}

// A sentence is the sentences about one rule.
type sentence []string

func (s *sentence) add(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

// limits adds what who may do under r, which request is refused, and how requests
// are counted.
func (s *sentence) limits(who string, r *ratelimit.Rule) {
	var may, refused []string
	for _, l := range r.Limits {
		if l.N == 0 && l.AtMost == 0 && r.Adapt == nil {
			s.add("%s may make no requests.", who)
			return
		}
		one, other := limitWords(r.Algorithm, l, len(r.Limits))
		if l.AtMost > 0 {
			one, other = one+dataWords(r, l), "what is more"
		}
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
	text := fmt.Sprintf("%s may %s %s", who, verb, rulevalue.Join(may, "and"))
	if len(refused) > 0 {
		text += "; " + Subject(refused) + " refused"
	}
	s.add("%s.", text)
	s.counting(r)
}

// limitWords returns what l, one of several limits, allows under a, and which request is
// refused, or "" if no single request can be named.
func limitWords(a ratelimit.Algorithm, l ratelimit.Limit, of int) (may, refused string) {
	span, next := rulevalue.FormatDuration(l.Span), ordinal(l.N+1)
	requests, atOnce, served := Count(l.N, "request"), Count(cmp.Or(l.Burst, l.N), "request"), fmt.Sprintf("%d per %s", l.N, span)
	switch a {
	case ratelimit.TwoBucket:
		return "about " + requests + " per " + span, ""
	case ratelimit.GCRA:
		return atOnce + " at once" + aside("then evenly "+served, of), "what comes sooner"
	case ratelimit.LeakyBucket:
		return atOnce + aside("served at "+served, of), "what finds the queue full"
	case ratelimit.Fixed:
		return fmt.Sprintf("%s in the %s from the first on", requests, span), "the " + next + " in that " + span
	case ratelimit.Calendar:
		return requests + " per " + rulevalue.PeriodOf(l).String(), "the " + next + " in " + article(rulevalue.PeriodOf(l).String())
	case ratelimit.InFlight:
		return requests + " under way at once" + aside("each believed to last at most "+span, of), "the " + next + " at once"
	}
	return requests + " per " + span, "the " + next + " within any " + span
}

// Plans may have a text about the number that they have for a field.
type Plans interface{ Words(field string) string }

// dataWords returns how the number of a limit that is data is found.
func dataWords(r *ratelimit.Rule, l ratelimit.Limit) string {
	says := "the request itself says"
	if by := r.LimitBy; by != nil {
		switch p := by.Plans.(type) {
		case nil:
			says = "the field " + by.Field + " says"
		case Plans:
			says = p.Words(by.Field)
		default:
			says = "the plan of the field " + by.Field + " has"
		}
	}
	return fmt.Sprintf(", or as many as %s, at most %d", says, l.AtMost)
}

// aside returns s as an explanation of one of several elements of a list.
func aside(s string, of int) string {
	if of > 1 {
		return " (" + s + ")"
	}
	return ", " + s
}

// counting adds how the limits of r count, what they allow at worst, and what else
// differs from the defaults.
func (s *sentence) counting(r *ratelimit.Rule) {
	text := "The algorithm is " + r.Algorithm.String()
	if r.Algorithm == ratelimit.Calendar {
		text += ", in the time of " + cmp.Or(r.Zone, time.UTC).String()
	}
	if most := atWorst(r); most != "" {
		text += ": at worst " + most
	}
	if r.Algorithm != ratelimit.Sliding {
		s.add("%s.", text)
	}
	if late := lateness(r); late != "" {
		s.add("A refusal may last up to %s longer than needed.", late)
	}
	if r.Adapt != nil {
		s.add("%s", adaptation(r.Adapt))
	}
	if r.CountRefused {
		s.add("Refused requests count too.")
	}
}

// atWorst returns how many requests r allows at worst, or "" if never more than N.
func atWorst(r *ratelimit.Rule) string {
	var worst []string
	more := false
	for _, l := range r.Limits {
		l.N = mostN(r, l)
		n := l.MaxAllowed(r.Algorithm)
		more = more || n > l.N
		switch {
		case r.Algorithm == ratelimit.Calendar:
			worst = append(worst, fmt.Sprintf("%d around the end of %s", n, article(rulevalue.PeriodOf(l).String())))
		case r.Algorithm == ratelimit.LeakyBucket:
			worst = append(worst, fmt.Sprintf("%d are queued within %s", n, rulevalue.FormatDuration(l.Span)))
		default:
			worst = append(worst, fmt.Sprintf("%d within %s", n, rulevalue.FormatDuration(l.Span)))
		}
	}
	if !more {
		return ""
	}
	return rulevalue.Join(worst, "and")
}

// lateness returns how much longer than needed the limits of r may refuse, or "" if they
// never do.
func lateness(r *ratelimit.Rule) string {
	var widths []string
	for _, l := range r.Limits {
		l.N = mostN(r, l)
		if late := l.MaxLate(r.Algorithm); late > 0 {
			widths = append(widths, rulevalue.FormatDuration(late+time.Millisecond-1)) // rounded up
		}
	}
	return rulevalue.Join(widths, "or")
}

// mostN returns the largest N that l, a limit of r, can have.
func mostN(r *ratelimit.Rule, l ratelimit.Limit) uint64 {
	if r.Adapt == nil {
		return max(l.N, l.AtMost)
	}
	n := r.Adapt.Above
	for _, s := range r.Adapt.Steps {
		n = max(n, s.Limit)
	}
	return n
}

// adaptation returns how the limits of a rule follow its traffic.
func adaptation(a *ratelimit.Adapt) string {
	var rows []string
	for i, s := range a.Steps {
		unit := ""
		if i == 0 {
			unit = " a second"
		}
		rows = append(rows, fmt.Sprintf("%d below %s%s", s.Limit, number(s.Below), unit))
	}
	s := fmt.Sprintf("The number follows the rule's traffic, all keys together, averaged over %s: %s, else %d",
		rulevalue.FormatDuration(cmp.Or(a.Span, time.Minute)), strings.Join(rows, ", "), a.Above)
	switch {
	case a.Smooth != 0:
		s += "; it moves smoothly, most of the way in " + rulevalue.FormatDuration(a.Smooth)
	case a.Hysteresis < 0:
		s += "; it goes back at once"
	case a.Hysteresis > 0:
		s += fmt.Sprintf("; it goes back when the traffic is %s lower", percent(a.Hysteresis))
	}
	return s + "."
}

// ban adds what starts a ban of who under r, and how long bans last.
func (s *sentence) ban(who string, r *ratelimit.Rule) {
	b := r.Ban
	lasts := lengths(b) + growth(b)
	switch {
	case len(r.Limits) == 0:
		s.add("%s with %s is banned for %s.", who, tooMany(b), lasts)
	case b.After == 0:
		s.add("%s bans it for %s.", upperFirst(tooMany(b)), lasts)
	default:
		s.add("%s ban it for %s.", upperFirst(tooMany(b)), lasts)
	}
	if b.Extend {
		s.add("Every hit during a ban starts it again.")
	}
}

// tooMany returns what starts a ban.
func tooMany(b *ratelimit.Ban) string {
	what, of := "hit", ""
	switch b.Of {
	case ratelimit.Refusals:
		what = "refusal"
	case ratelimit.Distinct:
		what, of = "distinct value", " of "+b.Field
	}
	if b.After == 0 {
		return "any " + what + of
	}
	return "more than " + Count(b.After, what) + of + " in " + rulevalue.FormatDuration(b.Span)
}

// lengths returns how long bans last: each of a list, or the first.
func lengths(b *ratelimit.Ban) string {
	if len(b.Steps) == 0 {
		return rulevalue.FormatDuration(b.For)
	}
	s := rulevalue.FormatDuration(b.Steps[0])
	for i, d := range b.Steps[1:] {
		if i+2 < len(b.Steps) {
			s += fmt.Sprintf(", the %s time for %s", ordinal(uint64(i+2)), rulevalue.FormatDuration(d))
		} else {
			s += fmt.Sprintf(", from the %s time on for %s", ordinal(uint64(i+2)), rulevalue.FormatDuration(d))
		}
	}
	return s
}

// growth returns how further bans differ from the first.
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
		s += ", at most " + rulevalue.FormatDuration(b.Max)
	}
	if b.Remember != 0 {
		s += "; a ban is remembered for " + rulevalue.FormatDuration(b.Remember) + " after its end"
	}
	return s
}

// Lacking returns a sentence about the events that match a limit or ban and lack a field of
// its key, or "" if lacking is 0: "9,812 of 10,000 events had no api_key: the rule refused them".
// refused of the lacking events were refused.
func Lacking(r *ratelimit.Rule, lacking, refused, events uint64) string {
	if lacking == 0 {
		return ""
	}
	none := strings.ReplaceAll(strings.Join(r.Key.Fields(), " or no "), " | ", " and no ")
	refuses := "refused"
	if r.Shadow {
		refuses = "would have refused"
	}
	became := "did not judge them"
	switch {
	case refused == lacking:
		became = refuses + " them"
	case refused > 0:
		became = fmt.Sprintf("%s %s of them, and did not judge the others", refuses, grouped(refused))
	}
	return fmt.Sprintf("%s of %s events had no %s: the rule %s", grouped(lacking), grouped(events), none, became)
}
