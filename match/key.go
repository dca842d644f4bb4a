package match

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/lately-go/lately/internal/event/address"
)

// A Key makes the key that an event is counted by, from one or several of its
// fields.
//
// The key of one field is the field's bytes. The key of several has the length of
// each value in front of it, so that ("a:b", "c") and ("a", "b:c") are different
// keys; [Key.Parts] returns the values. The client field is folded with [Fold], and
// the path field is [Event.CleanPath], unless the fold is off.
//
// A field may have alternatives: "user | client" is the user of an event that has
// one, and otherwise its client. Such a value begins with the name of its field,
// "user:ada" or "client:192.0.2.1", so that a user whose name is an address and that
// address have different keys.
//
// Under the zero Key, no event has a key. A Key is immutable, safe for concurrent use and
// as small as a pointer.
type Key struct {
	_    [0]func() // not by ==
	made *madeKey  // nil for the zero Key
}

// A madeKey is the part that copies of a Key share.
type madeKey struct {
	refs  []ref
	names []string // of refs
	fold  Fold
}

// noKey is what the zero Key consists of.
var noKey madeKey

// get returns the parts of k.
func (k Key) get() *madeKey {
	if k.made == nil {
		return &noKey
	}
	return k.made
}

// maxKeyFields is also that of internal/event/keyvalue.
const maxKeyFields = 8

// NewKey returns the Key for the named fields, well known or not. A name may be
// several names with '|' between them. It returns an error for no fields, for more
// than 8, for an empty or repeated name, and for a fold out of range.
func NewKey(fold Fold, names ...string) (Key, error) {
	if err := fold.validate(); err != nil {
		return Key{}, err
	}
	if len(names) == 0 {
		return Key{}, errors.New("key: no field: must be a field or a list of fields")
	}
	if len(names) > maxKeyFields {
		return Key{}, fmt.Errorf("key: %d fields: must be at most %d", len(names), maxKeyFields)
	}
	k := &madeKey{fold: fold}
	for _, n := range names {
		r := newRef(n)
		if err := r.check(); err != nil {
			return Key{}, err
		}
		if slices.ContainsFunc(k.refs, func(earlier ref) bool { return earlier.name == r.name }) {
			return Key{}, fmt.Errorf("key: field %q twice: must be given once", r.name)
		}
		k.refs, k.names = append(k.refs, r), append(k.names, r.name)
	}
	k.fold = k.effectiveFold()
	return Key{made: k}, nil
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

// check returns an error if a name of r is empty or given twice.
func (r *ref) check() error {
	names := r.names()
	if slices.Contains(names, "") {
		return errors.New("key: empty name: must be the name of a field")
	}
	if len(names) > maxKeyFields {
		return fmt.Errorf("key: %d alternatives: must be at most %d", len(names), maxKeyFields)
	}
	slices.Sort(names)
	if len(slices.Compact(names)) < max(1, len(r.either)) {
		return fmt.Errorf("key: %q: must name each field once", r.name)
	}
	return nil
}

// effectiveFold returns the part of k's fold that k's fields depend on, with defaults
// filled in, so that equal keys have equal folds.
func (k *madeKey) effectiveFold() Fold {
	has := func(f Field) bool { return slices.ContainsFunc(k.refs, func(r ref) bool { return r.has(f) }) }
	switch {
	case k.fold.Off:
		return Fold{Off: has(Client) || has(Path)}
	case has(Client):
		return Fold{IPv4: cmp.Or(k.fold.IPv4, 32), IPv6: cmp.Or(k.fold.IPv6, 64)}
	}
	return Fold{}
}

// Fields returns the names of the key's fields, in order: one for each value of
// the key. A field with alternatives is called "user | client". The slice must not be
// changed. It does not allocate.
func (k Key) Fields() []string {
	names := k.get().names
	return names[:len(names):len(names)]
}

// Fold returns the fold of clients in k. Its fields that k does not use are zero.
func (k Key) Fold() Fold { return k.get().fold }

// String returns the field's name, or the names joined by commas.
func (k Key) String() string { return strings.Join(k.Fields(), ",") }

// Append appends e's key to dst. It reports false, and returns dst unchanged, if e
// lacks one of the fields: such an event is not counted by this key.
func (k Key) Append(dst []byte, e *Event) ([]byte, bool) {
	made := k.get()
	if len(made.refs) == 1 {
		return made.appendField(dst, e, &made.refs[0])
	}
	base := len(dst)
	for i := range made.refs {
		at := len(dst)
		var ok bool
		if dst, ok = made.appendField(dst, e, &made.refs[i]); !ok {
			return dst[:base], false
		}
		dst = putLength(dst, at)
	}
	return dst, len(made.refs) > 0
}

// appendField appends e's value of r, and reports whether it has one.
func (k *madeKey) appendField(dst []byte, e *Event, r *ref) ([]byte, bool) {
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
	if r.field == Path && !k.fold.Off {
		v = e.CleanPath()
	}
	return k.appendValue(dst, r, v), true
}

// appendValue appends the value v of r, where a path is clean unless the fold is off.
func (k *madeKey) appendValue(dst []byte, r *ref, v []byte) []byte {
	if r.field == Client && !k.fold.Off {
		return address.AppendNetwork(dst, v, k.fold.IPv4, k.fold.IPv6)
	}
	return append(dst, v...)
}

// Parts returns the values in key, which k has made, in the order of its fields.
func (k Key) Parts(key []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if len(k.get().refs) == 1 {
			yield(key)
			return
		}
		for len(key) > 0 {
			n, w := binary.Uvarint(key)
			if w <= 0 || n > uint64(len(key)-w) {
				return // not a key that k has made
			}
			if !yield(key[w : w+int(n)]) {
				return
			}
			key = key[w+int(n):]
		}
	}
}
