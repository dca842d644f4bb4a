package replay

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/lately-go/lately/match"
)

// maxColumns keeps a record within 32 bytes: 8 for the time and 4 a column.
// Fields beyond that share the last column, whose values are those of all these
// fields together.
const maxColumns = 6

// layOut gives each field a column of its own, or, where a rules file looks at
// more than there are columns, lets the last ones share one. The field that top
// lists count by keeps its own.
func (r *run) layOut(names []string) {
	r.fields, r.packed = names, nil
	if len(names) <= maxColumns {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == r.Key })
	r.fields = append([]string{r.Key}, rest[:maxColumns-2]...)
	r.packed = rest[maxColumns-2:]
}

// columns returns how many columns a record has.
func (r *run) columns() int { return len(r.fields) + min(len(r.packed), 1) }

// getter returns a function that takes a field's value from an event.
func getter(name string) func(*match.Event) []byte {
	if f, ok := match.FieldNamed(name); ok {
		return func(e *match.Event) []byte { return e.Get(f) }
	}
	return func(e *match.Event) []byte { return e.GetNamed(name) }
}

// packer returns a function that takes the values of several fields from an
// event as one: each with its length in front, 0 where it is absent.
// The bytes are good until the next call; nil means that all are absent.
func packer(names []string) func(*match.Event) []byte {
	var buf []byte
	var get []func(*match.Event) []byte
	for _, name := range names {
		get = append(get, getter(name))
	}
	return func(e *match.Event) []byte {
		buf = buf[:0]
		some := false
		for _, g := range get {
			v := g(e)
			if len(v) == 0 {
				buf = append(buf, 0)
				continue
			}
			some = true
			buf = append(binary.AppendUvarint(buf, uint64(len(v))), v...)
		}
		if !some {
			return nil
		}
		return buf
	}
}

// unpack gives e the fields of a value that a packer of the same names made.
func unpack(e *match.Event, names []string, value string) {
	rest := unsafe.Slice(unsafe.StringData(value), len(value)) // only read
	for _, name := range names {
		n, w := binary.Uvarint(rest)
		rest = rest[w:]
		if n > 0 {
			e.SetNamed(name, rest[:n])
			rest = rest[n:]
		}
	}
}
