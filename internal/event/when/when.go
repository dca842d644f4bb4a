// Package when copies and builds conditions of rules, and returns the fields that they need.
package when

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/match"
)

// IsZero reports whether w holds for every event.
func IsZero(w match.When) bool {
	return len(ownFields(&w))+len(w.Any)+len(w.Not) == 0
}

// Clone returns a copy of w that shares nothing with it.
func Clone(w match.When) match.When {
	w.Method, w.Path, w.Status, w.Client = slices.Clone(w.Method), slices.Clone(w.Path), slices.Clone(w.Status), slices.Clone(w.Client)
	w.Fields = maps.Clone(w.Fields)
	for name, patterns := range w.Fields {
		w.Fields[name] = slices.Clone(patterns)
	}
	w.Any, w.Not = cloneAll(w.Any), cloneAll(w.Not)
	return w
}

func cloneAll(ws []match.When) []match.When {
	ws = slices.Clone(ws)
	for i := range ws {
		ws[i] = Clone(ws[i])
	}
	return ws
}

// Add adds a pattern of the field of that name to w, with the meaning that it has under
// when in a rules file: "5xx" of status, "/api/**" of path, "192.0.2.0/24" of client.
// If the pattern is wrong, the error states what it must be, and w does not change.
func Add(w *match.When, field, pattern string) error {
	one := match.When{}
	switch field {
	case "method":
		one.Method = []string{pattern}
	case "path":
		one.Path = []string{pattern}
	case "status":
		one.Status = []string{pattern}
	case "client":
		prefix, err := address.ParsePrefix(pattern)
		if err != nil {
			return fmt.Errorf("client: %w", err)
		}
		one.Client = []netip.Prefix{prefix}
	default:
		one.Fields = map[string][]string{field: {pattern}}
	}
	if _, err := one.Compile(); err != nil {
		return err
	}
	w.Method = append(w.Method, one.Method...)
	w.Path = append(w.Path, one.Path...)
	w.Status = append(w.Status, one.Status...)
	w.Client = append(w.Client, one.Client...)
	if one.Fields != nil {
		if w.Fields == nil {
			w.Fields = make(map[string][]string)
		}
		w.Fields[field] = append(w.Fields[field], pattern)
	}
	return nil
}
