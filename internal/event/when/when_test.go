package when_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/lately-go/lately/internal/event/when"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/match"
)

// TestClone changes a clone, and not the original.
func TestClone(t *testing.T) {
	w := match.When{Any: []match.When{{Method: []string{"GET"}}}, Not: []match.When{{Not: []match.When{{Status: []string{"404"}}}}}}
	c := when.Clone(w)
	c.Any[0].Method[0], c.Not[0].Not[0].Status[0] = "POST", "500"
	if w.Any[0].Method[0] != "GET" || w.Not[0].Not[0].Status[0] != "404" {
		t.Errorf("the original is %+v", w)
	}
}

func TestAdd(t *testing.T) {
	var w match.When
	if !when.IsZero(w) {
		t.Error("the zero condition is not zero")
	}
	for _, add := range [][2]string{{"method", "GET"}, {"path", "/api/**"}, {"status", "5xx"}, {"client", "192.0.2.0/24"}, {"tenant", "a*"}, {"tenant", "b"}} {
		must.Do(t, when.Add(&w, add[0], add[1]))
	}
	want := match.When{
		Method: []string{"GET"}, Path: []string{"/api/**"}, Status: []string{"5xx"}, Client: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		Fields: map[string][]string{"tenant": {"a*", "b"}},
	}
	if !reflect.DeepEqual(w, want) || when.IsZero(w) {
		t.Errorf("the condition is %+v, want %+v", w, want)
	}
	for _, wrong := range [][2]string{{"method", ""}, {"path", "api"}, {"status", "6xx"}, {"client", "192.0.2.1/24"}, {"", "x"}} {
		if err := when.Add(&w, wrong[0], wrong[1]); err == nil || !reflect.DeepEqual(w, want) {
			t.Errorf("%q: %v, and the condition is %+v", wrong, err, w)
		}
	}
}
