package when

import (
	"maps"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/match"
)

// Fields returns the names of the fields that w uses. Alternatives are one name, as in keys.
func Fields(w *match.When) []string {
	names := ownFields(w)
	for i := range w.Any {
		names = append(names, Fields(&w.Any[i])...)
	}
	for i := range w.Not {
		names = append(names, Fields(&w.Not[i])...)
	}
	return names
}

// Needs returns the names of the fields that an event must have for w to hold.
func Needs(w *match.When) []string {
	names := ownFields(w)
	if len(w.Any) == 0 {
		return names
	}
	common := Needs(&w.Any[0])
	for i := range w.Any[1:] {
		needs := Needs(&w.Any[1+i])
		common = slices.DeleteFunc(common, func(name string) bool { return !slices.Contains(needs, name) })
	}
	return append(names, common...)
}

// ownFields returns the fields with conditions in w itself, not in its parts.
func ownFields(w *match.When) (names []string) {
	add := func(f match.Field, looks bool) {
		if looks {
			names = append(names, f.String())
		}
	}
	add(match.Method, len(w.Method) > 0)
	add(match.Path, len(w.Path) > 0)
	add(match.Status, len(w.Status) > 0)
	add(match.Client, len(w.Client) > 0)
	for _, name := range slices.Sorted(maps.Keys(w.Fields)) {
		names = append(names, strings.Join(alternatives(name), keyvalue.Separator))
	}
	return names
}

// alternatives returns the names of the fields in "user | client".
func alternatives(name string) (names []string) {
	for one := range strings.SplitSeq(name, "|") {
		names = append(names, strings.TrimSpace(one))
	}
	return names
}
