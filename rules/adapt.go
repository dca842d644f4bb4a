package rules

import (
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/ratelimit"
)

// An adaptDraft is what adapt says, and where.
type adaptDraft struct {
	adapt ratelimit.Adapt
	rows  []text // of adapt.Steps

	node, above, hysteresis ast.Node // nil when it is not given
}

const allowedStep = `"N below COUNT per DURATION", such as "2000 below 1000 per 1s"`

// What ratelimit.Adapt takes.
const (
	shortestAdapt = time.Second
	longestAdapt  = time.Hour
	longestSmooth = day
)

var adaptEntries = []entry[adaptDraft]{
	{"steps", `write "steps: [2000 below 1000 per 1s, 1000 below 5000 per 1s]"`, func(r *reader, d *adaptDraft, n ast.Node) {
		r.readSteps(n, d)
	}},
	{"above", `write "above: 500"`, func(r *reader, d *adaptDraft, n ast.Node) { r.readAbove(n, d) }},
	{"span", "", func(r *reader, d *adaptDraft, n ast.Node) {
		d.adapt.Span = r.readDurationTo(n, "span", longestAdapt)
	}},
	{"smooth", "", func(r *reader, d *adaptDraft, n ast.Node) {
		d.adapt.Smooth = r.readDurationTo(n, "smooth", longestSmooth)
	}},
	{"hysteresis", "", func(r *reader, d *adaptDraft, n ast.Node) {
		d.hysteresis = n
		const allowed = "a share from 0 to less than 1, such as 0.2"
		d.adapt.Hysteresis = r.readNumber(n, "hysteresis", allowed, func(f float64) bool { return f < 1 })
		if d.adapt.Hysteresis == 0 {
			d.adapt.Hysteresis = -1 // whose zero is the default
		}
	}},
}

func (r *reader) readSteps(n ast.Node, d *adaptDraft) {
	last := 0.0
	for _, t := range r.scalars(n, "steps", allowedStep+", or a list of them") {
		limit, below, problem := parseStep(t.text)
		switch {
		case problem != "":
			r.fail(t.node, "steps has %q%s", clip(t.text), problem)
			continue
		case !(below > last):
			r.fail(t.node, "steps has %q, which is not above the step before; allowed is more traffic in each step, and more than none", clip(t.text))
			continue
		}
		last = below
		d.rows = append(d.rows, t)
		d.adapt.Steps = append(d.adapt.Steps, ratelimit.AdaptStep{Below: below, Limit: limit})
	}
}

// parseStep parses "N below COUNT per DURATION", of which the traffic is a rate:
// events a second.
func parseStep(s string) (limit uint64, below float64, problem string) {
	w := strings.Fields(s)
	if len(w) != 5 || w[1] != "below" || w[3] != "per" {
		return 0, 0, "; allowed is " + allowedStep
	}
	if limit, problem = parsePart("limit", w[0]); problem != "" {
		return 0, 0, problem
	}
	n, span, problem := parsePair(w[2], w[4])
	return limit, float64(n) / span.Seconds(), problem
}

func (r *reader) readAbove(n ast.Node, d *adaptDraft) {
	s, ok := r.scalar(n, "above", "a whole number, such as 500")
	if !ok {
		return
	}
	var problem string
	if d.adapt.Above, problem = parseCount(s); problem != "" {
		r.fail(n, "above is %q%s", clip(s), problem)
		return
	}
	d.above = n
}

// readDurationTo reads a duration of a second to longest.
func (r *reader) readDurationTo(n ast.Node, what string, longest time.Duration) time.Duration {
	d := r.readDuration(n, what)
	if d != 0 && (d < shortestAdapt || d > longest) {
		r.fail(n, "%s is %s; allowed is %s to %s", what, FormatDuration(d), FormatDuration(shortestAdapt), FormatDuration(longest))
		return 0
	}
	return d
}

// checkAdapt checks adapt against the rest of the rule.
func (r *reader) checkAdapt(d *limitDraft) {
	if d.adapt.hysteresis != nil && d.adapt.adapt.Smooth != 0 {
		r.fail(d.adapt.hysteresis, "hysteresis has no effect with smooth; leave one of them out")
	}
	a := d.rule.Algorithm
	if d.unknown {
		return
	}
	if formOf(a) == withBurst {
		r.fail(d.adapt.node, "adapt does not go with algorithm %s, which makes a rate of the limit; allowed is any but gcra, token-bucket and leaky-bucket", a)
		return
	}
	check := func(n uint64, at ast.Node) {
		probe := ratelimit.Limit{N: n, Span: time.Second}
		if err := probe.Validate(a); err != nil {
			r.fail(at, "adapt: %v", err)
		}
	}
	for i, row := range d.adapt.rows {
		check(d.adapt.adapt.Steps[i].Limit, row.node)
	}
	if d.adapt.above != nil {
		check(d.adapt.adapt.Above, d.adapt.above)
	}
	if n := len(d.rule.Limits); n > 1 {
		r.warn(d.adapt.node, "adapt makes the %d limits of the rule one number over different spans", n)
	}
}
