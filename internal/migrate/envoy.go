package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/lately-go/lately/match"
)

// Envoy reads the limits of envoyproxy/ratelimit. A descriptor with a rate_limit becomes a
// limit by calendar, as its windows begin with a second, minute, hour or day of UTC there.
// Its keys are fields of events, remote_address is the client; a value is a condition. A
// limit that would hold for more events than there is in shadow mode.
func Envoy(files ...Source) *Result {
	b := &builder{header: []string{
		"From envoyproxy/ratelimit. Events must have the keys of descriptors as fields, and one event stands for all descriptors of",
		"a request: rules of different descriptors are judged in one decision.",
	}}
	for _, f := range files {
		b.files = append(b.files, f.Name)
		e := &envoy{builder: b, file: f.Name, lines: 1 + bytes.Count(f.Data, []byte("\n"))}
		doc, err := parser.ParseBytes(f.Data, 0)
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			b.note(place{f.Name, 1}, "not read: %s", first)
			continue
		}
		for _, d := range doc.Docs {
			e.config(d.Body)
		}
	}
	return b.result()
}

type envoy struct {
	*builder
	file  string
	lines int
}

// An envoyDescriptor is a descriptor, in those around it.
type envoyDescriptor struct {
	place
	key, value string
	hasValue   bool
	shadow     bool
	limit      ast.Node
	inner      []ast.Node
	siblings   []*envoyDescriptor
}

// config reads a file.
func (e *envoy) config(n ast.Node) {
	for _, p := range e.pairs(n, "the file") {
		switch key := p.Key.String(); key {
		case "domain":
		case "descriptors":
			e.descriptors(p.Value, nil)
		default:
			e.note(e.at(p), "%s: unknown", key)
		}
	}
}

// descriptors reads a list of descriptors, which are in those of path.
func (e *envoy) descriptors(n ast.Node, path []*envoyDescriptor) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		e.note(e.at(n), "descriptors: must be a list")
		return
	}
	if len(path) == match.MaxKeyFields {
		e.note(e.at(n), "descriptors: in %d others: a rule counts by at most %d fields: not imported", len(path), match.MaxKeyFields)
		return
	}
	var all []*envoyDescriptor
	for _, v := range list.Values {
		all = append(all, e.descriptor(v))
	}
	for _, d := range all {
		d.siblings = all
		inner := append(slices.Clone(path), d)
		if d.limit != nil {
			e.limit(inner)
		}
		for _, n := range d.inner {
			e.descriptors(n, inner)
		}
	}
}

func (e *envoy) descriptor(n ast.Node) *envoyDescriptor {
	d := &envoyDescriptor{place: e.at(n)}
	for _, p := range e.pairs(n, "a descriptor") {
		switch key := p.Key.String(); key {
		case "key":
			d.key = text(p.Value)
		case "value":
			d.value, d.hasValue = text(p.Value), true
		case "rate_limit":
			d.limit = p.Value
		case "descriptors":
			d.inner = append(d.inner, p.Value)
		case "shadow_mode":
			d.shadow = text(p.Value) == "true"
		case "detailed_metric", "value_to_metric":
		default:
			e.note(e.at(p), "%s: unknown", key)
		}
	}
	if d.key == "" {
		e.note(d.place, "key: missing: the descriptor is not imported")
		d.limit, d.inner = nil, nil
	}
	return d
}

// limit makes a rule of the last descriptor of path.
func (e *envoy) limit(path []*envoyDescriptor) {
	d := path[len(path)-1]
	unit, count := "", ""
	for _, p := range e.pairs(d.limit, "rate_limit") {
		switch key := p.Key.String(); key {
		case "unit":
			unit = strings.ToLower(text(p.Value))
		case "requests_per_unit":
			count = text(p.Value)
		case "unlimited":
			if text(p.Value) == "true" {
				return // other rules have a note that they hold for it, too
			}
		case "name":
		default:
			e.note(e.at(p), "rate_limit: %s: not expressed", key)
		}
	}
	n, err := strconv.ParseUint(count, 10, 32)
	if err != nil {
		e.note(d.place, "requests_per_unit: %q: must be a number: not imported", count)
		return
	}
	if !slices.Contains([]string{"second", "minute", "hour", "day"}, unit) {
		e.note(d.place, "unit: %q: must be second, minute, hour or day, as others are no periods of the calendar: not imported", unit)
		return
	}
	var names, keys, conditions []string
	mode := ""
	for _, d := range path {
		field := envoyField(d.key)
		keys, names = append(keys, quoted(field)), append(names, strings.Trim(d.key+"_"+d.value, "_"))
		if d.hasValue {
			conditions = append(conditions, quoted(field)+": "+quoted(strings.TrimSuffix(d.value, "*")+strings.Repeat("**", len(d.value)-len(strings.TrimSuffix(d.value, "*")))))
		}
		if d.shadow || e.wider(d) {
			mode = ", mode: shadow"
		}
	}
	if len(d.inner) > 0 {
		e.note(d.place, "%s: descriptors in it are counted apart from it; here its limit holds for their events, too: in shadow mode", d.key)
		mode = ", mode: shadow"
	}
	e.add(d.place, &e.limits, fmt.Sprintf("%v: %s", d.place, strings.Join(names, ", ")),
		fmt.Sprintf("{name: %s, key: [%s]%s, limit: %d per %s, algorithm: calendar%s}", quoted(e.name(strings.Join(names, "."))), strings.Join(keys, ", "), whenAll(conditions), n, unit, mode))
}

// wider notes that a rule holds for more events than d, and reports whether it does.
func (e *envoy) wider(d *envoyDescriptor) bool {
	prefix, isPrefix := strings.CutSuffix(d.value, "*")
	if strings.Contains(prefix, "*") {
		e.note(d.place, "%s: value %q: a * that stands for itself is not a condition of a rule: in shadow mode", d.key, d.value)
		return true
	}
	for _, other := range d.siblings {
		if other == d || other.key != d.key || !other.hasValue || other.value == d.value {
			continue
		}
		if !d.hasValue || isPrefix && strings.HasPrefix(other.value, prefix) {
			e.note(d.place, "%s: the descriptor of line %d takes a part of the values of this one; here the rule holds for them, too: in shadow mode", d.key, other.line)
			return true
		}
	}
	return false
}

// envoyField returns the field of events that has the values of a key.
func envoyField(key string) string {
	switch key {
	case "remote_address", "masked_remote_address":
		return match.Client.String()
	}
	return key
}

// pairs returns the keys and values of a mapping.
func (e *envoy) pairs(n ast.Node, what string) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	case nil:
		return nil
	}
	e.note(e.at(n), "%s: must be a mapping of keys to values", what)
	return nil
}

// at returns the line of n.
func (e *envoy) at(n ast.Node) place {
	line := 1
	if t := n.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	return place{e.file, min(max(line, 1), e.lines)} // a line may end with \r for YAML
}

// text returns the value of a scalar, or "".
func text(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case ast.ScalarNode:
		return cmp.Or(n.GetToken().Value, "")
	}
	return ""
}
