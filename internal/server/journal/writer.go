package journal

import (
	"errors"
	"fmt"
)

const (
	blockSize = 256 << 10 // is written with one call
	syncStep  = 8 << 20   // bytes: a single sync of all would delay the records that are appended
	maxCopied = 32 << 20  // bytes that wait in memory until all records are added
)

// A writer writes a new file under its temporary name. It is for one goroutine.
type writer struct {
	fs      fileSystem
	f       file // nil while nothing was written
	header  header
	block   []byte   // the newest records, not sealed
	waiting [][]byte // blocks that are not written yet
	copied  int      // bytes in waiting
	most    int      // that copied may be
	next    uint64   // number of the first record of block
	size    int64    // bytes written
	unsaved int      // bytes written since the last sync
	err     error    // the first; nothing is written after it
}

func newWriter(fs fileSystem, written int64) *writer {
	first := newFirst()
	return &writer{fs: fs, header: header{written: written, first: first}, next: first, size: headerLen, most: maxCopied}
}

// add adds a copy of a record.
func (w *writer) add(typ byte, data []byte) error {
	if len(data) > MaxRecord && w.err == nil {
		w.err = fmt.Errorf("record of %d bytes: must be up to %d", len(data), MaxRecord)
	}
	if w.err != nil {
		return w.err
	}
	if w.block == nil {
		w.block = make([]byte, 0, blockSize+4<<10)
	}
	w.block = appendRecord(w.block, typ, data)
	if len(w.block) >= blockSize {
		w.flush()
	}
	return w.err
}

// flush ends the block. It is written if too much waits.
func (w *writer) flush() {
	w.next = seal(w.block, w.next)
	w.waiting = append(w.waiting, w.block)
	w.copied += len(w.block)
	w.block = nil
	if w.copied > w.most {
		w.write()
	}
}

// write writes what waits.
func (w *writer) write() {
	if w.f == nil && w.err == nil {
		_ = w.fs.remove(tempName) // of a process that was killed, or a file that could not be removed
		var f file
		if f, w.err = w.fs.create(tempName); w.err == nil {
			w.f = f
		}
	}
	for _, b := range w.waiting {
		w.writeAt(b, w.size)
		w.size += int64(len(b))
	}
	if len(w.waiting) > 0 && w.err == nil {
		w.block = w.waiting[0][:0] // free again
	}
	w.waiting, w.copied, w.most = nil, 0, 0
}

func (w *writer) writeAt(b []byte, at int64) {
	if w.err == nil {
		_, w.err = w.f.WriteAt(b, at)
	}
	if w.unsaved += len(b); w.unsaved >= syncStep {
		w.sync()
	}
}

// sync syncs what was written.
func (w *writer) sync() {
	if w.err == nil && w.unsaved > 0 {
		w.err, w.unsaved = w.f.Sync(), 0
	}
}

// end writes all that was added, and syncs the file.
func (w *writer) end() error {
	w.flush()
	w.write()
	w.sync()
	return w.err
}

// endSnapshot is end after the last record of the snapshot.
func (w *writer) endSnapshot() error {
	w.flush()
	w.write()
	w.header.records = w.next - w.header.first
	w.writeAt(w.header.append(nil), 0)
	w.sync()
	return w.err
}

// discard removes the file.
func (w *writer) discard() error {
	if w.f == nil {
		return nil
	}
	return errors.Join(w.f.Close(), w.fs.remove(tempName))
}
