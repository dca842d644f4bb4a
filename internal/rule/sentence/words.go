package sentence

import (
	"math"
	"strconv"
	"strings"

	"github.com/lately-go/lately/internal/rule/rulevalue"
)

// article returns noun with its indefinite article.
func article(noun string) string {
	if noun == "hour" || noun != "" && strings.Contains("aeioAEIO", noun[:1]) { // "a user"
		return "an " + noun
	}
	return "a " + noun
}

// Count returns n of what, in the singular or plural.
func Count(n uint64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatUint(n, 10) + " " + what + "s"
}

// grouped returns n with a comma before each three digits.
func grouped(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return Count(n, "time")
}

// ordinal returns n as 1st, 2nd, 3rd, 4th, 11th, 21st.
func ordinal(n uint64) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.FormatUint(n, 10) + suffix
}

// Subject joins words as the subject of a sentence, with its verb: "a is", "a and b are".
func Subject(words []string) string {
	if len(words) == 1 {
		return words[0] + " is"
	}
	return rulevalue.Join(words, "and") + " are"
}

// number returns f in decimal, with few significant digits.
func number(f float64) string {
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if len(s) > 8 && strings.Contains(s, ".") {
		s = strconv.FormatFloat(f, 'f', max(0, 2-int(math.Floor(math.Log10(f)))), 64)
	}
	return s
}

func percent(share float64) string { return number(math.Round(share*1e4)/100) + " %" }

func upperFirst(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
