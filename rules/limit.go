package rules

import (
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/ratelimit"
)

// A limitDraft is a rule of the section limits or bans.
type limitDraft struct {
	rule   ratelimit.Rule // without its key
	key    []string
	limits []limitAt
	ban    banDraft
}

// A limitAt is one limit and where it stands.
type limitAt struct {
	limit ratelimit.Limit
	at    text
}

const needName = `write "name: per-client"`

var limitEntries = []entry[limitDraft]{
	{"name", needName, func(r *reader, d *limitDraft, n ast.Node) { d.rule.Name = r.readName(n) }},
	{"key", needKey, func(r *reader, d *limitDraft, n ast.Node) { d.key = r.readKey(n) }},
	{"when", "", func(r *reader, d *limitDraft, n ast.Node) { d.rule.When = r.readWhen(n) }},
	{"limit", `write "limit: 60 per 1m"`, func(r *reader, d *limitDraft, n ast.Node) { d.limits = r.readLimits(n) }},
	{"algorithm", "", func(r *reader, d *limitDraft, n ast.Node) {
		d.rule.Algorithm = readNamed(r, n, "algorithm", ratelimit.AlgorithmNamed)
	}},
	{"count_refused", "", func(r *reader, d *limitDraft, n ast.Node) {
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
	spans := make(map[time.Duration]string)
	for _, l := range d.limits {
		if before, twice := spans[l.limit.Span]; twice {
			r.fail(l.at.node, "limit is %q, and %q is about the same span; allowed is one limit for each span", clip(l.at.text), clip(before))
			continue
		}
		spans[l.limit.Span] = l.at.text
		if err := l.limit.Validate(d.rule.Algorithm); err != nil {
			r.fail(l.at.node, "%v", err)
			continue
		}
		d.rule.Limits = append(d.rule.Limits, l.limit)
	}
	return d
}

func (r *reader) readLimits(n ast.Node) []limitAt {
	var limits []limitAt
	for _, one := range r.scalars(n, "limit", `"N per DURATION", such as "60 per 1m", or a list of them`) {
		count, span, problem := parsePer(one.text)
		if problem != "" {
			r.fail(one.node, "limit is %q%s", clip(one.text), problem)
			continue
		}
		limits = append(limits, limitAt{ratelimit.Limit{N: count, Span: span}, one})
	}
	return limits
}

// readMode reports whether the mode is shadow.
func (r *reader) readMode(n ast.Node) bool {
	s, ok := r.scalar(n, "mode", "enforce or shadow")
	if ok && s != "enforce" && s != "shadow" {
		r.fail(n, "mode is %q; allowed is enforce or shadow", clip(s))
	}
	return s == "shadow"
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
