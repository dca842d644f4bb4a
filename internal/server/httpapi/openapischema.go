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

// schemas is the schemas of Go structs.
type schemas map[reflect.Type]object

// schema returns the schema of the type of v.
func (n schemas) schema(v any) object {
	if all, ok := v.(oneOf); ok {
		var list []any
		for _, x := range all {
			list = append(list, n.schema(x))
		}
		return object{"oneOf": list}
	}
	return n.of(reflect.TypeOf(v))
}

// of returns the JSON Schema of t, as encoding/json encodes it. For a struct it is a
// reference to the schema of its name.
func (n schemas) of(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[object]():
		return object{"type": "object"}
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
		if _, ok := n[t]; !ok {
			n[t] = nil // t may contain itself
			n[t] = n.members(t)
		}
		return object{"$ref": "#/components/schemas/" + t.Name()}
	}
	panic(fmt.Sprintf("httpapi: %v has no schema", t)) // found by the first New
}

// components returns all schemas by name. A test checks that all types are of package api,
// so names are unique.
func (n schemas) components() object {
	all := object{}
	for t, s := range n {
		all[t.Name()] = s
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
		if f.Tag.Get("range") == "cost" { // see checkAmount
			s["minimum"], s["maximum"] = 1, uint64(engine.MaxCost)
		}
		properties[name] = s
		absent := len(f.Index) > 1 && t.Field(f.Index[0]).Type.Kind() == reflect.Pointer // with its embedded struct
		if !optional && !absent {
			required = append(required, name)
		}
	}
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}
