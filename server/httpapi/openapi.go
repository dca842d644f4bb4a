package httpapi

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Types that say in a route what a body is, where no Go type does.
type (
	oneOf    []any    // one of these
	text     string   // not JSON
	anything struct{} // any JSON
)

// An object is one of the document.
type object = map[string]any

// openAPI returns the OpenAPI 3.1 document of the routes. Schemas come from the Go
// types that handlers encode and decode, so they cannot say something else.
func (r *router) openAPI(version string) ([]byte, error) {
	paths := object{}
	for i := range r.routes {
		t := &r.routes[i]
		of, _ := paths[t.path].(object)
		if of == nil {
			of = object{}
			paths[t.path] = of
		}
		methods := []string{strings.ToLower(t.method)}
		if t.method == "*" {
			methods = []string{"get", "post"}
		}
		for _, m := range methods {
			op := t.operation()
			if len(methods) > 1 && m != methods[0] {
				op["operationId"] = t.id + "By" + strings.ToUpper(m)
			}
			of[m] = op
		}
	}
	return json.Marshal(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Lately", "version": version, "license": object{"name": "Apache-2.0", "identifier": "Apache-2.0"},
			"description": "Exact limits, bans, counts and hot keys over sliding windows. Times that end in _ms are whole milliseconds, rounded up.",
		},
		"servers": []any{object{"url": "/"}},
		"paths":   paths,
		"components": object{
			"schemas": object{"Problem": schemaOf(reflect.TypeFor[problem]())},
			"securitySchemes": object{
				"bearer":  object{"type": "http", "scheme": "bearer"},
				"header":  object{"type": "apiKey", "in": "header", "name": "X-Lately-Token"},
				"session": object{"type": "apiKey", "in": "cookie", "name": cookieName},
			},
		},
	})
}

// operation returns the Operation Object of t.
func (t *route) operation() object {
	status := strconv.Itoa(max(t.status, 200))
	good := object{"description": "done"}
	if t.out != nil {
		media := t.media
		if media == "" {
			media = "application/json"
		}
		good["content"] = object{media: object{"schema": schema(t.out)}}
	}
	op := object{
		"operationId": t.id, "summary": t.summary,
		"responses": object{
			status: good,
			"default": object{
				"description": "what was wrong",
				"content":     object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
			},
		},
	}
	if t.need != everyone {
		op["description"] = "Needs the role " + t.need.role().String() + "."
		op["security"] = []any{object{"bearer": []any{}}, object{"header": []any{}}, object{"session": []any{}}}
		if t.foreign {
			op["security"] = []any{object{"header": []any{}}}
		}
	}
	if params := t.parameterObjects(); len(params) > 0 {
		op["parameters"] = params
	}
	switch t.body {
	case jsonBody:
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": schema(t.in)}}}
	case yamlBody:
		op["requestBody"] = object{"required": true, "content": object{"application/yaml": object{"schema": schema(t.in)}}}
	}
	return op
}

func (t *route) parameterObjects() (params []any) {
	if strings.Contains(t.path, "{name}") {
		params = append(params, object{"name": "name", "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range t.query {
		s := object{"type": "string"}
		if p.many {
			s = object{"type": "array", "items": s}
		}
		params = append(params, object{"name": p.name, "in": "query", "description": p.about, "required": p.needed, "schema": s, "example": p.example})
	}
	return params
}

// schema returns the schema of a value that stands for its type.
func schema(v any) object {
	switch v := v.(type) {
	case oneOf:
		var list []any
		for _, x := range v {
			list = append(list, schema(x))
		}
		return object{"oneOf": list}
	case text:
		return object{"type": "string"}
	case anything:
		return object{"type": "object"}
	}
	return schemaOf(reflect.TypeOf(v))
}

// schemaOf returns the JSON Schema of t, as encoding/json has its values.
func schemaOf(t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[netip.Prefix]():
		return object{"type": "string"}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	case reflect.TypeFor[keyArg]():
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
		return object{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Pointer:
		return object{"anyOf": []any{schemaOf(t.Elem()), object{"type": "null"}}}
	case reflect.Struct:
		return structSchema(t)
	}
	panic(fmt.Sprintf("httpapi: %v has no schema", t)) // found by the first New
}

// structSchema returns the schema of an object with the members of t and no others.
func structSchema(t reflect.Type) object {
	properties, required := object{}, []any{}
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("json")
		if !ok || tag == "-" {
			continue // embedded, or not told of
		}
		name, options, _ := strings.Cut(tag, ",")
		optional := strings.Contains(options, "omit")
		ft := f.Type
		if optional && ft.Kind() == reflect.Pointer {
			ft = ft.Elem()
		}
		s := schemaOf(ft)
		if doc := f.Tag.Get("doc"); doc != "" {
			s["description"] = doc
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

// document answers with the OpenAPI document.
func document(c *call) error {
	c.out = append(c.out[:0], c.s.openAPI...)
	return c.send(200, jsonType)
}
