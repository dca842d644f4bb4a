package replay

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
)

// visible returns s with what is not printable UTF-8 escaped as in a Go string.
func visible(s string) string {
	for _, r := range s {
		if r == utf8.RuneError || !strconv.IsPrint(r) {
			quoted := strconv.Quote(s)
			return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
		}
	}
	return s
}

// keyText joins the values of a key.
func keyText(k api.Key) string {
	parts := slices.Clone(k.Values())
	for i := range parts {
		parts[i] = visible(parts[i])
	}
	return strings.Join(parts, " ")
}

// count writes n with a comma every three digits.
func count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(int64(n)) + " " + many
}

func percent(part, whole int64) string {
	if whole == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// seconds returns so many seconds as a duration.
func seconds(n float64) time.Duration { return time.Duration(math.Round(n * float64(time.Second))) }

func exactStamp(e Epoch, zone *time.Location) string {
	return e.In(zone).Format("2006-01-02 15:04:05.999999999")
}

// long writes a duration in its two largest units.
func long(d time.Duration) string {
	day := 24 * time.Hour
	switch {
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return d.Round(time.Millisecond).String()
}
