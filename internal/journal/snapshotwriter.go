package journal

import (
	"encoding/binary"
	"fmt"
)

const (
	snapshotHeaderLen = prefixLen + 3*8 + 4
	blockSize         = 256 << 10 // bytes that wait to be written with one call
	syncStep          = 8 << 20   // bytes: a single sync of all would delay those of the journal
)

// A Record is one record of a snapshot. The caller defines the types.
type Record struct {
	Type byte
	Data []byte // valid until the function that got it returns
}

// snapshotHeader is what a snapshot says of itself.
type snapshotHeader struct {
	generation uint64
	written    int64  // Unix nanoseconds
	covered    uint64 // number of the last journal record that it has
}

func (h *snapshotHeader) append(dst []byte) []byte {
	return appendHeader(dst, snapshotMagic, snapshotVersion, h.generation, uint64(h.written), h.covered)
}

func parseSnapshotHeader(b []byte) (h snapshotHeader, err error) {
	var written uint64
	err = parseHeader(b, snapshotMagic, snapshotVersion, &h.generation, &written, &h.covered)
	if err == nil && (h.generation > maxNumber || h.covered > maxNumber) {
		err = damage("a number of its header is too large")
	}
	h.written = int64(written)
	return h, err
}

// seed is where the checksums of the records begin, so that none of another generation
// passes for one of this.
func (h *snapshotHeader) seed() uint32 {
	return checksum(0, binary.LittleEndian.AppendUint64(nil, h.generation))
}

// A SnapshotWriter writes the records of a snapshot during [Dir.WriteSnapshot]. It is for one
// goroutine.
type SnapshotWriter struct {
	f       file
	seed    uint32
	next    uint64 // the number of the next record
	block   []byte // what is not written yet
	unsaved int    // bytes written since the last sync
	err     error  // the first; nothing is written after it
}

func newSnapshotWriter(f file, h snapshotHeader) *SnapshotWriter {
	w := &SnapshotWriter{f: f, seed: h.seed(), next: 1, block: make([]byte, 0, blockSize+4<<10)}
	w.block = h.append(w.block)
	return w
}

// Add writes a copy of a record. Some calls wait for the disk: hold no lock
// that others wait for. After an error all further calls return it.
func (w *SnapshotWriter) Add(typ byte, data []byte) error {
	if 1+len(data) > MaxRecord && w.err == nil {
		w.err = fmt.Errorf("journal: record of %d bytes with its type: must be up to %d", 1+len(data), MaxRecord)
	}
	if w.err != nil {
		return w.err
	}
	w.block = appendRecord(w.block, w.seed, w.next, []byte{typ}, data)
	if w.next++; len(w.block) >= blockSize {
		w.flush()
	}
	return w.err
}

// flush writes the block.
func (w *SnapshotWriter) flush() {
	if w.err != nil {
		return
	}
	if _, w.err = w.f.Write(w.block); w.err != nil {
		return
	}
	if w.unsaved += len(w.block); w.unsaved >= syncStep {
		w.err, w.unsaved = w.f.Sync(), 0
	}
	w.block = w.block[:0]
}

// finish writes what is left and the end, a record of no bytes, and syncs the file.
func (w *SnapshotWriter) finish() error {
	w.block = appendRecord(w.block, w.seed, w.next)
	if w.flush(); w.err == nil {
		w.err = w.f.Sync()
	}
	return w.err
}
