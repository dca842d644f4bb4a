package when

import (
	"maps"
	"slices"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/match"
)

// NeedsAnswer reports whether w uses a field of the answer: status, size or duration.
func NeedsAnswer(w *match.When) bool {
	needs := func(w match.When) bool { return NeedsAnswer(&w) }
	return ownAnswer(w) || slices.ContainsFunc(w.Any, needs) || slices.ContainsFunc(w.Not, needs)
}

// ownAnswer reports whether w itself has a condition on the answer.
func ownAnswer(w *match.When) bool { return slices.ContainsFunc(ownFields(w), isOfAnswer) }

func isOfAnswer(name string) bool {
	return slices.ContainsFunc(alternatives(name), eventfield.IsOfAnswer)
}

// Request returns the condition for a request under which w holds for some answer to it.
func Request(w *match.When) match.When {
	r, never := beforeAnswer(w, true)
	if never {
		any := []string{"GET"}
		return match.When{Method: any, Not: []match.When{{Method: any}}}
	}
	return r
}

// beforeAnswer returns the condition of a request under which w holds for some answer, or for all, and whether there
// is none.
func beforeAnswer(w *match.When, some bool) (r match.When, never bool) {
	if never = !some && ownAnswer(w); never {
		return r, true
	}
	r = match.When{Method: w.Method, Path: w.Path, Client: w.Client, Fields: maps.Clone(w.Fields)}
	maps.DeleteFunc(r.Fields, func(name string, _ []string) bool { return isOfAnswer(name) })
	always := false // one of the alternatives holds
	for i := range w.Any {
		if one, never := beforeAnswer(&w.Any[i], some); !never {
			r.Any, always = append(r.Any, one), always || IsZero(one)
		}
	}
	if never = len(w.Any) > 0 && len(r.Any) == 0; always {
		r.Any = nil
	}
	for i := range w.Not {
		if one, out := beforeAnswer(&w.Not[i], !some); !out {
			r.Not, never = append(r.Not, one), never || IsZero(one)
		}
	}
	return r, never
}
