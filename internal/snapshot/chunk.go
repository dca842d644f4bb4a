// Package snapshot is the format of exported state: tables, limits, hot keys and
// bans.
//
// An export is a sequence of chunks, each of which can be restored without the
// others:
//
//	kind | version | time written | head | entries | CRC-32C of all before
//
// The kind says what the chunk holds, the head what its entries have in common,
// such as the name of their rule. Kind and version are bytes, the checksum is four
// bytes, little-endian. All other numbers are varints. A chunk has about 64 KiB,
// and more only for a single large entry.
//
// A [Writer] makes chunks, [Open] checks one and returns a [Reader] of it. What a
// Reader allocates is bounded by the length of the chunk, whatever its bytes.
package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// A Kind is what a chunk holds.
type Kind byte

const (
	Table    Kind = 'k' // keys of a lately.Table
	Hot      Kind = 'h' // keys of a hotkey.Detector under one rule
	Counts   Kind = 'c' // limit counters of the keys of one rule
	Bans     Kind = 'b' // bans
	Adapt    Kind = 'a' // measured traffic of an adaptive limit
	Secret   Kind = 's' // the secret of the digests of long keys
	Throttle Kind = 't' // buckets of limits that callers bring
)

// Version is the version of the format that Writer writes.
const Version = 4

// ChunkSize is the length in bytes from which a chunk is full.
const ChunkSize = 64 << 10

const (
	checksumSize = 4

	// oldVersions are the versions that had a format per package. Chunks of
	// lately and hotkey began with the version and had no kind.
	oldVersions = 3
)

// ErrOldVersion is the error of a chunk that an earlier version of the program
// has written.
var ErrOldVersion = errors.New("snapshot of an earlier version")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Writer collects entries in chunks. Append to Buf; call EndHead after the head,
// and Flush when Full and at the end.
type Writer struct {
	// Buf is the chunk under construction.
	Buf []byte

	yield func([]byte) bool
	head  int // bytes of Buf before the first entry
}

// NewWriter returns a Writer of chunks of one kind, written at a time in
// nanoseconds since 1970. It calls yield with each chunk, which is valid until yield
// returns. yield reports whether it wants more.
func NewWriter(kind Kind, written int64, yield func([]byte) bool) *Writer {
	w := &Writer{yield: yield}
	w.Begin(kind, written)
	return w
}

// Begin begins chunks of another kind. What Buf held is lost.
func (w *Writer) Begin(kind Kind, written int64) {
	w.Buf = binary.AppendVarint(append(w.Buf[:0], byte(kind), Version), written)
	w.head = len(w.Buf)
}

// EndHead says that all in Buf so far is the head of the chunks that follow.
func (w *Writer) EndHead() { w.head = len(w.Buf) }

// Head returns the head. It is valid until the next append to Buf.
func (w *Writer) Head() []byte { return w.Buf[:w.head] }

// Entries returns the number of bytes of entries in Buf.
func (w *Writer) Entries() int { return len(w.Buf) - w.head }

// Full reports whether the chunk has reached its length.
func (w *Writer) Full() bool { return w.Entries() > 0 && len(w.Buf) >= ChunkSize }

// Flush yields the chunk if it has entries, and begins the next with the same head.
// It reports whether more chunks are wanted.
func (w *Writer) Flush() bool {
	if w.Entries() == 0 {
		return true
	}
	w.Buf = Seal(w.Buf)
	more := w.yield(w.Buf)
	w.Buf = w.Buf[:w.head]
	return more
}

// Seal appends the checksum to a chunk.
func Seal(chunk []byte) []byte {
	return binary.LittleEndian.AppendUint32(chunk, crc32.Checksum(chunk, castagnoli))
}

// Open checks the checksum and the header of a chunk, and returns a Reader of what
// follows the header, and when the chunk was written. The error is ErrOldVersion
// if an earlier version wrote the chunk.
func Open(chunk []byte, kinds ...Kind) (kind Kind, r *Reader, written int64, err error) {
	if IsOld(chunk) {
		return 0, nil, 0, ErrOldVersion
	}
	body := len(chunk) - checksumSize
	if body < 2 || binary.LittleEndian.Uint32(chunk[body:]) != crc32.Checksum(chunk[:body], castagnoli) {
		return 0, nil, 0, fmt.Errorf("snapshot chunk of %d bytes: wrong checksum", len(chunk))
	}
	r = NewReader(chunk[:body])
	kind = Kind(r.Byte())
	if version := r.Byte(); version != Version {
		return 0, nil, 0, fmt.Errorf("snapshot chunk: version %d: must be %d", version, Version)
	}
	written = r.Varint()
	for _, k := range kinds {
		if k == kind && !r.Failed() {
			return kind, r, written, nil
		}
	}
	return 0, nil, 0, fmt.Errorf("snapshot chunk: unknown kind %q", kind)
}

// IsOld reports whether an earlier version wrote the chunk.
func IsOld(chunk []byte) bool {
	return len(chunk) > 1 && (chunk[0] <= oldVersions || chunk[1] <= oldVersions)
}

// MaxPast is the longest time, in nanoseconds, that anything in a record can be
// before its newest time: 36 years. With a newest time that is ValidTime nothing
// overflows.
const MaxPast = 1 << 60

// ValidTime reports whether t is a time that is counted at, where the longest span
// is span.
func ValidTime(t, span int64) bool {
	most := math.MaxInt64 - 4*span
	return -most <= t && t <= most
}
