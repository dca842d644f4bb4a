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
// A field may have alternatives: "user | client" is the user of an event that has
// one, and else its client. Such a value has the name of its field in front,
// "user:ada" or "client:192.0.2.1", so that nobody can take the key of another
// by calling himself by his address.
//
// The zero Key takes nothing: no event has it. A Key is immutable and safe for
// concurrent use.
type Key struct {
	refs []ref
	fold Fold
}

// MaxKeyFields is the largest number of fields a Key can have.
const MaxKeyFields = 8

// NewKey returns the Key of the named fields, well known or not, each of which may
// be several with '|' between them. It is an error if there is none, more than
// MaxKeyFields, an empty name or one named twice, or a fold out of range.
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
	for _, n := range names {
		r := newRef(n)
		if err := r.check(); err != nil {
			return Key{}, err
		}
		if slices.ContainsFunc(k.refs, func(earlier ref) bool { return earlier.name == r.name }) {
			return Key{}, fmt.Errorf("key names the field %q twice", r.name)
		}
		k.refs = append(k.refs, r)
	}
	k.fold = k.effectiveFold()
	return k, nil
}

// MustKey is NewKey with the default Fold, for names that are constants: it panics if
// NewKey returns an error.
func MustKey(names ...string) Key {
	k, err := NewKey(Fold{}, names...)
	if err != nil {
		panic("match: " + err.Error())
	}
	return k
}

// check returns an error if a name of r is empty or there twice.
func (r *ref) check() error {
	names := r.names()
	if slices.Contains(names, "") {
		return errors.New("key has a field with an empty name")
	}
	if len(names) > MaxKeyFields {
		return fmt.Errorf("key has a field with %d alternatives; allowed is at most %d", len(names), MaxKeyFields)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) < max(1, len(r.either)) {
		return fmt.Errorf("key has the field %q, which names one field twice", r.name)
	}
	return nil
}

// effectiveFold returns as much of k's fold as k's fields depend on, with the
// defaults filled in, so that keys that are alike have equal folds.
func (k Key) effectiveFold() Fold {
	has := func(f Field) bool { return slices.ContainsFunc(k.refs, func(r ref) bool { return r.has(f) }) }
	switch {
	case k.fold.Off:
		return Fold{Off: has(Client) || has(Path)}
	case has(Client):
		return Fold{IPv4: k.fold.bits(netip.IPv4Unspecified()), IPv6: k.fold.bits(netip.IPv6Unspecified())}
	}
	return Fold{}
}

// Fields returns the names of the key's fields, in order: one for each value of
// the key. A field with alternatives is called "user | client".
func (k Key) Fields() []string {
	names := make([]string, len(k.refs))
	for i, r := range k.refs {
		names[i] = r.name
	}
	return names
}

// Fold returns how k makes clients into keys.
func (k Key) Fold() Fold { return k.effectiveFold() }

// EventFields returns the names of the event fields that k looks at: those of
// Fields, with each alternative by itself.
func (k Key) EventFields() []string {
	var names []string
	for i := range k.refs {
		names = append(names, k.refs[i].names()...)
	}
	return names
}

// ClientField returns the number of the field whose value is or may be the client,
// or -1.
func (k Key) ClientField() int {
	return slices.IndexFunc(k.refs, func(r ref) bool { return r.has(Client) })
}

// ClientOf returns the client in v, the value of the i-th field, or nil if that is
// of another field.
func (k Key) ClientOf(i int, v []byte) []byte {
	r := &k.refs[i]
	if r.either != nil {
		one, rest := r.given(string(v))
		if one == nil {
			return nil
		}
		r, v = one, v[len(v)-len(rest):]
	}
	if r.field != Client {
		return nil
	}
	return v
}

// String returns the field's name, or the names joined by commas.
func (k Key) String() string { return strings.Join(k.Fields(), ",") }

// Equal reports whether k and o take the same key from every event.
func (k Key) Equal(o Key) bool {
	return k.fold == o.fold && slices.EqualFunc(k.refs, o.refs, func(a, b ref) bool { return a.name == b.name })
}

// Append appends e's key to dst. It reports false, and returns dst as it was,
// when e lacks one of the fields: such an event is not counted by this key.
func (k Key) Append(dst []byte, e *Event) ([]byte, bool) {
	if len(k.refs) == 1 {
		return k.appendField(dst, e, &k.refs[0])
	}
	base := len(dst)
	for i := range k.refs {
		at := len(dst)
		var ok bool
		if dst, ok = k.appendField(dst, e, &k.refs[i]); !ok {
			return dst[:base], false
		}
		dst = putLength(dst, at)
	}
	return dst, len(k.refs) > 0
}

// appendField appends e's value of r, and reports whether it has one.
func (k Key) appendField(dst []byte, e *Event, r *ref) ([]byte, bool) {
	if r.either != nil {
		if r = r.in(e); r == nil {
			return dst, false
		}
		dst = append(append(dst, r.name...), ':')
	}
	v := r.get(e)
	if len(v) == 0 {
		return dst, false
	}
	return k.appendValue(dst, e, r, v), true
}

func (k Key) appendValue(dst []byte, e *Event, r *ref, v []byte) []byte {
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
