package httpapi

import (
	"fmt"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

// schemas is the schemas of Go structs, by the names of their types.
type schemas map[string]namedSchema

type namedSchema struct {
	t      reflect.Type
	schema object
}

// schema returns the schema of the type of v.
func (n schemas) schema(v any) object {
	switch v := v.(type) {
	case oneOf:
		var list []any
		for _, x := range v {
			list = append(list, n.schema(x))
		}
		return object{"oneOf": list}
	case text:
		return object{"type": "string"}
	case anything:
		return object{"type": "object"}
	}
	return n.of(reflect.TypeOf(v))
}

// of returns the JSON Schema of t, as encoding/json encodes it. For a struct it is a
// reference to the schema of its name.
func (n schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[netip.Prefix]():
		return object{"type": "string"}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	case reflect.TypeFor[api.Texts]():
		one := object{"type": "string"}
		return object{"oneOf": []any{one, object{"type": "array", "items": one, "minItems": 1}}}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Slice:
		return object{"type": "array", "items": n.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": n.of(t.Elem())}
	case reflect.Pointer:
		return object{"anyOf": []any{n.of(t.Elem()), object{"type": "null"}}}
	case reflect.Struct:
		return n.reference(t)
	}
	panic(fmt.Sprintf("httpapi: %v has no schema", t)) // found by the first New
}

// reference returns a reference to the schema of the struct t, which it adds to n.
func (n schemas) reference(t reflect.Type) object {
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if of, ok := n[name]; ok && of.t != t {
		panic(fmt.Sprintf("httpapi: %v and %v have one name", of.t, t)) // found by the first New
	} else if !ok {
		n[name] = namedSchema{t: t} // t may contain itself
		n[name] = namedSchema{t, n.members(t)}
	}
	return object{"$ref": "#/components/schemas/" + name}
}

// components returns all schemas by name.
func (n schemas) components() object {
	all := object{}
	for name, of := range n {
		all[name] = of.schema
	}
	return all
}

// members returns the schema of an object with the members of t and no others.
func (n schemas) members(t reflect.Type) object {
	properties, required := object{}, []any{}
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("json")
		if !ok || tag == "-" {
			continue // embedded, or not encoded
		}
		name, options, _ := strings.Cut(tag, ",")
		optional := strings.Contains(options, "omit")
		ft := f.Type
		if optional && ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		s := n.of(ft)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
		}
		if f.Tag.Get("range") == "cost" { // see checkCost
			s["minimum"], s["maximum"] = 1, uint64(engine.MaxCost)
		}
		properties[name] = s
		if !optional && !behindPointer(t, f.Index) {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// behindPointer reports whether the field at index of t is in an embedded struct that
// may not be there.
func behindPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		f := t.Field(i)
		if f.Type.Kind() == reflect.Pointer {
			return true
		}
		t = f.Type
	}
	return false
}
