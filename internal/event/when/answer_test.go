package when_test

import (
	"testing"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestRequestOfCondition compares the condition of a request, for all requests with three fields, with whether an answer
// makes the whole condition hold.
func TestRequestOfCondition(t *testing.T) {
	whens := []match.When{
		{},
		{Status: []string{"404"}},
		{Path: []string{"/login"}, Status: []string{"4xx"}},
		{Method: []string{"POST"}, Fields: map[string][]string{"size": {"1*"}, "host": {"a"}}},
		{Fields: map[string][]string{"duration": {"1*"}}},
		{Fields: map[string][]string{"size | host": {"1*"}}},
		{Any: []match.When{{Path: []string{"/login"}}, {Status: []string{"500"}}}},
		{Any: []match.When{{Path: []string{"/login"}, Status: []string{"4xx"}}, {Method: []string{"GET"}}}},
		{Not: []match.When{{Path: []string{"/login"}, Status: []string{"200"}}, {Method: []string{"GET"}}}},
		{Not: []match.When{{Path: []string{"/login"}, Any: []match.When{{Status: []string{"404"}}, {Method: []string{"GET"}}}}}},
		{Not: []match.When{{Method: []string{"GET"}, Not: []match.When{{Status: []string{"404"}}}}}},
		{Path: []string{"/login"}},
	}
	for i, w := range whens {
		c := compile(t, w)
		if needs, want := when.NeedsAnswer(&w), i != 0 && i != len(whens)-1; needs != want {
			t.Errorf("%+v needs an answer: %t, want %t", w, needs, want)
		}
		before := when.Request(&w)
		request := compile(t, before)
		if when.NeedsAnswer(&before) {
			t.Errorf("%+v without its answer needs one", w)
		}
		for _, method := range []string{"GET", "POST"} {
			for _, path := range []string{"/login", "/"} {
				for _, host := range []string{"", "a", "1"} {
					var e match.Event
					e.SetString(match.Method, method)
					e.SetString(match.Path, path)
					e.SetString(match.Host, host)
					if eventfield.HasAnswer(&e) {
						t.Errorf("%v has an answer", &e)
					}
					can := request.Holds(&e)
					holds := false
					for _, status := range []string{"200", "404", "500"} {
						for _, number := range []string{"10", "20"} {
							e.SetString(match.Status, status)
							e.SetString(match.Size, number)
							e.SetNamedString("duration", number)
							holds = holds || c.Holds(&e)
						}
					}
					if holds != can || !eventfield.HasAnswer(&e) {
						t.Errorf("%+v: %s %s on %q can hold: %t, and holds with an answer: %t", w, method, path, host, can, holds)
					}
				}
			}
		}
	}
}

func compile(t *testing.T, w match.When) match.Condition {
	t.Helper()
	c := must.Get(w.Compile())(t)
	return c
}
