package eventfield_test

import (
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/event/eventfield"
	"github.com/lately-go/lately/internal/test/must"
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

// The names are the same as in package match.
func TestNames(t *testing.T) {
	var e match.Event
	eventfield.SetOrigin(&e, "a.log", "clf")
	e.SetNamedString(eventfield.Duration, "0.5")
	if got := eventfield.Names(&e); !slices.Equal(got, []string{eventfield.Log, eventfield.Format, eventfield.Duration}) || !eventfield.HasAnswer(&e) {
		t.Errorf("the fields are %q", got)
	}
	if name, ok := eventfield.Unknown(&e, []string{eventfield.Log, eventfield.Duration}); !ok || name != eventfield.Format {
		t.Errorf("%q is unknown: %t", name, ok)
	}
	for i, name := range eventfield.WellKnown() {
		f, ok := eventfield.Named(name)
		if !ok || f != match.Field(i) || f.String() != name {
			t.Errorf("field %d is %q, which is the name of %d, %t", i, name, f, ok)
		}
	}
	if next := match.Agent + 1; match.Client != 0 || next.String() != "field?" {
		t.Errorf("the first and the last field are not the client and the agent: %v follows", next)
	}
	if _, ok := eventfield.Named("Client"); ok {
		t.Error("a name that no field has is taken")
	}
}

// The log of an event is a field for conditions, and replaces a field of that name.
func TestSetOrigin(t *testing.T) {
	var e match.Event
	e.SetNamedString("log", "mine")
	eventfield.SetOrigin(&e, "/var/log/nginx/access.log", "clf")
	if got := eventfield.Names(&e); !slices.Equal(got, []string{"log", "format"}) {
		t.Errorf("the fields are %q", got)
	}
	for pattern, want := range map[string]bool{"/var/log/nginx/*": true, "/var/log/*": false, "/var/**": true, "mine": false} {
		c := must.Get(match.When{Fields: map[string][]string{"log": {pattern}, "format": {"clf"}}}.Compile())(t)
		if c.Holds(&e) != want || c.Holds(new(match.Event)) {
			t.Errorf("log: %s holds: %t, want %t", pattern, !want, want)
		}
	}
	if n := testing.AllocsPerRun(100, func() { e.Reset(); eventfield.SetOrigin(&e, "a", "b") }); n != 0 {
		t.Errorf("it allocates %v times", n)
	}
}
