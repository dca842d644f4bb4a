package journal

import (
	"encoding/binary"
	"errors"
	"io"
)

const recordHeaderLen = 4 + 8 + 4

// appendRecord appends a record of parts, whose checksum begins with seed.
func appendRecord(dst []byte, seed uint32, number uint64, parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	dst = binary.LittleEndian.AppendUint64(dst, number)
	sum := checksum(seed, dst[start:])
	for _, p := range parts {
		sum = checksum(sum, p)
	}
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	for _, p := range parts {
		dst = append(dst, p...)
	}
	return dst
}

// recordSize returns the length of the data of a record that begins with head
// and is followed by left bytes, if it can be one.
func recordSize(head []byte, left int64) (int, bool) {
	size := int64(binary.LittleEndian.Uint32(head))
	return int(size), 0 < size && size <= MaxRecord && size <= left
}

func recordNumber(head []byte) uint64 { return binary.LittleEndian.Uint64(head[4:]) }

// errTorn says that a record is not whole.
var errTorn = errors.New("a record is not whole")

// A recordReader reads the records of a file in their order.
type recordReader struct {
	*fileReader
	seed uint32 // of their checksums
	next uint64 // the number of the next record
}

// record returns the next record, which is valid until the next call. It returns io.EOF at
// the end of the file, and errTorn at bytes that are not the next record.
func (r *recordReader) record() ([]byte, error) {
	head, err := r.peek(recordHeaderLen)
	if err != nil {
		return nil, err
	}
	if r.at >= r.size {
		return nil, io.EOF
	}
	if len(head) < recordHeaderLen || recordNumber(head) != r.next {
		return nil, errTorn
	}
	size, ok := recordSize(head, r.size-r.at-recordHeaderLen)
	if !ok {
		return nil, errTorn
	}
	b, err := r.peek(recordHeaderLen + size)
	if err != nil {
		return nil, err
	}
	if !r.whole(b) {
		return nil, errTorn
	}
	r.take(len(b))
	r.next++
	return b[recordHeaderLen:], nil
}

// whole reports whether the checksum of a record is right.
func (r *recordReader) whole(record []byte) bool {
	sum := checksum(checksum(r.seed, record[:12]), record[recordHeaderLen:])
	return sum == binary.LittleEndian.Uint32(record[12:])
}
