package httpapi

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/access"
)

// oneOf is the type of a body that is one of these. A body that is not JSON is a string.
type oneOf []any

// An object is a JSON object of the document.
type object = map[string]any

// newDocument returns the OpenAPI 3.1 document of the routes. Schemas come from the Go
// types that handlers decode and encode, so they cannot differ from them.
func newDocument(version string) ([]byte, error) {
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
	return json.Marshal(object{
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

// openAPI answers with the OpenAPI document.
func openAPI(c *call) error {
	c.out = append(c.out[:0], c.s.document...)
	return c.send(200, jsonType)
}
