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
	ban                          ratelimit.Ban
	after, factor, max, remember ast.Node // nil when it is not given
}

var banEntries = []entry[banDraft]{
	{"after", `write "after: 20 refusals in 5m"`, func(r *reader, d *banDraft, n ast.Node) {
		d.after = n
		r.readAfter(n, &d.ban)
	}},
	{"for", `write "for: 10m"`, func(r *reader, d *banDraft, n ast.Node) { d.ban.For = r.readDuration(n, "for") }},
	{"factor", "", func(r *reader, d *banDraft, n ast.Node) {
		d.factor = n
		d.ban.Factor = r.readFactor(n)
	}},
	{"max", "", func(r *reader, d *banDraft, n ast.Node) {
		d.max = n
		d.ban.Max = r.readDuration(n, "max")
	}},
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

// readFactor reads a number that ratelimit takes as a ban's factor.
func (r *reader) readFactor(n ast.Node) float64 {
	const allowed = "a number from 1 to 1000, such as 2 or 1.5"
	s, ok := r.scalar(n, "factor", allowed)
	if !ok {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	probe := ratelimit.Ban{Span: time.Second, For: time.Second, Factor: f}
	if err != nil || strings.Trim(s, "0123456789.") != "" || f == 0 || probe.Validate() != nil {
		r.fail(n, "factor is %q; allowed is %s", clip(s), allowed)
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
	if d.max != nil && d.ban.Max != 0 && d.ban.Max < d.ban.For {
		r.fail(d.max, "max is %s, shorter than the first ban; allowed is at least %s, the value of \"for\"",
			FormatDuration(d.ban.Max), FormatDuration(d.ban.For))
	}
	if d.factor != nil {
		return
	}
	if d.max != nil {
		r.fail(d.max, `max has no effect without factor; write "factor: 2" or leave max out`)
	}
	if d.remember != nil {
		r.fail(d.remember, `remember has no effect without factor; write "factor: 2" or leave remember out`)
	}
}
