package match_test

import (
	"testing"

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
	for i, when := range whens {
		c, err := when.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if needs, want := c.NeedsAnswer(), i != 0 && i != len(whens)-1; needs != want {
			t.Errorf("%+v needs an answer: %t, want %t", when, needs, want)
		}
		request := c.Request()
		if request.NeedsAnswer() {
			t.Errorf("%+v without its answer needs one", when)
		}
		for _, method := range []string{"GET", "POST"} {
			for _, path := range []string{"/login", "/"} {
				for _, host := range []string{"", "a", "1"} {
					var e match.Event
					e.SetString(match.Method, method)
					e.SetString(match.Path, path)
					e.SetString(match.Host, host)
					if e.HasAnswer() {
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
					if holds != can || !e.HasAnswer() {
						t.Errorf("%+v: %s %s on %q can hold: %t, and holds with an answer: %t", when, method, path, host, can, holds)
					}
				}
			}
		}
	}
}
