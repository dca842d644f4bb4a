package client

import (
	"reflect"
	"strings"
	"testing"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// TestTypesMatchTheAPI requires every struct that a Client returns to be a type of package api, which the server uses too,
// or a decision as limiters return it, also with the ID of its reservation.
func TestTypesMatchTheAPI(t *testing.T) {
	wire, limiter := reflect.TypeFor[api.Decision]().PkgPath(), reflect.TypeFor[ratelimit.Decision]()
	c, structs := reflect.TypeFor[*Client](), 0
	for i := range c.NumMethod() {
		m := c.Method(i)
		for j := range m.Type.NumOut() {
			out := m.Type.Out(j)
			for out.Kind() == reflect.Slice || out.Kind() == reflect.Pointer {
				out = out.Elem()
			}
			if out.Kind() != reflect.Struct || !strings.Contains(out.PkgPath(), ".") {
				continue
			}
			if structs++; out.PkgPath() != wire && out != limiter && out != reflect.TypeFor[Reservation]() {
				t.Errorf("%s returns a %v of %s", m.Name, out, out.PkgPath())
			}
		}
	}
	if structs < 10 {
		t.Errorf("only %d results are structs", structs)
	}
}
