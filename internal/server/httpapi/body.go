package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/server/engine"
)

// maxDepth is how deep a body may be nested. None has more than four levels.
const maxDepth = 32

// decodeFactor is about how many times the memory of a body its decoded form takes.
const decodeFactor = 8

// decode reads the body into v. Unknown members, a second value, and nesting beyond
// maxDepth are errors. Bodies that would take much memory to decode are rejected before.
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
		return badArg("body: more than one value")
	}
	return nil
}

// checkShape returns an error for a body that is nested deeper than maxDepth, or that
// has a longer list or a larger object than any request. It does not validate JSON.
func checkShape(b []byte) error {
	var commas [maxDepth + 1]int // in each list and object that is open
	var list [maxDepth + 1]bool
	depth, text := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case text && c == '\\':
			n, ok := escaped(b[i:])
			if !ok { // encoding/json would read U+FFFD, so that different keys become equal
				return badArg("body: half of a surrogate pair at byte %d; send bytes that are not UTF-8 as key_base64", i)
			}
			i += n - 1
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
			case list[depth] && n >= maxBatch:
				return badArg("body: a list has more than %d entries", maxBatch)
			case !list[depth] && n >= maxFields:
				return badArg("body: an object has more than %d members", maxFields)
			}
		}
	}
	return nil
}

// escaped returns the length of the escape sequence at the beginning of b, and false if
// it is one half of a surrogate pair alone.
func escaped(b []byte) (n int, ok bool) {
	r := hex4(b)
	if !utf16.IsSurrogate(r) {
		return 2, true
	}
	return 12, len(b) > 6 && utf16.DecodeRune(r, hex4(b[6:])) != utf8.RuneError
}

// hex4 returns the code unit of the escape sequence \uXXXX at the beginning of b, and 0
// if there is none.
func hex4(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

// badJSON returns err, of encoding/json, in words that do not mention Go.
func badJSON(err error) error {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		what := cmp.Or(clip(memberPath(e.Field)), "body")
		return badArg("%s: JSON %s: must be %s", what, clip(e.Value), kindName(e))
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return badArg("body: not JSON at byte %d", e.Offset)
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return badArg("body: %s: unknown; /openapi.json has the members of each body", clip(name))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return badArg("body: it ends too soon: must be a JSON object")
	}
	if text := err.Error(); strings.HasPrefix(text, "key: ") { // of api.Texts
		return badArg("%s", text)
	}
	return badArg("body: %s", clip(strings.TrimPrefix(err.Error(), "json: ")))
}

// memberPath returns the path of a member, as in events.cost, from that of encoding/json, which
// has the names of embedded types in it. These have capital letters, and members have none.
func memberPath(field string) string {
	names := slices.DeleteFunc(strings.Split(field, "."), func(name string) bool {
		return strings.ToLower(name) != name
	})
	return strings.Join(names, ".")
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

// ruleKey returns the values of a key under a rule, of a request.
func ruleKey(rule string, key api.Key) ([]string, error) {
	if rule == "" {
		return nil, badArg("rule: missing: must be the name of a rule")
	}
	return valuesOf(key)
}

// valuesOf returns the values of a key of a request.
func valuesOf(k api.Key) ([]string, error) {
	switch {
	case len(k.Text) > 0 && len(k.Base64) > 0:
		return nil, badArg("key and key_base64: must be one of them, not both")
	case len(k.Text) == 0 && len(k.Base64) == 0:
		return nil, badArg("key: missing: must be a string, or a list of one string for each field of the key")
	}
	return k.Values(), nil
}

// given reports whether a request has a key.
func given(k api.Key) bool { return k.Text != nil || k.Base64 != nil }

// amount returns a cost or another amount of a request; it is 1 by default.
func amount(name string, n *uint64) (uint64, error) {
	if n == nil {
		return 1, nil
	}
	return *n, checkAmount(name, *n)
}

func checkAmount(name string, n uint64) error {
	if n < 1 || n > engine.MaxCost {
		return badArg("%s: %d: must be 1 to %d", name, n, uint64(engine.MaxCost))
	}
	return nil
}
