package match

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Join appends to dst the key of an event with these values, given in the order of
// [Key.Fields]: for callers that have the values and no event. A client is folded
// and a path cleaned as in [Key.Append], so both make one key of one client.
//
// The value of a field with alternatives names the one that it is of: "user:ada".
//
// It is an error, and dst is returned as it was, if there are more or fewer values
// than fields, or an empty one: an event without a value has no key. Join does not
// allocate beyond growing dst, and does not keep the values.
func (k Key) Join(dst []byte, values ...string) ([]byte, error) {
	return k.join(dst, values, true)
}

// Rejoin is [Key.Join] of values that [Key.Parts] has given: a path among them has
// been cleaned, and is taken as it is.
func (k Key) Rejoin(dst []byte, values ...string) ([]byte, error) {
	return k.join(dst, values, false)
}

func (k Key) join(dst []byte, values []string, clean bool) ([]byte, error) {
	if len(values) != len(k.refs) || len(values) == 0 {
		return dst, k.valuesError(len(values))
	}
	base := len(dst)
	for i := range k.refs {
		r, v := &k.refs[i], values[i]
		if v == "" {
			return dst[:base], fmt.Errorf("value %d of key, %s, is empty", i+1, r.name)
		}
		at := len(dst)
		if r.either != nil {
			one, rest := r.given(v)
			if one == nil {
				return dst[:base], fmt.Errorf("value %d of key, %s, is %.80q: must be %s", i+1, r.name, v, r.forms())
			}
			dst = append(append(dst, one.name...), ':')
			r, v = one, rest
		}
		dst = k.appendGiven(dst, r, v, clean)
		if len(k.refs) > 1 {
			dst = putLength(dst, at)
		}
	}
	return dst, nil
}

// Split appends to dst the values of a key that are written in one string with a
// separator between each two, as [Key.Join] takes them. The value of a key of one field
// is the whole string, even if it contains the separator; a value of a key of several
// cannot contain it. It is an error if there are more or fewer values than fields.
func (k Key) Split(dst []string, values string, separator byte) ([]string, error) {
	base := len(dst)
	for n := 1; n < len(k.refs); n++ {
		at := strings.IndexByte(values, separator)
		if at < 0 {
			return dst[:base], k.valuesError(n)
		}
		dst, values = append(dst, values[:at]), values[at+1:]
	}
	if len(k.refs) > 1 && strings.IndexByte(values, separator) >= 0 {
		return dst[:base], k.valuesError(len(k.refs) + strings.Count(values, string(separator)))
	}
	return append(dst, values), nil
}

// valuesError says that n values are not as many as k has fields.
func (k Key) valuesError(n int) error {
	if len(k.refs) == 0 {
		return errors.New("the key has no field; make it with NewKey")
	}
	return fmt.Errorf("number of key values is %d; allowed is %d: %s", n, len(k.refs), strings.Join(k.Fields(), ", "))
}

// forms returns how values of r are written: "user:VALUE or client:VALUE".
func (r *ref) forms() string {
	return strings.Join(r.names(), ":VALUE or ") + ":VALUE"
}

// appendGiven appends the value v of a field as keys have it; clean says whether a
// path has to be cleaned.
func (k Key) appendGiven(dst []byte, r *ref, v string, clean bool) []byte {
	switch {
	case r.field == Client:
		return k.fold.Append(dst, view(v))
	case r.field == Path && clean && !k.fold.Off && formOf(view(v)) != pathPlain:
		return appendClean(dst, view(v))
	}
	return append(dst, v...)
}

// putLength puts in front of what follows at how long it is. The length is only
// known once a value is folded, so it is written after and moved.
func putLength(dst []byte, at int) []byte {
	var head [binary.MaxVarintLen64]byte
	n := binary.PutUvarint(head[:], uint64(len(dst)-at))
	dst = append(dst, head[:n]...)
	copy(dst[at+n:], dst[at:len(dst)-n])
	copy(dst[at:], head[:n])
	return dst
}
