// Package sentence returns the meaning of rules as sentences.
package sentence

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/match"
)

// Counter returns the meaning of a counter with that name, condition, key and spans as a sentence after its name.
func Counter(name string, w match.When, k match.Key, spans []time.Duration) string {
	texts := make([]string, len(spans))
	for i, s := range spans {
		texts[i] = rulevalue.FormatDuration(s)
	}
	return fmt.Sprintf("%s: %s are counted for each %s over the last %s.",
		name, upperFirst(requests(w)), keyNoun(k), rulevalue.Join(texts, "and"))
}

// Hot returns the meaning of r as a sentence that follows its name.
func Hot(r *hotkey.Rule) string {
	s := fmt.Sprintf("%s: %s%s that is hit %s within %s is hot for %s.",
		r.Name, forRequests(r.When), article(keyNoun(r.Key)), times(r.Threshold), rulevalue.FormatDuration(r.Span), rulevalue.FormatDuration(cmp.Or(r.Hold, r.Span)))
	return s + listedSentence(r.Key, r.Always, "always hot") + listedSentence(r.Key, r.Never, "never counted") + cacheSentence(r.Cache)
}

// listedSentence returns a sentence about keys that k has made, or "" without any.
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
	return fmt.Sprintf(" %s %s.", Subject(texts), what)
}

// cacheSentence describes p, or returns "" for nil.
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
	add("client in", Prefixes(w.Client))
	for _, name := range slices.Sorted(maps.Keys(w.Fields)) {
		add(name, w.Fields[name])
	}
	return parts
}

// Prefixes returns the texts of addresses and networks.
func Prefixes(ps []netip.Prefix) []string {
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
