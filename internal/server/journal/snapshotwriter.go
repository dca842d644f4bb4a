package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

const (
	snapshotHeaderLen = prefixLen + 3*8 + 4
	blockHeaderLen    = 2 * 4
	footerLen         = 4 + 3*8 + 2*4

	blockSize  = 256 << 10                                         // is written with one call, and read at once
	maxPayload = blockSize + 1 + binary.MaxVarintLen32 + MaxRecord // the last record may exceed blockSize
	syncStep   = 8 << 20                                           // bytes: a single sync of all would delay those of the journal
	maxCopied  = 32 << 20                                          // bytes of a snapshot that wait in memory until all records are added
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
	return appendHeader(dst, snapshotMagic, h.generation, uint64(h.written), h.covered)
}

func parseSnapshotHeader(b []byte) (h snapshotHeader, err error) {
	var written uint64
	err = parseHeader(b, snapshotMagic, &h.generation, &written, &h.covered)
	if err == nil && (h.generation > maxNumber || h.covered > maxNumber) {
		err = damage("a number of its header is too large")
	}
	h.written = int64(written)
	return h, err
}

// totals is what a footer says.
type totals struct {
	blocks, records, bytes uint64
	sums                   uint32 // checksum of the blocks' checksums
}

func (t *totals) add(records, bytes int, sum uint32) {
	t.blocks++
	t.records += uint64(records)
	t.bytes += uint64(bytes)
	t.sums = checksum(t.sums, binary.LittleEndian.AppendUint32(nil, sum))
}

func (t *totals) append(dst []byte, generation uint64) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	dst = binary.LittleEndian.AppendUint64(dst, t.blocks)
	dst = binary.LittleEndian.AppendUint64(dst, t.records)
	dst = binary.LittleEndian.AppendUint64(dst, t.bytes)
	dst = binary.LittleEndian.AppendUint32(dst, t.sums)
	return binary.LittleEndian.AppendUint32(dst, checksum(sumOf(generation), dst[start:]))
}

// A SnapshotWriter takes the records of a snapshot during [Dir.WriteSnapshot]. It is for one
// goroutine.
type SnapshotWriter struct {
	create  func() (file, error)
	f       file // nil while nothing was written
	header  snapshotHeader
	waiting [][]byte // blocks that are not written yet
	copied  int      // bytes in waiting
	most    int      // that copied may be
	block   []byte   // blockHeaderLen bytes, then the payload so far
	records int      // in block
	unsaved int      // bytes written since the last sync
	totals  totals
	err     error // the first; nothing is written after it
}

func newSnapshotWriter(create func() (file, error), h snapshotHeader) *SnapshotWriter {
	w := &SnapshotWriter{create: create, header: h, most: maxCopied, block: make([]byte, blockHeaderLen, blockHeaderLen+blockSize+4<<10)}
	w.push(h.append(nil))
	return w
}

// Add adds a copy of a record. The first 32 MiB are copied to memory only, so that a caller may
// hold the locks of the state. Calls after that wait for the disk. After an error all further calls
// return it.
func (w *SnapshotWriter) Add(typ byte, data []byte) error {
	if len(data) > MaxRecord && w.err == nil {
		w.err = fmt.Errorf("journal: record of %d bytes: must be up to %d", len(data), MaxRecord)
	}
	if w.err != nil {
		return w.err
	}
	w.block = append(w.block, typ)
	w.block = binary.AppendUvarint(w.block, uint64(len(data)))
	w.block = append(w.block, data...)
	w.records++
	if len(w.block) >= blockHeaderLen+blockSize {
		w.flush()
	}
	return w.err
}

// flush ends the block, if there is anything in it.
func (w *SnapshotWriter) flush() {
	payload := len(w.block) - blockHeaderLen
	if payload == 0 {
		return
	}
	binary.LittleEndian.PutUint32(w.block, uint32(payload))
	binary.LittleEndian.PutUint32(w.block[4:], uint32(w.records))
	sum := checksum(sumOf(w.header.generation, w.totals.blocks), w.block)
	w.totals.add(w.records, payload, sum)
	w.push(binary.LittleEndian.AppendUint32(w.block, sum))
	w.block, w.records = w.block[:blockHeaderLen], 0
}

// push copies b, or writes it if too much was copied.
func (w *SnapshotWriter) push(b []byte) {
	if w.f == nil {
		b = bytes.Clone(b) // it waits
	}
	w.waiting = append(w.waiting, b)
	if w.copied += len(b); w.copied > w.most {
		w.write()
	}
}

// write writes what waits.
func (w *SnapshotWriter) write() {
	if w.f == nil && w.err == nil {
		f, err := w.create()
		if w.err = err; err == nil {
			w.f = f
		}
	}
	for _, b := range w.waiting {
		if w.err == nil {
			_, w.err = w.f.Write(b)
		}
		if w.unsaved += len(b); w.unsaved >= syncStep && w.err == nil {
			w.err, w.unsaved = w.f.Sync(), 0
		}
	}
	w.waiting, w.copied, w.most = nil, 0, 0
}

// finish writes what is left and the footer, and syncs the file.
func (w *SnapshotWriter) finish() error {
	if w.err != nil {
		return w.err
	}
	w.flush()
	w.push(w.totals.append(nil, w.header.generation))
	w.write()
	if w.err == nil {
		w.err = w.f.Sync()
	}
	return w.err
}
