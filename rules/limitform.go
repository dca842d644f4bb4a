package rules

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

// A limitForm is how a limit is written. Each algorithm has its own, so that a
// limit means what it says.
type limitForm uint8

const (
	perSpan   limitForm = iota // 60 per 1m
	withBurst                  // 60 per 1m burst 10; the burst may be left out
	perPeriod                  // 1000 per day
	atOnce                     // 20 at once for 30s
	noForm
)

// mustHave says, for each form, what a limit must be.
var mustHave = [...]string{
	perSpan:   `"N per DURATION", such as "60 per 1m"`,
	withBurst: `"N per DURATION" or "N per DURATION burst B", such as "60 per 1m burst 10"`,
	perPeriod: `"N per PERIOD", such as "1000 per day"; a period is a second, minute, hour, day, week or month`,
	atOnce:    `"N at once for DURATION", such as "20 at once for 30s"`,
}

// formOf returns the form of a's limits.
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

// ParseLimit parses a limit that does not depend on an algorithm: "60 per 1m", "60 per
// minute", "60/1m" or "60/minute". Named periods are in Per; for any other algorithm than
// calendar [FixedSpan] makes spans of them. The error does not have s.
func ParseLimit(s string) (ratelimit.Limit, error) {
	l, form, err := parseAnyLimit(s)
	if err == nil && form != perSpan && form != perPeriod {
		err = errors.New("must be " + mustHave[perSpan])
	}
	return l, err
}

// FixedSpan returns l with a span instead of its named period, and reports false if that
// has no fixed length: a month.
func FixedSpan(l ratelimit.Limit) (ratelimit.Limit, bool) {
	if l.Per == ratelimit.PerMonth {
		return l, false
	}
	l.Span, l.Per = l.Window(), 0
	return l, true
}

// parseLimit parses a limit of algorithm a: "60 per 1m", "60 per 1m burst 10", "1000
// per day" or "20 at once for 30s".
func parseLimit(s string, a ratelimit.Algorithm) (ratelimit.Limit, error) {
	l, form, err := parseAnyLimit(s)
	if err != nil {
		return ratelimit.Limit{}, err
	}
	fixed := true
	if a == ratelimit.Calendar {
		if p := periodOf(l); p != 0 && form == perSpan {
			l.Per, l.Span, form = p, 0, perPeriod
		}
	} else if l.Per != 0 {
		if l, fixed = FixedSpan(l); fixed && form == perPeriod {
			form = perSpan
		}
	}
	if own := formOf(a); !fixed || form != own && (form != perSpan || own != withBurst) {
		return ratelimit.Limit{}, fmt.Errorf("must be, for algorithm %s, %s", a, mustHave[own])
	}
	return l, nil
}

// periodOf returns the period of a limit of the calendar, or 0.
func periodOf(l ratelimit.Limit) ratelimit.Period {
	return cmp.Or(l.Per, ratelimit.Period(limit.PeriodOf(l.Span)))
}

// parseAnyLimit parses a limit of any form. A slash stands for "per".
func parseAnyLimit(s string) (l ratelimit.Limit, form limitForm, err error) {
	w := strings.Fields(strings.Replace(s, "/", " per ", 1))
	switch {
	case len(w) == 3 && w[1] == "per":
		if l, err = parsePer(w[0], w[2]); l.Per != 0 {
			return l, perPeriod, err
		}
		return l, perSpan, err
	case len(w) == 5 && w[1] == "per" && w[3] == "burst":
		if l, err = parsePer(w[0], w[2]); err == nil {
			l.Burst, err = parsePart("burst", w[4])
		}
		if err == nil && l.Burst == 0 {
			err = errors.New("burst \"0\": must be 1 or more, or left out for a burst of the count")
		}
		return l, withBurst, err
	case len(w) == 5 && w[1] == "at" && w[2] == "once" && w[3] == "for":
		l.N, l.Span, err = parsePair(w[0], w[4])
		return l, atOnce, err
	}
	return l, noForm, nil
}

// parsePer parses the count of a limit, and its duration or period.
func parsePer(count, span string) (l ratelimit.Limit, err error) {
	if strings.ContainsAny(span, "0123456789") {
		l.N, l.Span, err = parsePair(count, span)
		return l, err
	}
	if l.N, err = parsePart("count", count); err != nil {
		return l, err
	}
	for p := ratelimit.PerSecond; p <= ratelimit.PerMonth; p++ {
		if p.String() == span {
			l.Per = p
			return l, nil
		}
	}
	return l, fmt.Errorf("%q: must be a duration such as 1m, or second, minute, hour, day, week or month", clip(span))
}
