// Package keyvalue reads the values and fields of the keys of package match.
package keyvalue

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/lately-go/lately/match"
)

// All returns copies of the values of a key that k has made.
func All(k match.Key, key string) (values []string) {
	for part := range k.Parts([]byte(key)) {
		values = append(values, string(part))
	}
	return values
}

// Has reports whether v is one of the values of a key that k has made: for a client, v may
// be any spelling of the same one, and for a field with alternatives, v may lack the name
// of its field.
func Has(k match.Key, key []byte, v string) bool {
	fold, names := k.Fold(), k.Fields()
	i := -1
	for part := range k.Parts(key) {
		i++
		if string(part) == v {
			return true
		}
		if client := Client(names[i], part); client != nil && string(fold.Append(nil, []byte(v))) == string(client) {
			return true
		}
		if _, rest := Split(names[i], part); len(rest) > 0 && string(rest) == v {
			return true
		}
	}
	return false
}

// Of returns the value of an event's field in a key that k has made, without the name that
// an alternative begins with, or nil if the key has no value of this field. It does not allocate.
func Of(k match.Key, key []byte, field string) []byte {
	names, i := k.Fields(), 0
	for v := range k.Parts(key) {
		if names[i] == field {
			return v
		}
		if name, rest := Split(names[i], v); name == field {
			return rest
		}
		i++
	}
	return nil
}

// Client returns the client in v, a value of a key's field of that name, or nil if v is of
// another field.
func Client(name string, v []byte) []byte {
	if name == clientField {
		return v
	}
	if name, rest := Split(name, v); name == clientField {
		return rest
	}
	return nil
}

// Split returns the alternative of a key's field that v begins with, and what follows it, or
// nothing if the field has no alternatives or v begins with none.
func Split[V string | []byte](name string, v V) (alternative string, rest V) {
	if !strings.Contains(name, Separator) {
		return "", rest
	}
	for one := range strings.SplitSeq(name, Separator) {
		if n := len(one); len(v) > n+1 && v[n] == ':' && string(v[:n]) == one {
			return one, v[n+1:]
		}
	}
	return "", rest
}

// Separator is between the alternatives of a field, as [match.Key.Fields] returns them.
const Separator = " | "

var clientField = match.Client.String()

// Fields returns the names of the event fields that k reads. Alternatives are separate
// names.
func Fields(k match.Key) []string {
	names := make([]string, 0, len(k.Fields()))
	for _, name := range k.Fields() {
		names = append(names, strings.Split(name, Separator)...)
	}
	return names
}

// ClientIndex returns the index of the field of k that is the client or has it as an
// alternative, or -1.
func ClientIndex(k match.Key) int {
	return slices.IndexFunc(k.Fields(), func(name string) bool {
		return name == clientField || strings.Contains(name, Separator) && slices.Contains(strings.Split(name, Separator), clientField)
	})
}

// AppendShape appends a description of k to dst: the same bytes for equal keys, in this
// and every other process. A reader of exported counts compares it with its own key's.
func AppendShape(dst []byte, k match.Key) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(k.Fields())))
	for _, name := range k.Fields() {
		dst = binary.AppendUvarint(dst, uint64(len(name)))
		dst = append(dst, name...)
	}
	fold, off := k.Fold(), byte(0)
	if fold.Off {
		off = 1
	}
	return append(dst, off, byte(fold.IPv4), byte(fold.IPv6))
}
