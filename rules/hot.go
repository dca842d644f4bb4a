package rules

import (
	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/hotkey"
)

// A hotDraft is a rule of the section hot.
type hotDraft struct {
	rule hotkey.Rule // without its key
	key  []string
}

var hotEntries = []entry[hotDraft]{
	{"name", needName, func(r *reader, d *hotDraft, n ast.Node) { d.rule.Name = r.readName(n) }},
	{"key", needKey, func(r *reader, d *hotDraft, n ast.Node) { d.key = r.readKey(n) }},
	{"when", "", func(r *reader, d *hotDraft, n ast.Node) { d.rule.When = r.readWhen(n) }},
	{"threshold", `write "threshold: 500 per 2s"`, func(r *reader, d *hotDraft, n ast.Node) { r.readThreshold(n, &d.rule) }},
	{"hold", "", func(r *reader, d *hotDraft, n ast.Node) { d.rule.Hold = r.readDuration(n, "hold") }},
}

// readHot reads a rule of the section hot.
func (r *reader) readHot(n ast.Node) hotDraft {
	var d hotDraft
	readMapping(r, n, "a rule of hot", &d, hotEntries)
	return d
}

func (r *reader) readThreshold(n ast.Node, rule *hotkey.Rule) {
	s, ok := r.scalar(n, "threshold", `"N per DURATION", such as "500 per 2s"`)
	if !ok {
		return
	}
	count, span, problem := parsePer(s)
	switch {
	case problem != "":
		r.fail(n, "threshold is %q%s", clip(s), problem)
	case count < 1 || count > hotkey.MaxThreshold:
		r.fail(n, "threshold is %q; allowed is 1 to %d", clip(s), hotkey.MaxThreshold)
	default:
		rule.Threshold, rule.Span = count, span
	}
}
