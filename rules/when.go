package rules

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/match"
)

const needKey = `write "key: client", or a list of fields`

// readKey reads the names of the fields that a rule counts by.
func (r *reader) readKey(n ast.Node) []string {
	texts := r.scalars(n, "key", "a field such as client, or a list of fields")
	if len(texts) > match.MaxKeyFields {
		r.fail(n, "key has %d fields; allowed is at most %d", len(texts), match.MaxKeyFields)
	}
	var names []string
	for _, t := range texts {
		name, ok := r.readAlternatives(t)
		if !ok {
			continue
		}
		if slices.Contains(names, name) {
			r.fail(t.node, "key has the field %q twice; allowed is each field once", name)
			continue
		}
		names = append(names, name)
	}
	return names
}

// readAlternatives reads the name of a field, or several as in "user | client",
// and returns them as package match has them.
func (r *reader) readAlternatives(t text) (name string, ok bool) {
	var names []string
	for one := range strings.SplitSeq(t.text, "|") {
		one = strings.Trim(one, " ")
		if !r.checkField(text{one, t.node}, "key") {
			return "", false
		}
		if slices.Contains(names, one) {
			r.fail(t.node, "key is %q: must name each field once", clip(t.text))
			return "", false
		}
		names = append(names, one)
	}
	if len(names) > match.MaxKeyFields {
		r.fail(t.node, "key is %q: must have at most %d alternatives", clip(t.text), match.MaxKeyFields)
		return "", false
	}
	return strings.Join(names, " | "), true
}

// checkField reports whether t can be the name of a field. A name that is
// almost that of a well-known field is allowed, and warned about.
func (r *reader) checkField(t text, what string) bool {
	if !isName(t.text) {
		r.fail(t.node, "%s has the field %q; allowed is 1 to %d letters, digits, '-', '_' and '.'", what, clip(t.text), maxName)
		return false
	}
	lower := strings.ToLower(t.text)
	if lower == "cost" || lower == "at" {
		r.fail(t.node, "%s has the field %q, a word that commands use; allowed is any other name", what, t.text)
		return false
	}
	if _, known := match.FieldNamed(t.text); known {
		return true
	}
	if _, known := match.FieldNamed(lower); known {
		r.fail(t.node, "%s has the field %q; did you mean %s?", what, t.text, lower)
		return false
	}
	if known := match.Suggest(t.text, match.FieldNames(), 1); known != "" {
		r.warn(t.node, "%s has the field %q, which only your own events can carry; did you mean %s?", what, t.text, known)
	}
	return true
}

// readWhen reads a condition. Each value is compiled by itself, so that a bad
// one is reported where it stands.
func (r *reader) readWhen(n ast.Node) match.When {
	var w match.When
	pairs, ok := r.pairs(n, "when", "a mapping of fields and the values that they may have")
	if !ok {
		return w
	}
	empty := true
	for field, value := range pairs {
		empty = false
		if !r.checkField(field, "when") {
			continue
		}
		for _, t := range r.scalars(value, field.text, allowedValue(field.text)) {
			r.readValue(&w, field.text, t)
		}
	}
	if empty {
		r.fail(n, "when is empty; leave it out for a rule about all events")
	}
	return w
}

func allowedValue(field string) string {
	switch field {
	case "method":
		return "a method such as GET, or a list of them"
	case "path":
		return "a pattern such as /login or /api/**, or a list of them"
	case "status":
		return "a status such as 404, a class such as 5xx, a range such as 500-504, or a list of them"
	case "client":
		return "an address, a prefix, or a list of them"
	}
	return "a value, in which * stands for anything but '/' and ** for anything, or a list of them"
}

// readValue adds the value t of field to w.
func (r *reader) readValue(w *match.When, field string, t text) {
	var one match.When
	switch field {
	case "method":
		one.Method = []string{t.text}
		w.Method = append(w.Method, t.text)
		if upper := strings.ToUpper(t.text); upper != t.text {
			r.warn(t.node, "method is %q, and methods are compared exactly; did you mean %q?", clip(t.text), clip(upper))
		}
	case "path":
		one.Path = []string{t.text}
		w.Path = append(w.Path, t.text)
	case "status":
		one.Status = []string{t.text}
		w.Status = append(w.Status, t.text)
	case "client":
		if p, ok := r.prefix(t, "client"); ok {
			w.Client = append(w.Client, p)
		}
	default:
		if w.Fields == nil {
			w.Fields = make(map[string][]string)
		}
		w.Fields[field] = append(w.Fields[field], t.text)
	}
	if _, err := one.Compile(); err != nil {
		r.fail(t.node, "%v", err)
	}
}
