package keytable

import "encoding/binary"

// A DumpReader takes apart what was exported of counts: numbers as varints
// (binary.AppendUvarint and AppendVarint), bytes with their length in front. It
// takes each number in its shortest form only. After the first thing that is not
// as expected all that it reads is zero; callers look at Failed once in a while,
// and before they use a number as a length.
type DumpReader struct {
	rest   []byte
	failed bool
}

// NewDumpReader returns a DumpReader of b, which must not change meanwhile.
func NewDumpReader(b []byte) *DumpReader { return &DumpReader{rest: b} }

// Len returns how many bytes are left.
func (r *DumpReader) Len() int { return len(r.rest) }

// Fail says that what was read makes no sense.
func (r *DumpReader) Fail() { r.failed, r.rest = true, nil }

// Failed reports whether anything was not as expected.
func (r *DumpReader) Failed() bool { return r.failed }

// Byte reads a byte.
func (r *DumpReader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail()
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

// Uvarint reads a number.
func (r *DumpReader) Uvarint() uint64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // most are
		v := r.rest[0]
		r.rest = r.rest[1:]
		return uint64(v)
	}
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || n > 1 && r.rest[n-1] == 0 {
		r.Fail()
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// UpTo reads a number that is no more than most.
func (r *DumpReader) UpTo(most uint64) uint64 {
	v := r.Uvarint()
	if v > most {
		r.Fail()
		return 0
	}
	return v
}

// Varint reads a signed number.
func (r *DumpReader) Varint() int64 {
	v := r.Uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// Bytes reads bytes, at most so many. They are those of what the DumpReader was
// made with, not a copy.
func (r *DumpReader) Bytes(most int) []byte {
	n := r.UpTo(uint64(min(most, len(r.rest))))
	if n > uint64(len(r.rest)) {
		r.Fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// AppendDumpBytes appends b as Bytes reads it.
func AppendDumpBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
