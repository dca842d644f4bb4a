package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// MaxRecord is the most bytes that a record of a snapshot or journal has.
const MaxRecord = 1 << 20

const (
	version = 1

	snapshotMagic = "latelySN"
	journalMagic  = "latelyJN"

	prefixLen = 16

	// maxNumber bounds the numbers of records and files that are read. A process counts on
	// from those that it finds, up to maxStart: at a million records a second it would
	// reach maxNumber in nine years.
	maxNumber = 1 << 62
	maxStart  = maxNumber - 1<<48
)

// ErrNewer is the error of [Open] for a file of a version that this program does not know.
// Nothing has been changed.
var ErrNewer = errors.New("it was written by a newer program, of which this one would lose what it cannot read")

// errDamaged is part of every error about what a file's bytes say.
var errDamaged = errors.New("damaged")

// damage returns an error that is errDamaged.
func damage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errDamaged, fmt.Sprintf(format, args...))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(crc uint32, b []byte) uint32 { return crc32.Update(crc, castagnoli, b) }

// sumOf returns the checksum of numbers, where another checksum begins.
func sumOf(numbers ...uint64) uint32 {
	var b []byte
	for _, n := range numbers {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return checksum(0, b)
}

// appendPrefix appends the bytes that every file begins with.
func appendPrefix(dst []byte, magic string) []byte {
	start := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	return binary.LittleEndian.AppendUint32(dst, checksum(0, dst[start:]))
}

// appendHeader appends the prefix, numbers, and a checksum.
func appendHeader(dst []byte, magic string, numbers ...uint64) []byte {
	start := len(dst)
	dst = appendPrefix(dst, magic)
	for _, n := range numbers {
		dst = binary.LittleEndian.AppendUint64(dst, n)
	}
	return binary.LittleEndian.AppendUint32(dst, checksum(0, dst[start:]))
}

// parseHeader reads numbers that appendHeader has appended. If the checksum of the prefix
// is wrong, the file is damaged, whatever its version says.
func parseHeader(b []byte, magic string, numbers ...*uint64) error {
	if len(b) < prefixLen {
		return damage("it ends within its first %d bytes", prefixLen)
	}
	if string(b[:8]) != magic || checksum(0, b[:12]) != binary.LittleEndian.Uint32(b[12:]) {
		return damage("its first %d bytes are not those of such a file", prefixLen)
	}
	switch v := binary.LittleEndian.Uint32(b[8:]); {
	case v > version:
		return fmt.Errorf("version %d, this program knows up to %d: %w", v, version, ErrNewer)
	case v != version:
		return damage("there is no version %d", v)
	}
	end := prefixLen + 8*len(numbers)
	if len(b) < end+4 {
		return damage("it ends within its header")
	}
	if checksum(0, b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return damage("the checksum of its header is wrong")
	}
	for i, n := range numbers {
		*n = binary.LittleEndian.Uint64(b[prefixLen+8*i:])
	}
	return nil
}
