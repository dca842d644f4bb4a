package eventfield_test

import (
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/eventfield"
	"github.com/lately-go/lately/match"
)

// The path of an event may be a whole target, unless it has a query of its own.
func TestSplitPath(t *testing.T) {
	for _, c := range []struct{ path, query, wantPath, wantQuery string }{
		{"/login", "", "/login", ""},
		{"/login?x=1?y", "", "/login", "x=1?y"},
		{"/login?", "", "/login", ""},
		{"/login?x=1", "own", "/login", "own"},
		{"?x=1", "", "?x=1", ""},
	} {
		var e match.Event
		e.SetString(match.Path, c.path)
		e.SetString(match.Query, c.query)
		eventfield.SplitPath(&e)
		if path, query := string(e.Get(match.Path)), string(e.Get(match.Query)); path != c.wantPath || query != c.wantQuery {
			t.Errorf("%+v: path %q and query %q", c, path, query)
		}
	}
}

// The names are those that package match uses.
func TestNames(t *testing.T) {
	var e match.Event
	e.SetOrigin("a.log", "clf")
	e.SetNamedString(eventfield.Duration, "0.5")
	if got := eventfield.Names(&e); !slices.Equal(got, []string{eventfield.Log, eventfield.Format, eventfield.Duration}) || !e.HasAnswer() {
		t.Errorf("the fields are %q", got)
	}
	if name, ok := eventfield.Unknown(&e, []string{eventfield.Log, eventfield.Duration}); !ok || name != eventfield.Format {
		t.Errorf("%q is unknown: %t", name, ok)
	}
	for _, name := range match.FieldNames() {
		c, err := match.When{Fields: map[string][]string{name: {"x"}}}.Compile()
		if err != nil || c.NeedsAnswer() != eventfield.IsOfAnswer(name) {
			t.Errorf("%s is of the answer: %t, %v", name, eventfield.IsOfAnswer(name), err)
		}
	}
	if c, err := (match.When{Fields: map[string][]string{eventfield.Duration: {"1"}}}).Compile(); err != nil || !c.NeedsAnswer() {
		t.Error("the duration is not of the answer")
	}
}
