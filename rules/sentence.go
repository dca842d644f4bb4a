package rules

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/internal/rulevalue"
	"github.com/lately-go/lately/internal/when"
	"github.com/lately-go/lately/match"
)

// Sentences returns the meaning of the file, a line for each field, counter and rule and one for
// the allow list: fields, counters, limits, bans, hot, allow.
func (f *File) Sentences() []string {
	var all []string
	for _, s := range f.Limits.Sources() {
		all = append(all, sourceSentence(&s))
	}
	for i := range f.Counters {
		all = append(all, f.Counters[i].Sentence())
	}
	for i := range f.Limits.Len() {
		all = append(all, LimitSentence(f.Limits.Rule(i)))
	}
	for i := range f.Hot {
		all = append(all, HotSentence(&f.Hot[i]))
	}
	if allowed := f.Allow.subjects(); len(allowed) > 0 {
		all = append(all, fmt.Sprintf("allow: %s never limited and never banned.", subject(allowed)))
	}
	if crawlers := f.Allow.crawlers(); crawlers != "" {
		all = append(all, crawlers)
	}
	return all
}

// Sentence returns the meaning of the counter as a sentence after its name.
func (c *Counter) Sentence() string {
	spans := make([]string, len(c.Spans))
	for i, s := range c.Spans {
		spans[i] = rulevalue.FormatDuration(s)
	}
	return fmt.Sprintf("%s: %s are counted for each %s over the last %s.",
		c.Name, upperFirst(requests(c.When)), keyNoun(c.Key), rulevalue.Join(spans, "and"))
}

// HotSentence returns the meaning of r as a sentence that follows its name.
func HotSentence(r *hotkey.Rule) string {
	s := fmt.Sprintf("%s: %s%s that is hit %s within %s is hot for %s.",
		r.Name, forRequests(r.When), article(keyNoun(r.Key)), times(r.Threshold), rulevalue.FormatDuration(r.Span), rulevalue.FormatDuration(cmp.Or(r.Hold, r.Span)))
	return s + listedSentence(r.Key, r.Always, "always hot") + listedSentence(r.Key, r.Never, "never counted") + cacheSentence(r.Cache)
}

// listedSentence returns what some keys that k has made are, or "" if there are none.
func listedSentence(k match.Key, keys []string, what string) string {
	if len(keys) == 0 {
		return ""
	}
	var texts []string
	for _, key := range keys {
		var values []string
		for v := range k.Parts([]byte(key)) {
			values = append(values, strconv.Quote(string(v)))
		}
		texts = append(texts, strings.Join(values, " with "))
	}
	return fmt.Sprintf(" %s %s.", subject(texts), what)
}

// cacheSentence returns what p says, or "" for nil.
func cacheSentence(p *hotkey.CachePolicy) string {
	if p == nil {
		return ""
	}
	s := " Its value is renewed every " + rulevalue.FormatDuration(p.TTL)
	if p.MaxAge > p.TTL {
		s += ", and used for " + rulevalue.FormatDuration(p.MaxAge) + " if it cannot be"
	}
	if p.MaxBytes > 0 {
		s += fmt.Sprintf("; all values take at most %d bytes", p.MaxBytes)
	}
	return s + "."
}

// forRequests returns the beginning of a sentence about the events of w.
func forRequests(w match.When) string {
	if when.IsZero(w) {
		return ""
	}
	return "for " + requests(w) + ", "
}

// requests returns the events of w: "requests with method GET and status 5xx except those with agent *bot*".
func requests(w match.When) string {
	s := "requests"
	if parts := conditions(w); len(parts) > 0 {
		s += " with " + rulevalue.Join(parts, "and")
	}
	for i, alternative := range w.Any {
		switch text := requests(alternative); {
		case i > 0:
			s += ", or " + text
		case s == "requests":
			s = text
		default:
			s += " that are " + text
		}
	}
	for i, exception := range w.Not {
		text := strings.Replace(requests(exception), "requests", "those", 1)
		s += []string{" except ", " and "}[min(i, 1)] + text
	}
	return s
}

// conditions returns the conditions of w on fields: "method GET", "agent curl or wget (any case)".
func conditions(w match.When) (parts []string) {
	add := func(field string, values []string) {
		values = slices.Clone(values)
		for i, v := range values {
			if text, folds := strings.CutPrefix(v, "(?i)"); folds {
				values[i] = text + " (any case)"
			}
		}
		if len(values) > 0 {
			parts = append(parts, field+" "+rulevalue.Join(values, "or"))
		}
	}
	add("method", w.Method)
	add("path", w.Path)
	add("status", w.Status)
	add("client in", prefixes(w.Client))
	for _, name := range slices.Sorted(maps.Keys(w.Fields)) {
		add(name, w.Fields[name])
	}
	return parts
}

func prefixes(ps []netip.Prefix) []string {
	texts := make([]string, len(ps))
	for i, p := range ps {
		texts[i] = p.String()
		if p.IsSingleIP() {
			texts[i] = p.Addr().String()
		}
	}
	return texts
}

// keyNoun returns what k counts by: "client", "client/24 (IPv6 /48)", "user (or else
// client)", "combination of client and path".
func keyNoun(k match.Key) string {
	names := slices.Clone(k.Fields())
	for i, name := range names {
		if fold := k.Fold(); i == keyvalue.ClientIndex(k) && fold.IPv4 < 32 {
			name = strings.Replace(name, match.Client.String(), fmt.Sprintf("client/%d (IPv6 /%d)", fold.IPv4, fold.IPv6), 1)
			names[i] = name
		}
		if first, rest, ok := strings.Cut(name, " | "); ok {
			names[i] = first + " (or else " + strings.ReplaceAll(rest, " | ", ", or else ") + ")"
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return "combination of " + rulevalue.Join(names, "and")
}

// article returns noun with its indefinite article.
func article(noun string) string {
	if noun == "hour" || noun != "" && strings.Contains("aeioAEIO", noun[:1]) { // "a user"
		return "an " + noun
	}
	return "a " + noun
}

// count returns n of what, in the singular or plural.
func count(n uint64, what string) string {
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
	return count(n, "time")
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

// subject joins words as the subject of a sentence, with its verb: "a is", "a and b are".
func subject(words []string) string {
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
