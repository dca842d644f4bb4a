package accesslog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/lately-go/lately/internal/rule/spelling"
	"github.com/lately-go/lately/match"
)

// Fields returns the names of the fields that events of the format can have, each
// once. An event may lack any of them.
func (f Format) Fields() []string {
	switch {
	case f.inner != nil:
		return f.inner.Fields()
	case f.kind == nil:
		return nil
	case f.filters != nil:
		return f.filters.fields()
	case f.kind.fields != nil:
		return slices.Clone(f.kind.fields)
	case f.wraps():
		return detectedFields()
	}
	var names []string
	for _, w := range f.spec.wants[1:] { // without the time
		switch {
		case w.name == "":
		case w.form == formURL:
			names = append(append(names, requestFields...), "host")
		case w.form == formForwarded:
			names = append(names, "client", "x_forwarded_for")
		case w.form == formRequest:
			names = append(names, requestFields...)
		case w.form == formPath:
			names = append(names, "object", "path", "query")
		default:
			names = append(names, w.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Problem returns a sentence about why line is bad, for an error message, or "" if
// the reason is unknown. For a spec it names the place that the line lacks, and the
// place that was probably meant. It is slow.
func (f Format) Problem(line []byte) string {
	line = trimMarks(line)
	switch f.kind {
	case jsonLines:
		return f.jsonProblem(line)
	case delimitedLines:
		return f.columnProblem(line)
	case textLines:
		return f.textProblem(line)
	case w3cLines, cloudFrontLines:
		return "no line " + fieldsDirective + " with date and time, which names the columns, is before it"
	case regexLines:
		return f.regexProblem(line)
	}
	if f.wraps() && f.inner == nil && f.kind != journalLines {
		return "the format of the lines inside is not known; give it, such as " + f.text + ":clf"
	}
	return ""
}

// detectedFields returns the fields of all formats that lines of a container may have.
func detectedFields() []string {
	var names []string
	for _, n := range named {
		if !n.format.wraps() || n.format.kind == journalLines {
			names = append(names, n.format.Fields()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (f Format) jsonProblem(line []byte) string {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(line, &object); err != nil {
		return "it is not a JSON object"
	}
	var keys []string
	flatten(&keys, "", object)
	for i, w := range f.spec.wants {
		path := strings.Join(w.path, ".")
		if i > 0 && !w.must || slices.Contains(keys, path) {
			continue
		}
		if near := spelling.Nearest(path, keys, 2); near != "" {
			return fmt.Sprintf("it has no key %q for the field %s; did you mean %s?", path, w.name, near)
		}
		return fmt.Sprintf("it has no key %q for the field %s; its keys are %s", path, w.name, strings.Join(keys, ", "))
	}
	return "the value of " + strings.Join(f.spec.wants[0].path, ".") + " is not a time of the unit, or a field that must be there is empty"
}

// maxListed bounds the keys of a line that are looked at for a message.
const maxListed = 100

// flatten appends the keys of an object, those of objects in it with a dot between,
// in order.
func flatten(keys *[]string, prefix string, object map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if len(*keys) == maxListed {
			return
		}
		*keys = append(*keys, prefix+key)
		var inner map[string]json.RawMessage
		if strings.Count(prefix, ".") < maxKeys && json.Unmarshal(object[key], &inner) == nil && inner != nil {
			flatten(keys, prefix+key+".", inner)
		}
	}
}

func (f Format) columnProblem(line []byte) string {
	columns := strings.Count(string(line), string(rune(f.spec.separator))) + 1
	for _, w := range f.spec.wants {
		if w.column >= columns {
			return fmt.Sprintf("it has %d columns, and %s is column %d", columns, w.name, w.column+1)
		}
	}
	p, err := f.NewParser(Options{})
	if err != nil {
		return ""
	}
	var ev match.Event
	if time := f.spec.wants[0].column; p.delimited(line, &ev) || p.values[0] == nil {
		return ""
	} else if _, _, ok := p.time(p.values[0]); !ok {
		return fmt.Sprintf("its column %d, %s, is not a time of the unit", time+1, strconv.Quote(string(p.values[0][:min(len(p.values[0]), 40)])))
	}
	return "a field that must be there is empty"
}
