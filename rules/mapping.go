package rules

import (
	"iter"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/lately-go/lately/match"
)

// An entry is a key that a mapping of the file may have, and how its value is
// read into the T that the mapping describes.
type entry[T any] struct {
	key  string
	need string // what to write when a required key is missing; "" when it is optional
	read func(r *reader, v *T, n ast.Node)
}

// readMapping reads the mapping n, called what in messages, into v.
func readMapping[T any](r *reader, n ast.Node, what string, v *T, entries []entry[T]) {
	seen := make(map[string]bool, len(entries))
	pairs, ok := r.pairs(n, what, "a mapping of "+entryList(entries))
	if !ok {
		return
	}
	for key, value := range pairs {
		e := find(entries, key.text)
		if e == nil {
			// A slip of a required key is one mistake, not two.
			seen[r.unknown(key, what, keysOf(entries))] = true
			continue
		}
		seen[key.text] = true
		e.read(r, v, value)
	}
	for _, e := range entries {
		if e.need != "" && !seen[e.key] {
			r.fail(n, "%s has no %s; %s", what, e.key, e.need)
		}
	}
}

func find[T any](entries []entry[T], key string) *entry[T] {
	for i := range entries {
		if entries[i].key == key {
			return &entries[i]
		}
	}
	return nil
}

func keysOf[T any](entries []entry[T]) []string {
	keys := make([]string, len(entries))
	for i := range entries {
		keys[i] = entries[i].key
	}
	return keys
}

func entryList[T any](entries []entry[T]) string {
	return strings.Join(keysOf(entries), ", ")
}

// unknown records a key that what cannot have, and returns the one that was
// probably meant, if any.
func (r *reader) unknown(key text, what string, allowed []string) string {
	if near := match.Suggest(key.text, allowed, slips); near != "" {
		r.fail(key.node, "%s has the unknown key %q; did you mean %s?", what, clip(key.text), near)
		return near
	}
	r.fail(key.node, "%s has the unknown key %q; allowed is %s", what, clip(key.text), strings.Join(allowed, ", "))
	return ""
}

// A text is a scalar of the file.
type text struct {
	text string
	node ast.Node
}

// pairs returns the keys and values of the mapping n, called what in messages.
// Each key comes once; a second one is a mistake. It reports false, having
// recorded that, when n is no mapping. A null mapping has no keys.
func (r *reader) pairs(n ast.Node, what, allowed string) (iter.Seq2[text, ast.Node], bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = append(values, n)
	default:
		r.fail(n, "%s is %s; allowed is %s", what, describe(n), allowed)
		return nil, false
	}
	return func(yield func(text, ast.Node) bool) {
		lines := make(map[string]int, len(values))
		for _, v := range values {
			key, ok := scalarText(v.Key)
			if !ok {
				r.fail(v, "%s has a key that is no plain text", what)
				continue
			}
			line, _ := position(v)
			if before, twice := lines[key]; twice {
				r.fail(v, "%s has the key %q twice; the first is in line %d", what, clip(key), before)
				continue
			}
			lines[key] = line
			if !yield(text{key, v.Key}, v.Value) {
				return
			}
		}
	}, true
}

// items returns the elements of the list n, called what in messages; none when
// n is null.
func (r *reader) items(n ast.Node, what, allowed string) []ast.Node {
	switch n := n.(type) {
	case *ast.SequenceNode:
		return n.Values
	case *ast.NullNode:
		return nil
	}
	r.fail(n, "%s is %s; allowed is %s", what, describe(n), allowed)
	return nil
}

// scalar returns the text of n, called what in messages. It reports false,
// having recorded that, when n is no scalar or has no text.
func (r *reader) scalar(n ast.Node, what, allowed string) (string, bool) {
	s, ok := scalarText(n)
	switch {
	case !ok:
		r.fail(n, "%s is %s; allowed is %s", what, describe(n), allowed)
		return "", false
	case s == "":
		r.fail(n, "%s is empty; allowed is %s", what, allowed)
		return "", false
	}
	return s, true
}

// scalars returns the texts of n, which is a scalar or a list of them, called
// what in messages. What is no scalar is recorded and left out.
func (r *reader) scalars(n ast.Node, what, allowed string) []text {
	list, isList := n.(*ast.SequenceNode)
	if !isList {
		if s, ok := r.scalar(n, what, allowed); ok {
			return []text{{s, n}}
		}
		return nil
	}
	if len(list.Values) == 0 {
		r.fail(n, "%s is an empty list; allowed is %s", what, allowed)
	}
	var texts []text
	for _, v := range list.Values {
		if s, ok := r.scalar(v, what, allowed); ok {
			texts = append(texts, text{s, v})
		}
	}
	return texts
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
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	if s, ok := scalarText(n); ok && s != "" {
		return strconv.Quote(clip(s))
	}
	return "empty"
}

// slips is how many typing errors a key may have for [match.Suggest] to find the
// one that was meant.
const slips = 2
