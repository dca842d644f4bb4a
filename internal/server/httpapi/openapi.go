package httpapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
	"github.com/lately-go/lately/internal/server/engine"
)

// oneOf is the type of a body that is one of these. A body that is not JSON is a string.
type oneOf []any

// An object is a JSON object of the document.
type object = map[string]any

// newDocument returns the OpenAPI 3.1 document of the routes. Schemas come from the Go
// types that handlers decode and encode, so they cannot differ from them.
func newDocument(version string) []byte {
	named := schemas{}
	named.of(reflect.TypeFor[api.Problem]())
	paths := object{}
	for _, t := range routes() {
		path := strings.TrimSuffix(t.path, "{$}")
		operations, _ := paths[path].(object)
		if operations == nil {
			operations = object{}
			paths[path] = operations
		}
		if t.method != "" {
			operations[strings.ToLower(t.method)] = t.operation(t.id, named)
			continue
		}
		operations["get"] = t.operation(t.id, named)
		operations["post"] = t.operation(t.id+"ByPOST", named)
	}
	document, _ := json.Marshal(object{ // of texts, numbers and lists, which have no errors
		"openapi": "3.1.0",
		"info": object{
			"title": "Lately", "version": version, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Exact limits, bans, counts and hot keys over sliding windows. Times that end in _ms are whole milliseconds, rounded up.",
		},
		"servers": []any{object{"url": "/"}},
		"paths":   paths,
		"components": object{
			"schemas": named.components(),
			"securitySchemes": object{
				"bearer":  object{"type": "http", "scheme": "bearer"},
				"header":  object{"type": "apiKey", "in": "header", "name": "X-Lately-Token"},
				"session": object{"type": "apiKey", "in": "cookie", "name": cookieName},
			},
		},
	})
	return document
}

// operation returns the Operation Object of t.
func (t *route) operation(id string, named schemas) object {
	good := object{"description": "done"}
	if t.out != nil {
		good["content"] = content(cmp.Or(t.media, "application/json"), named.schema(t.out))
	}
	problem := object{
		"description": "a problem document, which says what is wrong",
		"content":     content("application/problem+json", object{"$ref": "#/components/schemas/Problem"}),
	}
	op := object{
		"operationId": id, "summary": t.summary, "security": []any{},
		"responses": object{strconv.Itoa(max(t.status, 200)): good, "4XX": problem, "5XX": problem},
	}
	if t.role != access.None {
		op["description"] = "Needs the role " + t.role.String() + "."
		op["security"] = []any{object{"bearer": []any{}}, object{"header": []any{}}, object{"session": []any{}}}
		if t.foreign() {
			op["security"] = []any{object{"header": []any{}}}
		}
	}
	if params := t.parameterObjects(); len(params) > 0 {
		op["parameters"] = params
	}
	if t.in != nil {
		op["requestBody"] = object{"required": true, "content": content(t.bodies()[0], named.schema(t.in))}
	}
	return op
}

func content(media string, schema object) object { return object{media: object{"schema": schema}} }

func (t *route) parameterObjects() (params []any) {
	if strings.Contains(t.path, "{name}") {
		params = append(params, object{"name": "name", "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range t.query {
		s, example := object{"type": "string"}, any(p.example)
		if p.required {
			s, example = object{"type": "array", "items": s}, []any{p.example}
		}
		params = append(params, object{"name": p.name, "in": "query", "description": p.description, "required": p.required, "schema": s, "example": example})
	}
	return params
}

func openAPI(c *call) error {
	c.out = append(c.out[:0], c.s.document...)
	return c.send(200, jsonType)
}

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
		switch f.Tag.Get("range") {
		case "cost": // see checkAmount
			s["minimum"], s["maximum"] = 1, uint64(engine.MaxCost)
		case "actual": // see checkActual
			s["minimum"], s["maximum"] = 0, uint64(engine.MaxCost)
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
