package match

import (
	"slices"
	"testing"
	"time"
)

func TestEvent(t *testing.T) {
	var e Event
	e.Time = time.Unix(1, 0)
	e.SetString(Method, "GET")
	e.Set(Client, []byte("192.0.2.1"))
	e.SetNamedString("status", "404") // a well-known field by its name
	e.SetNamedString("tenant", "a")
	e.SetNamed("region", []byte("eu"))
	e.SetNamedString("tenant", "b") // the last value counts
	for name, want := range map[string]string{
		"method": "GET", "client": "192.0.2.1", "status": "404", "tenant": "b", "region": "eu", "user": "", "other": "",
	} {
		if got := string(e.GetNamed(name)); got != want {
			t.Errorf("%s is %q; want %q", name, got, want)
		}
	}
	if got := string(e.Get(Status)); got != "404" {
		t.Errorf("the status set by name is %q", got)
	}
	e.Reset()
	for _, name := range []string{"method", "client", "status", "tenant", "region"} {
		if got := e.GetNamed(name); len(got) != 0 {
			t.Errorf("%s is %q after Reset", name, got)
		}
	}
	if !e.Time.IsZero() {
		t.Errorf("the time is %v after Reset", e.Time)
	}
}

// A copy has the values of its event, also after these and the buffer have changed.
func TestEventCopyTo(t *testing.T) {
	var e, older, dst Event
	buf := make([]byte, 0, 20)
	older.SetString(Agent, "curl")
	older.SetNamedString("region", "eu")
	older.CopyTo(&dst, nil) // nothing of it may stay
	line := []byte("192.0.2.1 /a/../b beta")
	e.Time = time.Unix(1, 0)
	e.Set(Client, line[:9])
	e.Set(Path, line[10:17])
	e.SetNamed("tenant", line[18:])
	buf = e.CopyTo(&dst, buf)
	clear(line)
	var next Event
	next.SetString(Client, "198.51.100.1")
	buf = next.CopyTo(new(Event), buf)
	if got := string(dst.CleanPath()); got != "/b" {
		t.Errorf("the path is %q", got)
	}
	if got := names(&dst); !slices.Equal(got, []string{"tenant", "client", "path"}) || !dst.Time.Equal(time.Unix(1, 0)) {
		t.Errorf("the copy has the fields %q and the time %v", got, dst.Time)
	}
	if a, b := string(dst.Get(Client)), string(dst.GetNamed("tenant")); a != "192.0.2.1" || b != "beta" {
		t.Errorf("client and tenant are %q and %q", a, b)
	}
	if n := testing.AllocsPerRun(100, func() { buf = next.CopyTo(&dst, buf[:0]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSetTarget(t *testing.T) {
	for target, want := range map[string][3]string{
		"/login":         {"/login", "/login", ""},
		"/login?x=1?y":   {"/login", "/login", "x=1?y"},
		"/a/../b#?x":     {"/a/../b#", "/a/../b#", "x"},
		"http://h/a?b":   {"http://h/a", "http://h/a", "b"},
		"/login?":        {"/login", "/login", ""},
		"/caf%C3%A9?%3F": {"/caf%C3%A9", "/caf%C3%A9", "%3F"},
	} {
		var e Event
		e.SetTarget(target)
		if got := [3]string{string(e.Get(Object)), string(e.Get(Path)), string(e.Get(Query))}; got != want {
			t.Errorf("object, path and query of %q are %q; want %q", target, got, want)
		}
	}
}

func TestEventDoesNotAllocate(t *testing.T) {
	var e Event
	fill := func() {
		e.Reset()
		e.SetString(Client, "192.0.2.1")
		e.SetNamedString("tenant", "a")
		e.SetNamedString("region", "eu")
		e.GetNamed("tenant")
	}
	fill()
	if n := testing.AllocsPerRun(100, fill); n != 0 {
		t.Errorf("filling an event again allocates %v times", n)
	}
}

func TestSetPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Errorf("Set of a field that is none did not panic")
		}
	}()
	new(Event).Set(numFields, nil)
}

func TestFields(t *testing.T) {
	for i, name := range fieldNames {
		f, ok := fieldNamed(name)
		if !ok || f != Field(i) || f.String() != name {
			t.Errorf("field %d is %q, which is the name of %d, %t", i, name, f, ok)
		}
	}
	if _, ok := fieldNamed("Client"); ok || numFields.String() != "field?" {
		t.Errorf("a name or number that is none is taken")
	}
}

func names(e *Event) (all []string) {
	for name := range e.Fields() {
		all = append(all, name)
	}
	return all
}
