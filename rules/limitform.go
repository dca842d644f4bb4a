package rules

import (
	"fmt"
	"strings"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A limitForm is how a limit is written. Each algorithm has its own, so that a
// limit means what it says.
type limitForm uint8

const (
	perSpan   limitForm = iota // 60 per 1m
	withBurst                  // 60 per 1m burst 10
	perPeriod                  // 1000 per day
	atOnce                     // 20 at once for 30s
	noForm
)

// formTexts is what is said to be allowed.
var formTexts = [...]string{
	perSpan:   `"N per DURATION", such as "60 per 1m"`,
	withBurst: `"N per DURATION" or "N per DURATION burst B", such as "60 per 1m burst 10"`,
	perPeriod: `"N per PERIOD", such as "1000 per day"; a period is a second, minute, hour, day, week or month`,
	atOnce:    `"N at once for DURATION", such as "20 at once for 30s"`,
}

// formOwners is whose forms those are that not every algorithm has.
var formOwners = [...]string{
	withBurst: "algorithms gcra, token-bucket and leaky-bucket",
	perPeriod: "algorithm calendar",
	atOnce:    "algorithm in-flight",
}

// formOf returns the form of a's limits. A limit without a burst is of the form
// withBurst, too.
func formOf(a ratelimit.Algorithm) limitForm {
	switch a {
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		return withBurst
	case ratelimit.Calendar:
		return perPeriod
	case ratelimit.InFlight:
		return atOnce
	}
	return perSpan
}

// periods is the spans that a limit of algorithm calendar may name its period
// by.
var periods = map[time.Duration]ratelimit.Period{
	time.Second: ratelimit.PerSecond, time.Minute: ratelimit.PerMinute, time.Hour: ratelimit.PerHour,
	day: ratelimit.PerDay, week: ratelimit.PerWeek,
}

// ParseLimit parses a limit as a rules file has it for algorithm a: "60 per 1m",
// "60 per 1m burst 10", "1000 per day" or "20 at once for 30s". The error says
// which of them a has.
func ParseLimit(s string, a ratelimit.Algorithm) (ratelimit.Limit, error) {
	l, form, problem := parseLimit(s)
	if problem == "" {
		problem = fit(&l, form, a)
	}
	if problem != "" {
		return ratelimit.Limit{}, fmt.Errorf("limit is %q%s", s, problem)
	}
	if err := l.Validate(a); err != nil {
		return ratelimit.Limit{}, err
	}
	return l, nil
}

// parseLimit parses a limit of any form. To have none is no problem yet: fit
// knows what is allowed.
func parseLimit(s string) (l ratelimit.Limit, form limitForm, problem string) {
	w := strings.Fields(s)
	switch {
	case len(w) == 3 && w[1] == "per":
		if p, err := ratelimit.PeriodNamed(w[2]); err == nil {
			l.Per = p
			l.N, problem = parsePart("count", w[0])
			return l, perPeriod, problem
		}
		l.N, l.Span, problem = parsePair(w[0], w[2])
		return l, perSpan, problem
	case len(w) == 5 && w[1] == "per" && w[3] == "burst":
		if l.N, l.Span, problem = parsePair(w[0], w[2]); problem == "" {
			l.Burst, problem = parsePart("burst", w[4])
		}
		if problem == "" && l.Burst == 0 {
			problem = `; its burst is "0"; allowed is 1 or more, or no burst, which is one as large as the count`
		}
		return l, withBurst, problem
	case len(w) == 5 && w[1] == "at" && w[2] == "once" && w[3] == "for":
		l.N, l.Span, problem = parsePair(w[0], w[4])
		return l, atOnce, problem
	}
	return l, noForm, ""
}

// fit says why a limit of that form is none of algorithm a, or makes it what a
// takes it for: a span of calendar's is a period.
func fit(l *ratelimit.Limit, form limitForm, a ratelimit.Algorithm) (problem string) {
	if p, ok := periods[l.Span]; ok && a == ratelimit.Calendar && form == perSpan {
		l.Per, l.Span, form = p, 0, perPeriod
	}
	own := formOf(a)
	switch {
	case form == own || form == perSpan && own == withBurst:
		return ""
	case form == noForm || form == perSpan:
		return "; allowed is " + formTexts[own]
	}
	return fmt.Sprintf(", a form of %s; allowed for %s is %s", formOwners[form], a, formTexts[own])
}
