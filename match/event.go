package match

import (
	"iter"
	"strings"
	"time"
	"unsafe"
)

// An Event is one thing that happened: a time and fields.
//
// An Event holds views of the bytes it was given, not copies: they must not change
// while the Event is in use. A field with an empty value is absent.
//
// The zero Event has no field and the zero time. To reuse an Event, call
// [Event.Reset]. It must not be used by several goroutines at once.
type Event struct {
	// Time is the time of the event. Methods that use the current time ignore it.
	Time time.Time

	// Part is whether the event is a request, its answer, or both.
	Part Part

	known [numFields][]byte
	extra []namedValue

	path pathReadings
}

type namedValue struct {
	name  string
	value []byte
}

// Reset makes e an event without fields, keeping its memory.
func (e *Event) Reset() {
	e.Time, e.Part = time.Time{}, Whole
	e.known = [numFields][]byte{}
	e.extra = e.extra[:0]
	e.path.form = pathUnread
}

// Set sets the well-known field f to v. Set panics if f is not one of the
// constants of this package.
func (e *Event) Set(f Field, v []byte) {
	e.known[f] = v
	if f == Path {
		e.path.form = pathUnread
	}
}

// SetString is Set for a string, without copying it.
func (e *Event) SetString(f Field, v string) { e.Set(f, view(v)) }

// SetNamed sets the named field, well known or not, to v.
func (e *Event) SetNamed(name string, v []byte) {
	if f, ok := fieldNamed(name); ok {
		e.Set(f, v)
		return
	}
	for i := range e.extra {
		if e.extra[i].name == name {
			e.extra[i].value = v
			return
		}
	}
	e.extra = append(e.extra, namedValue{name, v})
}

// SetNamedString is SetNamed for a string, without copying it.
func (e *Event) SetNamedString(name, v string) { e.SetNamed(name, view(v)) }

// Get returns the value of the well-known field f, empty when absent. The
// caller must not change the bytes. Get panics if f is not one of the constants
// of this package.
func (e *Event) Get(f Field) []byte { return e.known[f] }

// GetNamed returns the value of the named field, empty when absent. For "user |
// client" it is the value of the first field that e has. The caller must not
// change the bytes.
func (e *Event) GetNamed(name string) []byte {
	if v := e.named(name); v != nil {
		return v
	}
	r := newRef(name)
	return r.get(e)
}

// Fields yields the names and values of the fields that e has, the well-known ones last.
// The values must not be changed. It does not allocate.
func (e *Event) Fields() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for i := range e.extra {
			if x := &e.extra[i]; len(x.value) > 0 && !yield(x.name, x.value) {
				return
			}
		}
		for f, v := range &e.known { // without &, a copy of them all is made
			if len(v) > 0 && !yield(fieldNames[f], v) {
				return
			}
		}
	}
}

// CopyTo makes dst a copy of e that stays valid when the bytes that e was given change. It
// appends the values to buf, and returns the extended buffer, which dst refers to. It
// allocates only to extend buf.
func (e *Event) CopyTo(dst *Event, buf []byte) []byte {
	dst.Reset()
	dst.Time, dst.Part = e.Time, e.Part
	for f := range e.known {
		if v := e.known[f]; len(v) > 0 {
			buf = append(buf, v...)
			dst.known[f] = buf[len(buf)-len(v) : len(buf) : len(buf)]
		}
	}
	for i := range e.extra {
		x := &e.extra[i]
		buf = append(buf, x.value...)
		dst.extra = append(dst.extra, namedValue{x.name, buf[len(buf)-len(x.value) : len(buf) : len(buf)]})
	}
	return buf
}

func (e *Event) named(name string) []byte {
	for i := range e.extra {
		if e.extra[i].name == name {
			return e.extra[i].value
		}
	}
	return nil
}

// SetTarget sets Path, Object and Query from an undecoded request target. The part
// before the first '?' is the path and the object, the rest is the query.
func (e *Event) SetTarget(target string) {
	path := view(target)
	if q := strings.IndexByte(target, '?'); q >= 0 {
		e.Set(Query, path[q+1:])
		path = path[:q]
	}
	e.Set(Object, path)
	e.Set(Path, path)
}

// CleanPath returns the Path field as nginx reads it, for keys: without scheme and
// authority ("http://host/path"), up to the first '?' or '#', with %XX decoded once,
// runs of '/' merged, and "." and ".." resolved, never above the root. A trailing '/'
// stays. A path that does not begin with '/' ("*", "host:443") is only cut and
// decoded.
//
// The result must not be changed. It is valid until Path is set again, e is reset, or
// a Condition is evaluated on e. A clean path costs one scan and no copy.
func (e *Event) CleanPath() []byte {
	if e.path.form == pathUnread {
		e.path.read(e.known[Path])
	}
	return e.path.clean
}

// otherPaths returns the readings of the path that differ from CleanPath.
func (e *Event) otherPaths() [][]byte {
	switch e.path.form {
	case pathAmbiguous:
		e.path.readOthers(e.known[Path])
		fallthrough
	case pathRead:
		return e.path.others[:e.path.n]
	}
	return nil
}

// view returns the bytes of s without a copy. This is safe since nothing in this module
// writes to an event's values.
func view(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
