package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/lately-go/lately/internal/server/engine"
)

// maxDepth is how deep a body may be nested. None has more than four levels.
const maxDepth = 32

// maxList is how many elements a list of a body may have, and maxMembers how many
// members an object.
const (
	maxList    = maxBatch
	maxMembers = maxFields
)

// decodeFactor is about how many times the memory of a body its decoded form takes.
const decodeFactor = 8

// decode reads the body into v. Members that v does not have, a second value, and
// nesting beyond maxDepth are errors. What would take much memory to decode is found
// before it is decoded.
func (c *call) decode(v any) error {
	if err := checkShape(c.body); err != nil {
		return err
	}
	if n := len(c.body); n > freeBody {
		if err := c.charge(decodeFactor * n); err != nil {
			return err
		}
	}
	d := json.NewDecoder(bytes.NewReader(c.body))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return badJSON(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return badArg("the body has more than one value")
	}
	return nil
}

// checkShape returns an error for a body that is nested deeper than maxDepth, or that
// has a longer list or a larger object than any request. What is no JSON it lets pass.
func checkShape(b []byte) error {
	var commas [maxDepth + 1]int // in each list and object that is open
	var list [maxDepth + 1]bool
	depth, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return badArg("body: nested deeper than %d levels", maxDepth)
			}
			commas[depth], list[depth] = 0, c == '['
		case c == '}' || c == ']':
			depth = max(depth-1, 0)
		case c == ',':
			commas[depth]++
			switch n := commas[depth]; {
			case list[depth] && n >= maxList:
				return badArg("body: a list has more than %d entries", maxList)
			case !list[depth] && n >= maxMembers:
				return badArg("body: an object has more than %d members", maxMembers)
			}
		}
	}
	return nil
}

// badJSON says in words of ours what is wrong with a body.
func badJSON(err error) error {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := "the body"
		if e.Field != "" {
			what = clip(e.Field)
		}
		return badArg("%s is a JSON %s; allowed is %s", what, clip(e.Value), kindName(e))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return badArg("the body is not JSON, at byte %d", e.Offset)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return badArg("the body has %s, which is not known here; /openapi.json says what is", clip(name))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return badArg("the body ends too soon; allowed is a JSON object")
	}
	return badArg("the body is not what is allowed: %s", clip(strings.TrimPrefix(err.Error(), "json: ")))
}

func kindName(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "string":
		return "a string"
	case "uint64", "int64", "int":
		return "a whole number in range"
	case "map", "struct":
		return "an object"
	case "slice":
		return "a list"
	}
	return "a " + e.Type.Kind().String()
}

// A keyArg is the key of a request: its values in the order of the rule's fields, or
// the one value by itself.
type keyArg []string

// UnmarshalJSON reads a text or a list of texts.
func (k *keyArg) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil && string(b) != "null" {
		*k = keyArg{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 {
		return badArg("key is %s; allowed is a string, or a list of one string for each field of the key", clip(string(b)))
	}
	*k = list
	return nil
}

// values returns the values of a key that is given as texts or as bytes.
func (k keyArg) values(base64 [][]byte) ([]string, error) {
	switch {
	case len(k) > 0 && len(base64) > 0:
		return nil, badArg("there are both key and key_base64; allowed is one of them")
	case len(k) > 0:
		return k, nil
	case len(base64) == 0:
		return nil, badArg("key is missing; allowed is a string, or a list of one string for each field of the key")
	}
	list := make([]string, len(base64))
	for i, v := range base64 {
		list[i] = string(v)
	}
	return list, nil
}

// costOf returns a cost that may be left out.
func costOf(n *uint64) (uint64, error) {
	if n == nil {
		return 1, nil
	}
	return *n, checkCost("cost", *n)
}

func checkCost(name string, n uint64) error {
	if n < 1 || n > engine.MaxCost {
		return badArg("%s is %d; allowed is 1 to %d", name, n, uint64(engine.MaxCost))
	}
	return nil
}

// failure is what stands in a list of answers for one that there is not.
type failure struct {
	Code   engine.Code `json:"code"`
	Detail string      `json:"detail"`
}

// appendFailure appends what a list of answers has for an error.
func appendFailure(dst []byte, err error) []byte {
	e := asAPI(err)
	dst = append(dst, `{"error":{"code":`...)
	dst = appendText(dst, string(e.code))
	dst = append(dst, `,"detail":`...)
	dst = appendText(dst, e.detail)
	return append(dst, "}}"...)
}
