package yamlfile

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/internal/rule/rulevalue"
	"github.com/lately-go/lately/internal/rule/spelling"
)

// Mapping returns the values of n, a mapping called what in messages, by their keys, which must be among keys. A
// required one has an example of its value: "limit: 60 per 1m". It returns nil, having recorded that, if n is not
// a mapping.
func (r *Reader) Mapping(n ast.Node, what string, keys []string) map[string]ast.Node {
	names := make([]string, len(keys))
	for i, key := range keys {
		names[i], _, _ = strings.Cut(key, ": ")
	}
	pairs, ok := r.Pairs(n, what, "a mapping of "+strings.Join(names, ", "))
	if !ok {
		return nil
	}
	r.Found(what, n)
	values := make(map[string]ast.Node, len(pairs))
	misspelled := make(map[string]bool)
	for _, p := range pairs {
		if r.checkKey(p, what, names) {
			values[p.Key] = p.Value
		} else {
			misspelled[spelling.Nearest(p.Key, names, Slips)] = true
		}
	}
	for i, name := range names {
		// A misspelled key is one mistake, not two.
		if name != keys[i] && values[name] == nil && !misspelled[name] {
			r.Fail(n, "%s: missing key %s: must be given, as in %q", what, name, keys[i])
		}
	}
	return values
}

// Slips is the largest number of typing errors in a key for which a suggestion is made.
const Slips = 2

// checkKey reports whether the key of p is one of names, and else records a mistake.
func (r *Reader) checkKey(p Pair, what string, names []string) bool {
	if slices.Contains(names, p.Key) {
		return true
	}
	if near := spelling.Nearest(p.Key, names, Slips); near != "" {
		r.Fail(p.At, "%s: unknown key %q: did you mean %s?", what, rulevalue.Clip(p.Key), near)
	} else {
		r.Fail(p.At, "%s: unknown key %q: must be one of %s", what, rulevalue.Clip(p.Key), strings.Join(names, ", "))
	}
	return false
}

// A Pair is a key of a mapping and its value.
type Pair struct {
	Key       string
	At, Value ast.Node
}

// Pairs returns the keys and values of the mapping n, called what in messages. It
// reports false if n is absent or, having recorded that, not a mapping.
func (r *Reader) Pairs(n ast.Node, what, must string) ([]Pair, bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case nil:
		return nil, false
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = append(values, n)
	default:
		r.Fail(n, "%s: %s: must be %s", what, Describe(n), must)
		return nil, false
	}
	pairs := make([]Pair, 0, len(values))
	lines := make(map[string]int, len(values))
	for _, v := range values {
		name, ok := Text(v.Key)
		line, _ := Position(v)
		before, twice := lines[name]
		switch {
		case !ok:
			r.Fail(v, "%s: a key that is %s: must be plain text", what, Describe(v.Key))
		case twice:
			r.Fail(v, "%s: key %q twice: must be given once, and line %d has it", what, rulevalue.Clip(name), before)
		default:
			lines[name] = line
			pairs = append(pairs, Pair{name, v.Key, v.Value})
		}
	}
	return pairs, true
}

// One reads the scalar n, called what in messages, with parse, whose error says what
// it must be, also for "". It reports false if n is absent or, having recorded that,
// if parse rejects it.
func One[T any](r *Reader, n ast.Node, what string, parse func(string) (T, error)) (v T, ok bool) {
	if n == nil {
		return v, false
	}
	s, _ := Text(n)
	parsed, err := parse(s)
	if err != nil {
		r.Fail(n, "%s: %s: %v", what, Describe(n), err)
		return v, false
	}
	r.Found(what, n)
	return parsed, true
}

// Each reads n, a scalar or a list of them, as One reads each, and yields those that
// parse accepts.
func Each[T any](r *Reader, n ast.Node, what string, parse func(string) (T, error)) iter.Seq2[ast.Node, T] {
	return func(yield func(ast.Node, T) bool) {
		nodes := []ast.Node{n}
		if list, ok := n.(*ast.SequenceNode); ok && len(list.Values) > 0 {
			nodes = list.Values
		}
		read := 0
		for _, element := range nodes {
			v, ok := One(r, element, what, parse)
			if !ok {
				continue
			}
			r.Found(fmt.Sprintf("%s[%d]", what, read), element)
			if read++; read > 1 {
				r.Found(what, n)
			}
			if !yield(element, v) {
				return
			}
		}
	}
}

// All returns what Each yields.
func All[T any](r *Reader, n ast.Node, what string, parse func(string) (T, error)) (values []T) {
	for _, v := range Each(r, n, what, parse) {
		values = append(values, v)
	}
	return values
}

// AtMost reports whether the list n, called what in messages, has no more than most
// elements, and else records a mistake.
func (r *Reader) AtMost(n ast.Node, what string, most int) bool {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) <= most {
		return true
	}
	r.Fail(n, "%s: %d elements: must be at most %d", what, len(list.Values), most)
	return false
}

// Text returns the text of a scalar as it was written: 404 and "404" are
// the same. It is empty for null.
func Text(n ast.Node) (string, bool) {
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

// Describe returns a description of n, for a message.
func Describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		if len(n.Values) == 0 {
			return "an empty list"
		}
		return "a list"
	}
	if s, _ := Text(n); s != "" {
		return strconv.Quote(rulevalue.Clip(s))
	}
	return "empty"
}

// Bool parses true or false.
func Bool(s string) (bool, error) {
	v, err := strconv.ParseBool(s)
	if err != nil || len(s) < len("true") {
		return false, errors.New("must be true or false")
	}
	return v, nil
}

// OneOf returns a parser of names, which returns the index of the name.
func OneOf(names ...string) func(string) (int, error) {
	return func(s string) (int, error) {
		i := slices.Index(names, s)
		if i < 0 {
			return 0, errors.New("must be " + rulevalue.Join(names, "or"))
		}
		return i, nil
	}
}

// Number returns a parser of numbers without sign and exponent that fit, or all if that is nil.
func Number(must string, fits func(float64) bool) func(string) (float64, error) {
	return func(s string) (float64, error) {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || strings.Trim(s, "0123456789.") != "" || fits != nil && !fits(f) {
			return 0, errors.New("must be " + must)
		}
		return f, nil
	}
}

// NonEmpty parses any text but the empty one.
func NonEmpty(s string) (string, error) {
	if s == "" {
		return "", errors.New("must be a value or a list of values")
	}
	return s, nil
}
