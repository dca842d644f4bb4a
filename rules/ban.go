package rules

import (
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/ratelimit"
)

// A banDraft is what a ban says, and where, for what is checked afterwards.
type banDraft struct {
	ban     ratelimit.Ban
	lengths int // that are given in for

	after, factor, max, jitter, remember ast.Node // nil when it is not given
}

var banEntries = []entry[banDraft]{
	{"after", `write "after: 20 refusals in 5m"`, func(r *reader, d *banDraft, n ast.Node) {
		d.after = n
		r.readAfter(n, &d.ban)
	}},
	{"for", `write "for: 10m"`, func(r *reader, d *banDraft, n ast.Node) { r.readLengths(n, d) }},
	{"factor", "", func(r *reader, d *banDraft, n ast.Node) {
		d.factor = n
		d.ban.Factor = r.readFactor(n)
	}},
	{"max", "", func(r *reader, d *banDraft, n ast.Node) {
		d.max = n
		d.ban.Max = r.readDuration(n, "max")
	}},
	{"jitter", "", func(r *reader, d *banDraft, n ast.Node) {
		d.jitter = n
		d.ban.Jitter = r.readNumber(n, "jitter", "a share from 0 to 1, such as 0.2", func(f float64) bool { return f <= 1 })
	}},
	{"extend", "", func(r *reader, d *banDraft, n ast.Node) { d.ban.Extend = r.readBool(n, "extend") }},
	{"remember", "", func(r *reader, d *banDraft, n ast.Node) {
		d.remember = n
		d.ban.Remember = r.readDuration(n, "remember")
	}},
}

// banRuleEntries is what a rule of the section bans may have: what every rule
// has, and the ban itself.
var banRuleEntries = append([]entry[limitDraft]{
	*find(limitEntries, "name"), *find(limitEntries, "key"), *find(limitEntries, "when"),
	*find(limitEntries, "mode"), *find(limitEntries, "on_store_failure"),
}, inner(banEntries, func(d *limitDraft) *banDraft { return &d.ban })...)

// inner makes entries of a T out of those of a part of it.
func inner[T, U any](entries []entry[U], part func(*T) *U) []entry[T] {
	var outer []entry[T]
	for _, e := range entries {
		outer = append(outer, entry[T]{e.key, e.need, func(r *reader, v *T, n ast.Node) { e.read(r, part(v), n) }})
	}
	return outer
}

// readBanRule reads a rule of the section bans.
func (r *reader) readBanRule(n ast.Node) limitDraft {
	var d limitDraft
	readMapping(r, n, "a ban", &d, banRuleEntries)
	r.checkBan(&d.ban)
	if d.ban.ban.Of == ratelimit.Refusals {
		r.fail(d.ban.after, `after counts refusals, but a rule of bans refuses nothing before it bans; `+
			`write "N hits in DURATION", or put the ban under a limit`)
	}
	d.rule.Ban = &d.ban.ban
	return d
}

func (r *reader) readAfter(n ast.Node, b *ratelimit.Ban) {
	s, ok := r.scalar(n, "after", `"N hits in DURATION" or "N refusals in DURATION"`)
	if !ok {
		return
	}
	count, of, span, problem := parseIn(s)
	if problem != "" {
		r.fail(n, "after is %q%s", clip(s), problem)
		return
	}
	if count > ratelimit.MaxExact {
		r.fail(n, "after is %q; allowed is at most %d", clip(s), ratelimit.MaxExact)
		return
	}
	b.After, b.Of, b.Span = count, of, span
}

// readLengths reads how long bans last: all of them, or the first, the second
// and so on.
func (r *reader) readLengths(n ast.Node, d *banDraft) {
	texts := r.scalars(n, "for", allowedDuration+", or a list of them")
	d.lengths = len(texts)
	if len(texts) > ratelimit.MaxBanSteps {
		r.fail(n, "for has %d durations; allowed is at most %d", len(texts), ratelimit.MaxBanSteps)
		return
	}
	before := len(r.errs)
	var steps []time.Duration
	for _, t := range texts {
		steps = append(steps, r.readDuration(t.node, "for"))
	}
	switch {
	case len(r.errs) > before:
	case len(steps) == 1:
		d.ban.For = steps[0]
	default:
		d.ban.Steps = steps
	}
}

// readFactor reads a number that ratelimit takes as a ban's factor.
func (r *reader) readFactor(n ast.Node) float64 {
	return r.readNumber(n, "factor", "a number from 1 to 1000, such as 2 or 1.5", func(f float64) bool {
		probe := ratelimit.Ban{Span: time.Second, For: time.Second, Factor: f}
		return f != 0 && probe.Validate() == nil
	})
}

// readNumber reads a number without sign and exponent that fits.
func (r *reader) readNumber(n ast.Node, what, allowed string, fits func(float64) bool) float64 {
	s, ok := r.scalar(n, what, allowed)
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || strings.Trim(s, "0123456789.") != "" || !fits(f) {
		r.fail(n, "%s is %q; allowed is %s", what, clip(s), allowed)
		return 0
	}
	return f
}

// readDuration reads a duration, called what.
func (r *reader) readDuration(n ast.Node, what string) time.Duration {
	s, ok := r.scalar(n, what, allowedDuration)
	if !ok {
		return 0
	}
	d, problem := parseDuration(s)
	if problem != "" {
		r.fail(n, "%s is %q%s", what, clip(s), problem)
	}
	return d
}

// checkBan checks the parts of a ban against each other.
func (r *reader) checkBan(d *banDraft) {
	b := &d.ban
	if d.factor != nil && d.lengths > 1 {
		r.fail(d.factor, "factor does not go with a list in for, which says how long each ban is; leave one of them out")
	}
	first := b.For
	if len(b.Steps) > 0 {
		first = b.Steps[0]
	}
	probe := ratelimit.Ban{Span: time.Second, For: first, Max: b.Max, Jitter: b.Jitter}
	switch err := probe.Validate(); {
	case first == 0 || err == nil:
	case b.Max != 0 && b.Max < first:
		r.fail(d.max, "max is %s, shorter than the first ban; allowed is at least %s, the value of \"for\"",
			FormatDuration(b.Max), FormatDuration(first))
	case d.jitter != nil:
		r.fail(d.jitter, "%v", err)
	}
	if d.factor != nil || d.lengths > 1 || d.jitter != nil {
		return
	}
	const alike = "%s has no effect on bans that are all alike; write \"factor: 2\" or leave %s out"
	if d.max != nil {
		r.fail(d.max, alike, "max", "max")
	}
	if d.remember != nil {
		r.fail(d.remember, alike, "remember", "remember")
	}
}
