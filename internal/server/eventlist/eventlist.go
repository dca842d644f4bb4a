// Package eventlist writes events as bytes, one after the other, and reads them: events that
// a server keeps, or that a follower sends to it.
//
// An event is its time in nanoseconds since 1970, in 8 bytes with the lowest first; the number of
// its fields in a byte; and for each field the length of the name in a byte, the name, the length
// of the value as a varint, and the value.
package eventlist

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/lately-go/lately/match"
)

// Size returns the bytes that Append adds at most, and false if the form cannot have the
// event: it has more than 255 fields, or a name of more than 255 bytes.
func Size(ev *match.Event) (n int, ok bool) {
	n, ok = 8+1, true
	fields := 0
	for name, value := range ev.Fields() {
		fields++
		ok = ok && len(name) <= math.MaxUint8 && fields <= math.MaxUint8
		n += 1 + len(name) + binary.MaxVarintLen32 + len(value)
	}
	return n, ok
}

// Append appends an event that happened at a time. Size must have returned true.
func Append(dst []byte, at time.Time, ev *match.Event) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(at.UnixNano()))
	count := len(dst)
	dst = append(dst, 0)
	for name, value := range ev.Fields() {
		dst[count]++
		dst = append(append(dst, byte(len(name))), name...)
		dst = append(binary.AppendUvarint(dst, uint64(len(value))), value...)
	}
	return dst
}

// A Reader reads events. The zero Reader is ready.
type Reader struct {
	Event match.Event // the last one, as a view of what it was read from

	names map[string]string
}

// Next reads the first event of src, and returns the rest. It reports false if src does not
// begin with a whole event.
func (r *Reader) Next(src []byte) (rest []byte, ok bool) {
	if len(src) < 8+1 {
		return src, false
	}
	r.Event.Reset()
	r.Event.Time = time.Unix(0, int64(binary.LittleEndian.Uint64(src))).UTC()
	fields := src[8]
	rest = src[9:]
	for range fields {
		var name, value []byte
		if len(rest) == 0 || len(rest) <= int(rest[0]) {
			return src, false
		}
		end := 1 + int(rest[0])
		name, rest = rest[1:end], rest[end:]
		long, n := binary.Uvarint(rest)
		if n <= 0 || long > uint64(len(rest)-n) {
			return src, false
		}
		value, rest = rest[n:n+int(long)], rest[n+int(long):]
		r.Event.SetNamed(r.name(name), value)
	}
	return rest, true
}

// name returns a name as a string, the same one each time.
func (r *Reader) name(b []byte) string {
	name, ok := r.names[string(b)]
	if !ok {
		if r.names == nil {
			r.names = make(map[string]string)
		}
		name = string(b)
		r.names[name] = name
	}
	return name
}
