package rules

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// A counterDraft is one of the section counters.
type counterDraft struct {
	counter Counter // without its key
	key     []string
}

const maxSpans = 16

var counterEntries = []entry[counterDraft]{
	{"key", needKey, func(r *reader, d *counterDraft, n ast.Node) { d.key = r.readKey(n) }},
	{"spans", `write "spans: [1s, 1m, 1h, 24h]"`, func(r *reader, d *counterDraft, n ast.Node) {
		r.readSpans(n, &d.counter)
	}},
	{"when", "", func(r *reader, d *counterDraft, n ast.Node) {
		d.counter.When = r.readWhen(n)
		// What cannot be compiled was recorded value by value.
		d.counter.Condition, _ = d.counter.When.Compile()
	}},
}

func (r *reader) readCounters(d *draft, n ast.Node) {
	if isNull(n) {
		return
	}
	pairs, ok := r.pairs(n, "counters", "a mapping of names, such as \"requests: {key: client, spans: [1m]}\"")
	if !ok {
		return
	}
	for name, value := range pairs {
		r.checkName(name)
		var c counterDraft
		c.counter.Name = name.text
		readMapping(r, value, "a counter", &c, counterEntries)
		d.counters = append(d.counters, c)
	}
}

func (r *reader) readSpans(n ast.Node, c *Counter) {
	texts := r.scalars(n, "spans", "a duration or a list of them, such as [1s, 1m, 1h, 24h]")
	if len(texts) > maxSpans {
		r.fail(n, "spans has %d durations; allowed is at most %d", len(texts), maxSpans)
		return
	}
	for _, t := range texts {
		span := r.readDuration(t.node, "spans")
		if span != 0 && slices.Contains(c.Spans, span) {
			r.fail(t.node, "spans has %s twice; allowed is each span once", FormatDuration(span))
			continue
		}
		c.Spans = append(c.Spans, span)
	}
}
