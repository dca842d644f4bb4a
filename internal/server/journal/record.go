package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// MaxRecord is the most bytes of data that a record has.
const MaxRecord = 1 << 20

const (
	version = 1
	magic   = "latelyST"

	prefixLen       = 16
	headerLen       = prefixLen + 3*8 + 4
	recordHeaderLen = 4 + 8 + 4

	maxFirst = 1 << 62 // of the numbers with which a file begins
)

// ErrNewer is the error of [Open] for a file of a version that this program does not know.
// Nothing has been changed.
var ErrNewer = errors.New("written by a newer version; opening it would lose data")

// errDamaged is part of every error about the bytes of a file.
var errDamaged = errors.New("damaged")

// damage returns an error that is errDamaged.
func damage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamaged, fmt.Sprintf(format, args...))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// A header is the beginning of a file.
type header struct {
	written int64  // time of the snapshot in Unix nanoseconds; 0 if there is none
	records uint64 // of the snapshot
	first   uint64 // number of the first record
}

// newFirst returns a random number for the first record of a file.
func newFirst() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return max(1, binary.LittleEndian.Uint64(b[:])%maxFirst)
}

// appendPrefix appends the bytes that a file of each version begins with.
func appendPrefix(dst []byte, version uint32) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(append(dst, magic...), version)
	return binary.LittleEndian.AppendUint32(dst, checksum(0, dst[start:]))
}

func (h *header) append(dst []byte) []byte {
	start := len(dst)
	dst = appendPrefix(dst, version)
	for _, n := range []uint64{uint64(h.written), h.records, h.first} {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return binary.LittleEndian.AppendUint32(dst, checksum(0, dst[start:]))
}

// parseHeader reads the header of a file. If the checksum of the prefix is wrong, the file is
// damaged, whatever its version says.
func parseHeader(b []byte) (h header, err error) {
	if len(b) < headerLen {
		return h, damage("it ends within its header")
	}
	if string(b[:8]) != magic || checksum(0, b[:12]) != binary.LittleEndian.Uint32(b[12:]) {
		return h, damage("its first %d bytes are not those of such a file", prefixLen)
	}
	switch v := binary.LittleEndian.Uint32(b[8:]); {
	case v > version:
		return h, fmt.Errorf("version %d, this program knows up to %d: %w", v, version, ErrNewer)
	case v != version:
		return h, damage("there is no version %d", v)
	}
	end := headerLen - 4
	if checksum(0, b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return h, damage("the checksum of its header is wrong")
	}
	h.written = int64(binary.LittleEndian.Uint64(b[prefixLen:]))
	h.records = binary.LittleEndian.Uint64(b[prefixLen+8:])
	h.first = binary.LittleEndian.Uint64(b[prefixLen+16:])
	if h.first == 0 || h.first > maxFirst || h.records > maxFirst {
		return header{}, damage("a number of its header is impossible")
	}
	return h, nil
}

// A Record is one record of the state. The caller defines the types.
type Record struct {
	Type byte
	Data []byte // valid until the function that received it returns
}

// appendRecord appends a record, which seal makes whole.
func appendRecord(dst []byte, typ byte, data []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(1+len(data)))
	dst = append(dst, make([]byte, recordHeaderLen-4)...)
	return append(append(dst, typ), data...)
}

// seal numbers the records of b from next and sets their checksums. It returns the number
// after the last.
func seal(b []byte, next uint64) uint64 {
	for ; len(b) > 0; next++ {
		n := sizeOf(b)
		binary.LittleEndian.PutUint64(b[4:], next)
		binary.LittleEndian.PutUint32(b[12:], sumOf(b[:n]))
		b = b[n:]
	}
	return next
}

// sizeOf returns the length of the record that b begins with.
func sizeOf(b []byte) int { return recordHeaderLen + int(binary.LittleEndian.Uint32(b)) }

// sumOf returns the checksum that a record must have.
func sumOf(record []byte) uint32 {
	return checksum(checksum(0, record[:12]), record[recordHeaderLen:])
}

// mayBe reports whether head begins a record, with at most left bytes.
func mayBe(head []byte, left int64) bool {
	n := int64(binary.LittleEndian.Uint32(head))
	return 0 < n && n <= 1+MaxRecord && recordHeaderLen+n <= left
}

func numberOf(head []byte) uint64 { return binary.LittleEndian.Uint64(head[4:]) }

// isWhole reports whether the checksum of a record is right.
func isWhole(record []byte) bool {
	return sumOf(record) == binary.LittleEndian.Uint32(record[12:])
}
