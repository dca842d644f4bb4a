package httpapi

import (
	"reflect"
	"testing"

	"github.com/lately-go/lately/api"
)

// TestTypesMatchTheAPI has every body and answer of a route, and so every schema of
// the OpenAPI document, be a type of package api, which the client uses too.
func TestTypesMatchTheAPI(t *testing.T) {
	want := reflect.TypeFor[api.Decision]().PkgPath()
	var check func(id string, v any)
	check = func(id string, v any) {
		switch v := v.(type) {
		case nil, string, object:
		case oneOf:
			for _, x := range v {
				check(id, x)
			}
		default:
			if got := reflect.TypeOf(v).PkgPath(); got != want {
				t.Errorf("route %s has a %T, of %s", id, v, got)
			}
		}
	}
	n := schemas{}
	for _, r := range routes() {
		check(r.id, r.in)
		check(r.id, r.out)
		for _, v := range []any{r.in, r.out} {
			if v != nil {
				n.schema(v)
			}
		}
	}
	if len(n) < 20 {
		t.Errorf("only %d schemas", len(n))
	}
	for of := range n {
		if of.PkgPath() != want {
			t.Errorf("the schema %s is of %s", of.Name(), of.PkgPath())
		}
	}
}
