package rules

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rulevalue"
	"github.com/lately-go/lately/internal/spelling"
)

// An allowedKey is a key that a mapping of the file may have, with an example of its value if
// it is required.
type allowedKey struct{ name, example string }

// mapping returns the values of n, a mapping called what in messages, by their keys.
// It returns nil, having recorded that, if n is not a mapping.
func (r *reader) mapping(n ast.Node, what string, keys []allowedKey) map[string]ast.Node {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	pairs, ok := r.pairs(n, what, "a mapping of "+strings.Join(names, ", "))
	if !ok {
		return nil
	}
	r.found(what, n)
	values := make(map[string]ast.Node, len(pairs))
	misspelled := make(map[string]bool)
	for _, p := range pairs {
		if r.checkKey(p, what, names) {
			values[p.key] = p.value
		} else {
			misspelled[spelling.Nearest(p.key, names, slips)] = true
		}
	}
	for _, k := range keys {
		// A misspelled key is one mistake, not two.
		if k.example != "" && values[k.name] == nil && !misspelled[k.name] {
			r.fail(n, "%s: missing key %s: must be given, as in \"%s: %s\"", what, k.name, k.name, k.example)
		}
	}
	return values
}

// slips is the largest number of typing errors in a key for which a suggestion is made.
const slips = 2

// checkKey reports whether the key of p is one of names, and else records a mistake.
func (r *reader) checkKey(p pair, what string, names []string) bool {
	if slices.Contains(names, p.key) {
		return true
	}
	if near := spelling.Nearest(p.key, names, slips); near != "" {
		r.fail(p.at, "%s: unknown key %q: did you mean %s?", what, rulevalue.Clip(p.key), near)
	} else {
		r.fail(p.at, "%s: unknown key %q: must be one of %s", what, rulevalue.Clip(p.key), strings.Join(names, ", "))
	}
	return false
}

// A pair is a key of a mapping and its value.
type pair struct {
	key       string
	at, value ast.Node
}

// pairs returns the keys and values of the mapping n, called what in messages. It
// reports false if n is absent or, having recorded that, not a mapping.
func (r *reader) pairs(n ast.Node, what, must string) ([]pair, bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case nil:
		return nil, false
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = append(values, n)
	default:
		r.fail(n, "%s: %s: must be %s", what, describe(n), must)
		return nil, false
	}
	pairs := make([]pair, 0, len(values))
	lines := make(map[string]int, len(values))
	for _, v := range values {
		name, ok := scalarText(v.Key)
		line, _ := position(v)
		before, twice := lines[name]
		switch {
		case !ok:
			r.fail(v, "%s: a key that is %s: must be plain text", what, describe(v.Key))
		case twice:
			r.fail(v, "%s: key %q twice: must be given once, and line %d has it", what, rulevalue.Clip(name), before)
		default:
			lines[name] = line
			pairs = append(pairs, pair{name, v.Key, v.Value})
		}
	}
	return pairs, true
}

// section returns the rules in the section n, called what in messages. It may be
// absent or empty.
func (r *reader) section(n ast.Node, what string) []ast.Node {
	switch n := n.(type) {
	case nil:
		return nil
	case *ast.SequenceNode:
		return n.Values
	}
	r.fail(n, "%s: %s: must be a list of rules, each beginning with \"- name:\"", what, describe(n))
	return nil
}

// one reads the scalar n, called what in messages, with parse, whose error says what
// it must be, also for "". It reports false if n is absent or, having recorded that,
// if parse rejects it.
func one[T any](r *reader, n ast.Node, what string, parse func(string) (T, error)) (v T, ok bool) {
	if n == nil {
		return v, false
	}
	s, _ := scalarText(n)
	parsed, err := parse(s)
	if err != nil {
		r.fail(n, "%s: %s: %v", what, describe(n), err)
		return v, false
	}
	r.found(what, n)
	return parsed, true
}

// each reads n, a scalar or a list of them, as one reads each, and yields those that
// parse accepts.
func each[T any](r *reader, n ast.Node, what string, parse func(string) (T, error)) iter.Seq2[ast.Node, T] {
	return func(yield func(ast.Node, T) bool) {
		nodes := []ast.Node{n}
		if list, ok := n.(*ast.SequenceNode); ok && len(list.Values) > 0 {
			nodes = list.Values
		}
		read := 0
		for _, element := range nodes {
			v, ok := one(r, element, what, parse)
			if !ok {
				continue
			}
			r.found(fmt.Sprintf("%s[%d]", what, read), element)
			if read++; read > 1 {
				r.found(what, n)
			}
			if !yield(element, v) {
				return
			}
		}
	}
}

// all returns what each yields.
func all[T any](r *reader, n ast.Node, what string, parse func(string) (T, error)) (values []T) {
	for _, v := range each(r, n, what, parse) {
		values = append(values, v)
	}
	return values
}

// atMost reports whether the list n, called what in messages, has no more than most
// elements, and else records a mistake.
func (r *reader) atMost(n ast.Node, what string, most int) bool {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) <= most {
		return true
	}
	r.fail(n, "%s: %d elements: must be at most %d", what, len(list.Values), most)
	return false
}

// scalarText returns the text of a scalar as it was written: 404 and "404" are
// the same. It is empty for null.
func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.NullNode:
		return "", true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// describe says what n is, for a message.
func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		if len(n.Values) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	if s, _ := scalarText(n); s != "" {
		return strconv.Quote(rulevalue.Clip(s))
	}
	return "empty"
}

// parseBool parses true or false.
func parseBool(s string) (bool, error) {
	v, err := strconv.ParseBool(s)
	if err != nil || len(s) < len("true") {
		return false, errors.New("must be true or false")
	}
	return v, nil
}

// oneOf returns a parser of names, which returns the index of the name.
func oneOf(names ...string) func(string) (int, error) {
	return func(s string) (int, error) {
		i := slices.Index(names, s)
		if i < 0 {
			return 0, errors.New("must be " + join(names, "or"))
		}
		return i, nil
	}
}

// parseNumber returns a parser of numbers without sign and exponent that fit, or all if that is nil.
func parseNumber(must string, fits func(float64) bool) func(string) (float64, error) {
	return func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.Trim(s, "0123456789.") != "" || fits != nil && !fits(f) {
			return 0, errors.New("must be " + must)
		}
		return f, nil
	}
}

const maxName = 64

const nameBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// parseName parses the name of a rule, counter or field. Names are written into lines
// of a protocol and into metrics as they are.
func parseName(s string) (string, error) {
	if s == "" || len(s) > maxName || strings.Trim(s, nameBytes) != "" {
		return "", fmt.Errorf("must be 1 to %d letters, digits, '-', '_' and '.'", maxName)
	}
	return s, nil
}

// readName reads the name of a rule or counter, which no other has.
func (r *reader) readName(n ast.Node) string {
	name, ok := one(r, n, "name", parseName)
	if !ok {
		return ""
	}
	if at, taken := r.names[name]; taken {
		r.fail(n, "name: %q: must be unique among rules and counters, and %s has it", name, at.from(r.file))
		delete(r.places, "name")
		return name
	}
	r.names[name] = r.placeOf(n)
	return name
}
