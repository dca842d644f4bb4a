package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"
)

// A Key has the values of a key, in the order of the fields of its rule or counter.
// JSON cannot represent bytes that are not UTF-8: a key with such bytes is in
// key_base64 instead of key. Make one with [KeyOf] and read it with [Key.Values].
type Key struct {
	Text   Texts    `json:"key,omitempty" doc:"the values of the key, one for each field; a key that is not UTF-8 is in key_base64"`
	Base64 [][]byte `json:"key_base64,omitempty" doc:"instead of key, for values that are not UTF-8"`
}

// KeyOf returns the Key of these values, which it does not copy.
func KeyOf(values ...string) Key {
	if !slices.ContainsFunc(values, func(v string) bool { return !utf8.ValidString(v) }) {
		return Key{Text: values}
	}
	k := Key{Base64: make([][]byte, len(values))}
	for i, v := range values {
		k.Base64[i] = []byte(v)
	}
	return k
}

// Values returns the values of the key. They must not be changed.
func (k Key) Values() []string {
	if len(k.Base64) == 0 {
		return k.Text
	}
	values := make([]string, len(k.Base64))
	for i, v := range k.Base64 {
		values[i] = string(v)
	}
	return values
}

// Texts is a list of strings. In a request, a single string is a list of one.
type Texts []string

// UnmarshalJSON reads a string or a list of strings.
func (t *Texts) UnmarshalJSON(b []byte) error {
	var one string
	if err := json.Unmarshal(b, &one); err == nil && string(b) != "null" {
		*t = Texts{one}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil || len(list) == 0 {
		return fmt.Errorf("key: %.80s: must be a string, or a list of one string for each field of the key", b)
	}
	*t = list
	return nil
}
