package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/lately-go/lately/api"
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
	named := schemas{}
	named.of(reflect.TypeFor[api.Problem]())
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
			op := t.operation(named)
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
func (t *route) operation(named schemas) object {
	status := strconv.Itoa(max(t.status, 200))
	good := object{"description": "done"}
	if t.out != nil {
		media := t.media
		if media == "" {
			media = "application/json"
		}
		good["content"] = object{media: object{"schema": named.schema(t.out)}}
	}
	responses := object{status: good, "default": problemResponse("what was wrong")}
	for _, code := range t.problems() {
		responses[strconv.Itoa(code)] = problemResponse(http.StatusText(code))
	}
	op := object{"operationId": t.id, "summary": t.summary, "responses": responses, "security": []any{}}
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
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": named.schema(t.in)}}}
	case yamlBody:
		op["requestBody"] = object{"required": true, "content": object{"application/yaml": object{"schema": named.schema(t.in)}}}
	}
	return op
}

func problemResponse(description string) object {
	return object{
		"description": description,
		"content":     object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}},
	}
}

// problems returns the statuses of the problems that t can answer: those that follow
// from its other fields, and t.fails.
func (t *route) problems() []int {
	list := append([]int{http.StatusMisdirectedRequest}, t.fails...)
	if t.need != everyone {
		list = append(list, http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden)
	}
	if t.body != noBody {
		list = append(list, http.StatusBadRequest, http.StatusForbidden, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
	}
	return list
}

func (t *route) parameterObjects() (params []any) {
	if strings.Contains(t.path, "{name}") {
		params = append(params, object{"name": "name", "in": "path", "required": true, "schema": object{"type": "string"}})
	}
	for _, p := range t.query {
		s, example := object{"type": "string"}, any(p.example)
		if p.many {
			s, example = object{"type": "array", "items": s}, []any{p.example}
		}
		params = append(params, object{"name": p.name, "in": "query", "description": p.about, "required": p.needed, "schema": s, "example": example})
	}
	return params
}

// document answers with the OpenAPI document.
func document(c *call) error {
	c.out = append(c.out[:0], c.s.openAPI...)
	return c.send(200, jsonType)
}
