package rules

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

const (
	day  = 24 * time.Hour
	week = 7 * day
)

const allowedDuration = "a number with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d"

// ParseDuration parses a duration as a rules file has it: what
// [time.ParseDuration] takes, and d for days and w for weeks, without a sign.
// It must be whole milliseconds from 1ms to [ratelimit.MaxSpan].
func ParseDuration(s string) (time.Duration, error) {
	d, problem := parseDuration(s)
	if problem != "" {
		return 0, fmt.Errorf("duration is %q%s", s, problem)
	}
	return d, nil
}

// FormatDuration returns d as a rules file has it, as short as it goes: 1m,
// 1h30m, 500ms, 7d. Days are used from two on and only when nothing is left
// over. What is finer than a millisecond is cut off.
func FormatDuration(d time.Duration) string {
	if d < 0 {
		return d.String()
	}
	if d >= 2*day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	var b strings.Builder
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}, {time.Millisecond, "ms"}} {
		if n := d / u.unit; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d %= u.unit
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}

// parseDuration returns a duration, or what is wrong with s, worded to follow
// the quoted value.
func parseDuration(s string) (d time.Duration, problem string) {
	if s != "" && strings.Trim(s, "0123456789_.") == "" {
		return 0, fmt.Sprintf(", which has no unit; write %q", s+"s")
	}
	bad := "; allowed is " + allowedDuration
	if s == "" {
		return 0, bad
	}
	for rest := s; rest != ""; {
		n := len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		u := n
		for u < len(rest) && (rest[u] < '0' || rest[u] > '9') && rest[u] != '.' {
			u++
		}
		part, ok := parseUnits(rest[:n], rest[n:u])
		if !ok {
			return 0, bad
		}
		if part > math.MaxInt64-d {
			return 0, outOfRange
		}
		d += part
		rest = rest[u:]
	}
	if d < time.Millisecond || d > ratelimit.MaxSpan || d%time.Millisecond != 0 {
		return 0, outOfRange
	}
	return d, ""
}

const outOfRange = "; allowed is whole milliseconds from 1ms to 3650d" // ratelimit.MaxSpan

// parseUnits parses one number and its unit. Too large a number saturates.
func parseUnits(number, unit string) (time.Duration, bool) {
	one := unitOf(unit)
	if one == 0 {
		return 0, false
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil { // most are whole, and need no memory
		if n > int64(math.MaxInt64/one) {
			return math.MaxInt64, true
		}
		return time.Duration(n) * one, true
	}
	scale := time.Duration(1)
	if one > time.Hour {
		unit, scale = "h", one/time.Hour
	}
	d, err := time.ParseDuration(number + unit)
	if err != nil {
		// The number is either no number or too large.
		return math.MaxInt64, strings.Count(number, ".") == 0 && number != ""
	}
	if d > math.MaxInt64/scale {
		return math.MaxInt64, true
	}
	return d * scale, true
}

// unitOf returns the unit of that name, or 0.
func unitOf(name string) time.Duration {
	switch name {
	case "ns":
		return time.Nanosecond
	case "us", "µs":
		return time.Microsecond
	case "ms":
		return time.Millisecond
	case "s":
		return time.Second
	case "m":
		return time.Minute
	case "h":
		return time.Hour
	case "d":
		return day
	case "w":
		return 7 * day
	}
	return 0
}

// parseCount parses a count: digits, with '_' allowed between two of them.
func parseCount(s string) (n uint64, problem string) {
	const bad = "; allowed is a whole number, such as 60 or 10_000"
	digits := make([]byte, 0, 24)
	for i := range len(s) {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits = append(digits, c)
		case c == '_' && i > 0 && s[i-1] != '_' && i+1 < len(s):
		default:
			return 0, bad
		}
	}
	if len(digits) == 0 {
		return 0, bad
	}
	n, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0, "; the count is too large"
	}
	return n, ""
}

// parsePer parses "N per DURATION".
func parsePer(s string) (n uint64, d time.Duration, problem string) {
	w := strings.Fields(s)
	if len(w) != 3 || w[1] != "per" {
		return 0, 0, `; allowed is "N per DURATION", such as "60 per 1m"`
	}
	n, d, problem = parsePair(w[0], w[2])
	return n, d, problem
}

// parseIn parses "N hits in DURATION" and "N refusals in DURATION".
func parseIn(s string) (n uint64, of ratelimit.Cause, d time.Duration, problem string) {
	w := strings.Fields(s)
	if len(w) != 4 || w[2] != "in" {
		return 0, 0, 0, `; allowed is "N hits in DURATION" or "N refusals in DURATION", such as "600 hits in 1m"`
	}
	switch w[1] {
	case "hits", "hit":
		of = ratelimit.Hits
	case "refusals", "refusal":
		of = ratelimit.Refusals
	default:
		return 0, 0, 0, fmt.Sprintf("; it counts %q, and allowed is hits or refusals", clip(w[1]))
	}
	n, d, problem = parsePair(w[0], w[3])
	return n, of, d, problem
}

// parsePair parses the count and the duration of a value; the problem names the
// one that is wrong.
func parsePair(count, span string) (n uint64, d time.Duration, problem string) {
	if n, problem = parsePart("count", count); problem != "" {
		return 0, 0, problem
	}
	d, problem = parseDuration(span)
	if problem != "" {
		return 0, 0, fmt.Sprintf("; its duration is %q%s", clip(span), problem)
	}
	return n, d, ""
}

// parsePart parses a number that is a part of a value, called what.
func parsePart(what, s string) (n uint64, problem string) {
	if n, problem = parseCount(s); problem != "" {
		return 0, fmt.Sprintf("; its %s is %q%s", what, clip(s), problem)
	}
	return n, ""
}

// clip shortens what an error quotes.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 { // not within a character
		cut--
	}
	return s[:cut] + "…"
}
