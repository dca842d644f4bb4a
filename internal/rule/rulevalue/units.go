// Package rulevalue reads and writes the values of rules files: durations, sizes, counts, limits and keys.
package rulevalue

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

const (
	// Day is 24 hours.
	Day  = 24 * time.Hour
	week = 7 * Day
)

// errDuration names [limit.MaxSpan].
var errDuration = errors.New("must be whole milliseconds from 1ms to 3650d, with a unit (ms, s, m, h, d, w), such as 60s, 1h30m or 7d")

// ParseDuration parses a duration in the syntax of rules files: what
// [time.ParseDuration] takes, and d for days and w for weeks, without a sign.
// It must be whole milliseconds from 1ms to [limit.MaxSpan].
func ParseDuration(s string) (time.Duration, error) {
	d, err := Duration(s)
	if err != nil {
		return 0, fmt.Errorf("duration: %q: %w", s, err)
	}
	return d, nil
}

// Duration is [ParseDuration] with an error that does not contain s.
func Duration(s string) (time.Duration, error) {
	const digits = "0123456789."
	if s != "" && strings.Trim(s, digits+"_") == "" {
		return 0, fmt.Errorf("no unit: did you mean %ss?", Clip(s))
	}
	var sum time.Duration
	for rest := s; rest != ""; {
		unit := len(rest) - len(strings.TrimLeft(rest, digits))
		end := len(rest)
		if n := strings.IndexAny(rest[unit:], digits); n >= 0 {
			end = unit + n
		}
		var d time.Duration
		var err error
		scale := time.Duration(1)
		switch rest[unit:end] {
		case "":
			return 0, errDuration
		case "d":
			scale = Day / time.Hour
			d, err = parseHours(rest[:unit])
		case "w":
			scale = week / time.Hour
			d, err = parseHours(rest[:unit])
		default:
			d, err = time.ParseDuration(rest[:end])
		}
		if err != nil || d > (math.MaxInt64-sum)/scale {
			return 0, errDuration
		}
		sum += d * scale
		rest = rest[end:]
	}
	if sum < time.Millisecond || sum > limit.MaxSpan || sum%time.Millisecond != 0 {
		return 0, errDuration
	}
	return sum, nil
}

// ParseBytes parses a number of bytes: digits, and then KiB, MiB, GiB or TiB, or
// nothing. It must be 1 to 2^62.
func ParseBytes(s string) (int64, error) {
	digits, shift := s, 0
	for i, unit := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if d, ok := strings.CutSuffix(s, unit); ok {
			digits, shift = d, 10*(i+1)
		}
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || n < 1 || n > (1<<62)>>shift {
		return 0, errors.New("must be a number of bytes such as 268435456, 256MiB or 2GiB")
	}
	return int64(n << shift), nil
}

// parseHours parses a number of hours, without allocation if it is whole and small.
func parseHours(number string) (time.Duration, error) {
	if n, err := strconv.ParseUint(number, 10, 20); err == nil {
		return time.Duration(n) * time.Hour, nil
	}
	return time.ParseDuration(number + "h")
}

// FormatDuration returns d in the syntax of rules files, in the shortest form: 1m,
// 1h30m, 500ms, 7d. Days are used from two on and only when nothing is left over.
// Fractions of a millisecond are cut off.
func FormatDuration(d time.Duration) string {
	if d < 0 {
		return d.String()
	}
	if d >= 2*Day && d%Day == 0 {
		return strconv.FormatInt(int64(d/Day), 10) + "d"
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

// Count parses a count: digits, with '_' allowed between two of them.
func Count(s string) (uint64, error) {
	if strings.HasPrefix(s, "_") || strings.HasSuffix(s, "_") || strings.Contains(s, "__") {
		s = ""
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(s, "_", ""), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("must be at most %d", uint64(math.MaxUint64))
	case err != nil:
		return 0, errors.New("must be a whole number, such as 60 or 10_000")
	}
	return n, nil
}

// Part parses a count that is a part of a value, called what.
func Part(what, s string) (uint64, error) {
	n, err := Count(s)
	if err != nil {
		return 0, fmt.Errorf("%s %q: %w", what, Clip(s), err)
	}
	return n, nil
}

// Pair parses the count and the duration of a value. The error names the wrong
// one.
func Pair(count, span string) (n uint64, d time.Duration, err error) {
	if n, err = Part("count", count); err != nil {
		return 0, 0, err
	}
	if d, err = Duration(span); err != nil {
		return 0, 0, fmt.Errorf("duration %q: %w", Clip(span), err)
	}
	return n, d, nil
}

// Clip shortens a text to be quoted in an error.
func Clip(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}
