package match

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Join appends to dst the key of an event with these values, in the order of
// [Key.Fields], for callers without an event. It folds clients and cleans paths as
// [Key.Append] does. The value of a field with alternatives begins with the name of
// one of them: "user:ada".
//
// Join returns an error, and dst unchanged, for a wrong number of values or an empty
// value. It allocates only to grow dst, and does not keep the values.
func (k Key) Join(dst []byte, values ...string) ([]byte, error) {
	made := k.get()
	if len(values) != len(made.refs) || len(values) == 0 {
		return dst, k.valuesError(len(values))
	}
	base := len(dst)
	for i := range made.refs {
		r, v := &made.refs[i], values[i]
		if v == "" {
			return dst[:base], fmt.Errorf("key value %d: %s: empty: must have a value", i+1, r.name)
		}
		at := len(dst)
		if r.either != nil {
			one, rest := r.given(v)
			if one == nil {
				return dst[:base], fmt.Errorf("key value %d: %s: %.80q: must be %s", i+1, r.name, v, strings.Join(r.names(), ":VALUE or ")+":VALUE")
			}
			dst = append(append(dst, one.name...), ':')
			r, v = one, rest
		}
		if r.field == Path && !made.fold.Off && formOf(view(v)) != pathPlain {
			dst = appendClean(dst, view(v))
		} else {
			dst = made.appendValue(dst, r, view(v))
		}
		if len(made.refs) > 1 {
			dst = putLength(dst, at)
		}
	}
	return dst, nil
}

// valuesError returns the error of n values, which are more or fewer than k's fields.
func (k Key) valuesError(n int) error {
	if len(k.Fields()) == 0 {
		return errors.New("key: no field: must be made with NewKey")
	}
	return fmt.Errorf("number of key values: %d: must be %d: %s", n, len(k.Fields()), strings.Join(k.Fields(), ", "))
}

// putLength puts the length of dst[at:] in front of it. The length is known only after
// the value has been folded.
func putLength(dst []byte, at int) []byte {
	var head [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], uint64(len(dst)-at))
	dst = append(dst, head[:n]...)
	copy(dst[at+n:], dst[at:len(dst)-n])
	copy(dst[at:], head[:n])
	return dst
}
