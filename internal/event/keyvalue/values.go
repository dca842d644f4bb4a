// Package keyvalue reads the values and fields of the keys of package match.
package keyvalue

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/address"
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
	names, i := k.Fields(), -1
	for part := range k.Parts(key) {
		i++
		if string(part) == v {
			return true
		}
		if client := Client(names[i], part); client != nil && string(AppendClient(nil, k.Fold(), []byte(v))) == string(client) {
			return true
		}
		if _, rest := Split(names[i], part); len(rest) > 0 && string(rest) == v {
			return true
		}
	}
	return false
}

// AppendClient appends to dst the value that keys with this fold have for a client.
func AppendClient(dst []byte, fold match.Fold, client []byte) []byte {
	if fold.Off {
		return append(dst, client...)
	}
	return address.AppendNetwork(dst, client, cmp.Or(fold.IPv4, 32), cmp.Or(fold.IPv6, 64))
}

// MaxFields is the largest number of fields of a key.
const MaxFields = 8

// Equal reports whether k and o make the same key of every event.
func Equal(k, o match.Key) bool { return k.Fold() == o.Fold() && slices.Equal(k.Fields(), o.Fields()) }

// Rejoin is [match.Key.Join] for values that [match.Key.Parts] has returned: a path among them is
// clean already, and is not changed.
func Rejoin(k match.Key, dst []byte, values ...string) ([]byte, error) {
	base := len(dst)
	dst, err := k.Join(dst, values...)
	if err != nil || !slices.Contains(Fields(k), pathField) {
		return dst, err
	}
	joined := slices.Clone(dst[base:])
	dst = dst[:base]
	i := 0
	for part := range k.Parts(joined) {
		if v := []byte(values[i]); In(pathField, k.Fields()[i], v) != nil {
			part = v
		}
		if len(values) > 1 {
			dst = binary.AppendUvarint(dst, uint64(len(part)))
		}
		dst = append(dst, part...)
		i++
	}
	return dst, nil
}

// Of returns the value of a field in a key that k has made, without the name that begins
// an alternative, or nil if the key has no value of this field. It does not allocate.
func Of(k match.Key, key []byte, field string) []byte {
	names, i := k.Fields(), 0
	for v := range k.Parts(key) {
		if found := In(field, names[i], v); found != nil {
			return found
		}
		i++
	}
	return nil
}

// Client returns the client in v, a value of a key's field of that name, or nil if v is of
// another field.
func Client(name string, v []byte) []byte { return In(clientField, name, v) }

// In returns the value of an event's field in v, a value of a key's field of that name, or nil if
// v is of another field.
func In(field, name string, v []byte) []byte {
	if name == field {
		return v
	}
	if name, rest := Split(name, v); name == field {
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

var clientField, pathField = match.Client.String(), match.Path.String()

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
