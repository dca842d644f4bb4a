package match

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
)

// A Key takes from an event the value that it is counted by: one field, or
// several together.
//
// The key of one field is the field's bytes. The key of several holds each
// value with its length in front, so that ("a:b", "c") and ("a", "b:c") are
// different keys; [Key.Parts] takes it apart again. The client field is folded
// as [Fold] says and the path field is taken as [Event.CleanPath] gives it,
// unless the fold is off.
//
// The zero Key takes nothing: no event has it. A Key is immutable and safe for
// concurrent use.
type Key struct {
	refs []ref
	fold Fold
}

// MaxKeyFields is the largest number of fields a Key can have.
const MaxKeyFields = 8

// NewKey returns the Key of the named fields, well known or not. It is an error
// if there is none, more than MaxKeyFields, an empty name or one named twice,
// or a fold out of range.
func NewKey(fold Fold, names ...string) (Key, error) {
	if err := fold.Validate(); err != nil {
		return Key{}, err
	}
	if len(names) == 0 {
		return Key{}, errors.New("key has no field; allowed is a field's name or a list of them")
	}
	if len(names) > MaxKeyFields {
		return Key{}, fmt.Errorf("key has %d fields; allowed is at most %d", len(names), MaxKeyFields)
	}
	k := Key{fold: fold}
	for i, n := range names {
		if n == "" {
			return Key{}, errors.New("key has a field with an empty name")
		}
		for _, earlier := range names[:i] {
			if earlier == n {
				return Key{}, fmt.Errorf("key names the field %q twice", n)
			}
		}
		k.refs = append(k.refs, newRef(n))
	}
	k.fold = k.effectiveFold()
	return k, nil
}

// effectiveFold returns as much of k's fold as k's fields depend on, with the
// defaults filled in, so that keys that are alike have equal folds.
func (k Key) effectiveFold() Fold {
	has := func(f Field) bool { return slices.ContainsFunc(k.refs, func(r ref) bool { return r.field == f }) }
	switch {
	case k.fold.Off:
		return Fold{Off: has(Client) || has(Path)}
	case has(Client):
		return Fold{IPv4: k.fold.bits(netip.IPv4Unspecified()), IPv6: k.fold.bits(netip.IPv6Unspecified())}
	}
	return Fold{}
}

// Fields returns the names of the key's fields, in order.
func (k Key) Fields() []string {
	names := make([]string, len(k.refs))
	for i, r := range k.refs {
		names[i] = r.name
	}
	return names
}

// Fold returns how k makes clients into keys.
func (k Key) Fold() Fold { return k.effectiveFold() }

// String returns the field's name, or the names joined by commas.
func (k Key) String() string { return strings.Join(k.Fields(), ",") }

// Equal reports whether k and o take the same key from every event.
func (k Key) Equal(o Key) bool {
	return k.fold == o.fold && slices.Equal(k.refs, o.refs)
}

// Append appends e's key to dst. It reports false, and returns dst as it was,
// when e lacks one of the fields: such an event is not counted by this key.
func (k Key) Append(dst []byte, e *Event) ([]byte, bool) {
	if len(k.refs) == 1 {
		v := k.refs[0].get(e)
		if len(v) == 0 {
			return dst, false
		}
		return k.appendValue(dst, e, k.refs[0], v), true
	}
	base := len(dst)
	for _, r := range k.refs {
		v := r.get(e)
		if len(v) == 0 {
			return dst[:base], false
		}
		dst = k.appendPart(dst, e, r, v)
	}
	return dst, len(k.refs) > 0
}

// appendPart appends one value with its length in front.
func (k Key) appendPart(dst []byte, e *Event, r ref, v []byte) []byte {
	at := len(dst)
	return putLength(k.appendValue(dst, e, r, v), at)
}

func (k Key) appendValue(dst []byte, e *Event, r ref, v []byte) []byte {
	switch {
	case r.field == Client:
		return k.fold.Append(dst, v)
	case r.field == Path && !k.fold.Off:
		return append(dst, e.CleanPath()...)
	}
	return append(dst, v...)
}

// Parts returns the values in key, which k made, in the order of its fields.
func (k Key) Parts(key []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(k.refs) == 1 {
			yield(key)
			return
		}
		for len(key) > 0 {
			n, w := binary.Uvarint(key)
			if w <= 0 || n > uint64(len(key)-w) {
				return // not a key of k's making
			}
			if !yield(key[w : w+int(n)]) {
				return
			}
			key = key[w+int(n):]
		}
	}
}
