// Package snapshot is the format of exported state: tables, limits, hot keys and
// bans.
//
// An export is a sequence of chunks, each of which can be restored without the
// others:
//
//	kind | version | time written | head | entries | CRC-32C of all before
//
// The kind is what the chunk contains, the head what its entries have in common, such as
// the name of their rule. Kind and version are bytes, the checksum is four
// bytes, little-endian. All other numbers are varints. A chunk has about 64 KiB,
// and more only for a single large entry.
//
// A [Writer] makes chunks, [Open] checks one and returns a [Reader] of it. A Reader allocates
// no more than the length of the chunk.
package snapshot

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
)

// A Kind is what a chunk holds.
type Kind byte

const (
	Table    Kind = 'k' // keys of a window.Table
	Hot      Kind = 'w' // keys of a hotkey.Detector under one rule
	Counts   Kind = 'c' // limit counters of the keys of one rule
	Bans     Kind = 'b' // bans
	Adapt    Kind = 'a' // measured traffic of an adaptive limit
	Secret   Kind = 's' // the secret of the digests of long keys
	Throttle Kind = 't' // buckets of limits that callers bring
)

// Version is the version of the format that Writer writes.
const Version = 1

// ChunkSize is the length in bytes from which a chunk is full.
const ChunkSize = 64 << 10

const checksumSize = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Writer collects entries in chunks. Append to Buf; call EndHead after the head,
// and Flush when Full and at the end.
type Writer struct {
	// Buf is the chunk under construction.
	Buf []byte

	yield func([]byte) bool
	head  int      // bytes of Buf before the first entry
	split [][]byte // chunks of a single entry, which are yielded after Buf
}

// NewWriter returns a Writer of chunks of one kind, written at a time in nanoseconds since
// 1970. It passes each chunk to yield, which reports whether it wants more and does not keep
// the chunk.
func NewWriter(kind Kind, written int64, yield func([]byte) bool) *Writer {
	w := &Writer{yield: yield}
	w.Begin(kind, written)
	return w
}

// Begin drops what is in Buf and begins chunks of another kind.
func (w *Writer) Begin(kind Kind, written int64) {
	w.Buf = binary.AppendVarint(append(w.Buf[:0], byte(kind), Version), written)
	w.head = len(w.Buf)
}

// EndHead makes all in Buf so far the head of the chunks that follow.
func (w *Writer) EndHead() { w.head = len(w.Buf) }

// Entries returns the number of bytes of entries in Buf.
func (w *Writer) Entries() int { return len(w.Buf) - w.head }

// Split moves the entry that begins at that offset of Buf to a chunk of its own.
func (w *Writer) Split(entry int) {
	w.split = append(w.split, slices.Concat(w.Buf[:w.head], w.Buf[entry:]))
	w.Buf = w.Buf[:entry]
}

// Full reports whether it is time for Flush.
func (w *Writer) Full() bool {
	return len(w.split) > 0 || w.Entries() > 0 && len(w.Buf) >= ChunkSize
}

// Flush yields the chunk if it has entries, and begins the next with the same head.
// It reports whether more chunks are wanted.
func (w *Writer) Flush() bool {
	more := true
	if w.Entries() > 0 {
		w.Buf = Seal(w.Buf)
		more = w.yield(w.Buf)
		w.Buf = w.Buf[:w.head]
	}
	for _, chunk := range w.split {
		more = more && w.yield(Seal(chunk))
	}
	w.split = nil
	return more
}

// Seal appends the checksum to a chunk.
func Seal(chunk []byte) []byte {
	return binary.LittleEndian.AppendUint32(chunk, crc32.Checksum(chunk, castagnoli))
}

// Unseal returns what [Seal] has sealed, and whether the checksum is right.
func Unseal(chunk []byte) (sealed []byte, ok bool) {
	end := len(chunk) - checksumSize
	if end < 0 || binary.LittleEndian.Uint32(chunk[end:]) != crc32.Checksum(chunk[:end], castagnoli) {
		return nil, false
	}
	return chunk[:end], true
}

// Open checks the checksum and the header of a chunk, which must be of one of these kinds. It
// returns a Reader of the rest, and when the chunk was written.
func Open(chunk []byte, kinds ...Kind) (kind Kind, r *Reader, written int64, err error) {
	sealed, ok := Unseal(chunk)
	if !ok || len(sealed) < 2 {
		return 0, nil, 0, fmt.Errorf("snapshot chunk of %d bytes: wrong checksum", len(chunk))
	}
	r = NewReader(sealed)
	kind = Kind(r.Byte())
	if version := r.Byte(); version != Version {
		return 0, nil, 0, fmt.Errorf("snapshot chunk: version %d: must be %d", version, Version)
	}
	written = r.Varint()
	if r.Failed() || !slices.Contains(kinds, kind) {
		return 0, nil, 0, fmt.Errorf("snapshot chunk: unknown kind %q", kind)
	}
	return kind, r, written, nil
}

// MaxPast is the longest time, in nanoseconds, of anything in a record before its newest
// time: 36 years. It does not overflow if the newest time is a ValidTime.
const MaxPast = 1 << 60

// ValidTime reports whether events at t can be counted over spans of up to span.
func ValidTime(t, span int64) bool {
	most := math.MaxInt64 - 4*span
	return -most <= t && t <= most
}
