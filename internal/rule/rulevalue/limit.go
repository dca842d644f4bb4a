package rulevalue

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/ratelimit"
)

// A Form is a way to write a limit. Each algorithm has its own, so that the
// text of a limit shows its meaning.
type Form uint8

// The forms.
const (
	PerSpan   Form = iota // 60 per 1m
	WithBurst             // 60 per 1m burst 10; the burst may be left out
	PerPeriod             // 1000 per day
	AtOnce                // 20 at once for 30s
	NoForm
)

// MustHave describes the form, for errors.
var MustHave = [...]string{
	PerSpan:   `"N per DURATION", such as "60 per 1m"`,
	WithBurst: `"N per DURATION" or "N per DURATION burst B", such as "60 per 1m burst 10"`,
	PerPeriod: `"N per PERIOD", such as "1000 per day"; a period is a second, minute, hour, day, week or month`,
	AtOnce:    `"N at once for DURATION", such as "20 at once for 30s"`,
}

// FormOf returns the form of a's limits.
func FormOf(a ratelimit.Algorithm) Form {
	switch a {
	case ratelimit.GCRA, ratelimit.LeakyBucket:
		return WithBurst
	case ratelimit.Calendar:
		return PerPeriod
	case ratelimit.InFlight:
		return AtOnce
	}
	return PerSpan
}

// ParseLimit parses a limit that does not depend on an algorithm: "60 per 1m", "60 per
// minute", "60/1m" or "60/minute". Named periods are in Per; for any other algorithm than
// calendar [FixedSpan] makes spans of them. The error does not contain s.
func ParseLimit(s string) (ratelimit.Limit, error) {
	l, form, err := AnyLimit(s)
	if err == nil && form != PerSpan && form != PerPeriod {
		err = errors.New("must be " + MustHave[PerSpan])
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

// LimitOf parses a limit of algorithm a: "60 per 1m", "60 per 1m burst 10", "1000
// per day" or "20 at once for 30s".
func LimitOf(s string, a ratelimit.Algorithm) (ratelimit.Limit, error) {
	l, form, err := AnyLimit(s)
	if err != nil {
		return ratelimit.Limit{}, err
	}
	fixed := true
	if a == ratelimit.Calendar {
		if p := PeriodOf(l); p != 0 && form == PerSpan {
			l.Per, l.Span, form = p, 0, PerPeriod
		}
	} else if l.Per != 0 {
		if l, fixed = FixedSpan(l); fixed && form == PerPeriod {
			form = PerSpan
		}
	}
	if own := FormOf(a); !fixed || form != own && (form != PerSpan || own != WithBurst) {
		return ratelimit.Limit{}, fmt.Errorf("must be, for algorithm %s, %s", a, MustHave[own])
	}
	return l, nil
}

// PeriodOf returns the period of a limit of the calendar, or 0.
func PeriodOf(l ratelimit.Limit) ratelimit.Period {
	return cmp.Or(l.Per, limit.PeriodOf(l.Span))
}

// AnyLimit parses a limit of any form. A slash stands for "per".
func AnyLimit(s string) (l ratelimit.Limit, form Form, err error) {
	w := strings.Fields(strings.Replace(s, "/", " per ", 1))
	switch {
	case len(w) == 3 && w[1] == "per":
		if l, err = parsePer(w[0], w[2]); l.Per != 0 {
			return l, PerPeriod, err
		}
		return l, PerSpan, err
	case len(w) == 5 && w[1] == "per" && w[3] == "burst":
		if l, err = parsePer(w[0], w[2]); err == nil {
			l.Burst, err = Part("burst", w[4])
		}
		if err == nil && l.Burst == 0 {
			err = errors.New("burst \"0\": must be 1 or more, or left out for a burst of the count")
		}
		return l, WithBurst, err
	case len(w) == 5 && w[1] == "at" && w[2] == "once" && w[3] == "for":
		l.N, l.Span, err = Pair(w[0], w[4])
		return l, AtOnce, err
	}
	return l, NoForm, nil
}

// parsePer parses the count of a limit, and its duration or period.
func parsePer(count, span string) (l ratelimit.Limit, err error) {
	if strings.ContainsAny(span, "0123456789") {
		l.N, l.Span, err = Pair(count, span)
		return l, err
	}
	if l.N, err = Part("count", count); err != nil {
		return l, err
	}
	for p := ratelimit.PerSecond; p <= ratelimit.PerMonth; p++ {
		if p.String() == span {
			l.Per = p
			return l, nil
		}
	}
	return l, fmt.Errorf("%q: must be a duration such as 1m, or second, minute, hour, day, week or month", Clip(span))
}
