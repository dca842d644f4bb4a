package snapshot

import "encoding/binary"

// A Reader reads the numbers and byte strings of a chunk. It accepts each number
// in its shortest form only.
//
// After the first error all that it reads is zero. Check Failed after a number of
// reads, and before a number is used as a length.
type Reader struct {
	rest   []byte
	size   int
	failed bool
}

// NewReader returns a Reader of b, which must not change meanwhile.
func NewReader(b []byte) *Reader { return &Reader{rest: b, size: len(b)} }

// Len returns the number of bytes that are left.
func (r *Reader) Len() int { return len(r.rest) }

// Offset returns the number of bytes that were read, the header of [Open] included.
func (r *Reader) Offset() int { return r.size - len(r.rest) }

// Fail marks what was read as not valid.
func (r *Reader) Fail() { r.failed, r.rest = true, nil }

// Failed reports whether anything that was read is not valid.
func (r *Reader) Failed() bool { return r.failed }

// Byte reads a byte.
func (r *Reader) Byte() byte {
	if len(r.rest) == 0 {
		r.Fail()
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

// Uvarint reads an unsigned number.
func (r *Reader) Uvarint() uint64 {
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

// UpTo reads a number that is at most most.
func (r *Reader) UpTo(most uint64) uint64 {
	v := r.Uvarint()
	if v > most {
		r.Fail()
		return 0
	}
	return v
}

// Varint reads a signed number.
func (r *Reader) Varint() int64 {
	v := r.Uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

// Bytes reads a byte string of at most most bytes. It returns a part of the chunk,
// not a copy.
func (r *Reader) Bytes(most int) []byte {
	return r.Next(int(r.UpTo(uint64(min(most, len(r.rest))))))
}

// Next reads that many bytes. It returns a part of the chunk, not a copy.
func (r *Reader) Next(n int) []byte {
	if n > len(r.rest) {
		r.Fail()
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

// AppendBool appends b as Reader.UpTo(1) reads it: 0 or 1.
func AppendBool(dst []byte, b bool) []byte {
	if b {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// AppendBytes appends b as Reader.Bytes reads it.
func AppendBytes[T string | []byte](dst []byte, b T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}
