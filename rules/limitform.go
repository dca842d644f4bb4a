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

// parseLimit parses a limit of algorithm a: "60 per 1m", "60 per 1m burst 10", "1000
// per day" or "20 at once for 30s".
func parseLimit(s string, a ratelimit.Algorithm) (ratelimit.Limit, error) {
	l, form, err := parseAnyLimit(s)
	if err != nil {
		return ratelimit.Limit{}, err
	}
	if p := periodOf(l); p != 0 && a == ratelimit.Calendar && form == perSpan {
		l.Per, l.Span, form = p, 0, perPeriod
	}
	if own := formOf(a); form != own && (form != perSpan || own != withBurst) {
		return ratelimit.Limit{}, fmt.Errorf("must be, for algorithm %s, %s", a, mustHave[own])
	}
	return l, nil
}

// periodOf returns the period of a limit of the calendar, or 0.
func periodOf(l ratelimit.Limit) ratelimit.Period {
	return cmp.Or(l.Per, ratelimit.Period(limit.PeriodOf(l.Span)))
}

// parseAnyLimit parses a limit of any form.
func parseAnyLimit(s string) (l ratelimit.Limit, form limitForm, err error) {
	w := strings.Fields(s)
	switch {
	case len(w) == 3 && w[1] == "per":
		if l.Per, err = ratelimit.PeriodNamed(w[2]); err == nil {
			l.N, err = parsePart("count", w[0])
			return l, perPeriod, err
		}
		l.N, l.Span, err = parsePair(w[0], w[2])
		return l, perSpan, err
	case len(w) == 5 && w[1] == "per" && w[3] == "burst":
		if l.N, l.Span, err = parsePair(w[0], w[2]); err == nil {
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
