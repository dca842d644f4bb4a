package rules

import (
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/ratelimit"
)

// A limitDraft is a rule of the section limits or bans.
type limitDraft struct {
	rule  ratelimit.Rule // without its key
	key   []string
	ban   banDraft
	adapt adaptDraft

	// The form of a limit depends on the algorithm, which may come after it,
	// so that limits are read when all else is known.
	limit, zone, counted ast.Node // nil when it is not given
	unknown              bool     // the algorithm is none that there is
}

const needName = `write "name: per-client"`

var limitEntries = []entry[limitDraft]{
	{"name", needName, func(r *reader, d *limitDraft, n ast.Node) { d.rule.Name = r.readName(n) }},
	{"key", needKey, func(r *reader, d *limitDraft, n ast.Node) { d.key = r.readKey(n) }},
	{"when", "", func(r *reader, d *limitDraft, n ast.Node) { d.rule.When = r.readWhen(n) }},
	{"limit", `write "limit: 60 per 1m"`, func(_ *reader, d *limitDraft, n ast.Node) { d.limit = n }},
	{"algorithm", "", func(r *reader, d *limitDraft, n ast.Node) { r.readAlgorithm(d, n) }},
	{"zone", "", func(r *reader, d *limitDraft, n ast.Node) {
		d.zone = n
		d.rule.Zone = r.readZone(n)
	}},
	{"adapt", "", func(r *reader, d *limitDraft, n ast.Node) {
		d.adapt.node = n
		readMapping(r, n, "adapt", &d.adapt, adaptEntries)
		d.rule.Adapt = &d.adapt.adapt
	}},
	{"count_refused", "", func(r *reader, d *limitDraft, n ast.Node) {
		d.counted = n
		d.rule.CountRefused = r.readBool(n, "count_refused")
	}},
	{"ban", "", func(r *reader, d *limitDraft, n ast.Node) {
		readMapping(r, n, "ban", &d.ban, banEntries)
		r.checkBan(&d.ban)
		d.rule.Ban = &d.ban.ban
	}},
	{"mode", "", func(r *reader, d *limitDraft, n ast.Node) { d.rule.Shadow = r.readMode(n) }},
	{"on_store_failure", "", func(r *reader, d *limitDraft, n ast.Node) {
		d.rule.OnStoreFailure = readNamed(r, n, "on_store_failure", ratelimit.FailPolicyNamed)
	}},
}

// readLimit reads a rule of the section limits.
func (r *reader) readLimit(n ast.Node) limitDraft {
	var d limitDraft
	readMapping(r, n, "a limit", &d, limitEntries)
	if d.limit != nil {
		r.readLimits(&d)
	}
	r.checkZone(&d)
	if d.rule.CountRefused && d.rule.Algorithm == ratelimit.InFlight {
		r.fail(d.counted, "count_refused has no effect with algorithm in-flight: a refused event is never under way; leave it out")
	}
	if d.adapt.node != nil {
		r.checkAdapt(&d)
	}
	return d
}

func (r *reader) readAlgorithm(d *limitDraft, n ast.Node) {
	before := len(r.errs)
	d.rule.Algorithm = readNamed(r, n, "algorithm", ratelimit.AlgorithmNamed)
	d.unknown = len(r.errs) > before
}

// readLimits reads the limits of d, of which all else is known, and checks them
// against the algorithm and each other.
func (r *reader) readLimits(d *limitDraft) {
	allowed := formTexts[formOf(d.rule.Algorithm)]
	spans := make(map[time.Duration]string)
	for _, one := range r.scalars(d.limit, "limit", allowed+", or a list of them") {
		limit, problem := d.parseLimit(one.text)
		if problem != "" {
			r.fail(one.node, "limit is %q%s", clip(one.text), problem)
			continue
		}
		window := limit.Window()
		if before, twice := spans[window]; twice {
			r.fail(one.node, "limit is %q, and %q is about the same span; allowed is one limit for each span", clip(one.text), clip(before))
			continue
		}
		spans[window] = one.text
		if err := limit.Validate(d.rule.Algorithm); err != nil && !d.unknown {
			r.fail(one.node, "%v", err)
			continue
		}
		d.rule.Limits = append(d.rule.Limits, limit)
	}
}

// parseLimit parses a limit of d. Where the algorithm is none that there is,
// that is the mistake, and a limit may have any form.
func (d *limitDraft) parseLimit(s string) (ratelimit.Limit, string) {
	l, form, problem := parseLimit(s)
	if problem == "" && (!d.unknown || form == noForm) {
		problem = fit(&l, form, d.rule.Algorithm)
	}
	return l, problem
}

// readMode reports whether the mode is shadow.
func (r *reader) readMode(n ast.Node) bool {
	s, ok := r.scalar(n, "mode", "enforce or shadow")
	if ok && s != "enforce" && s != "shadow" {
		r.fail(n, "mode is %q; allowed is enforce or shadow", clip(s))
	}
	return s == "shadow"
}

const allowedZone = "the name of a time zone, such as Europe/Vienna or UTC"

// readZone reads the name of a zone. Local is refused: a file must mean the same
// wherever it is read.
func (r *reader) readZone(n ast.Node) *time.Location {
	s, ok := r.scalar(n, "zone", allowedZone)
	if !ok {
		return nil
	}
	if s == "Local" || strings.Trim(s, nameBytes+"/+") != "" {
		r.fail(n, "zone is %q; allowed is %s", clip(s), allowedZone)
		return nil
	}
	zone, err := time.LoadLocation(s)
	if err != nil {
		r.fail(n, "zone is %q, which the time zone database of this machine does not know; allowed is %s", clip(s), allowedZone)
		return nil
	}
	return zone
}

func (r *reader) checkZone(d *limitDraft) {
	if d.zone != nil && !d.unknown && d.rule.Algorithm != ratelimit.Calendar {
		r.fail(d.zone, `zone has no effect with algorithm %s; write "algorithm: calendar" or leave zone out`, d.rule.Algorithm)
	}
}

// readNamed reads a value that goes by a name, with the function that knows the
// names and whose error says which there are.
func readNamed[T any](r *reader, n ast.Node, what string, named func(string) (T, error)) T {
	s, _ := scalarText(n)
	v, err := named(clip(s))
	if err == nil && s == "" { // the zero value's other name, which the file must not use
		r.fail(n, "%s is %s; leave the key out for the default", what, describe(n))
	}
	if err != nil {
		r.fail(n, "%v", err)
	}
	return v
}

const maxName = 64

// readName reads the name of a rule, which no other has.
func (r *reader) readName(n ast.Node) string {
	s, ok := r.scalar(n, "name", "a name of letters, digits, '-', '_' and '.'")
	if ok {
		r.checkName(text{s, n})
	}
	return s
}

func (r *reader) checkName(t text) {
	if !isName(t.text) {
		r.fail(t.node, "name is %q; allowed is 1 to %d letters, digits, '-', '_' and '.'", clip(t.text), maxName)
		return
	}
	if line, taken := r.names[t.text]; taken {
		r.fail(t.node, "name is %q, which is taken in line %d; allowed is a name of its own for each rule and counter", t.text, line)
		return
	}
	r.names[t.text], _ = position(t.node)
}

// isName reports whether s can be the name of a rule or field: it goes into
// lines of a protocol and into metrics as it is.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && strings.Trim(s, nameBytes) == ""
}

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
