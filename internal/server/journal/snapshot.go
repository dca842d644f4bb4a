package journal

import (
	"errors"
	"io"
	"time"
)

// WriteSnapshot writes a snapshot of the records that fill adds: the whole state whose changes
// were appended before the call; see the rule for callers in the package comment. add copies a
// record of up to MaxRecord bytes. The first 32 MiB are copied to memory only, so that fill may
// hold the locks of the state; calls after that wait for the disk. After an error all further
// calls return it.
//
// Records are appended to the old file meanwhile. Those that came since the call are copied
// behind the snapshot, and only while the file is replaced they wait. When WriteSnapshot returns
// nil, the snapshot is on disk. On an error, that of fill among them, the state on disk is as
// before. A second call waits for the first.
func (j *Journal) WriteSnapshot(fill func(add func(typ byte, data []byte) error) error) error {
	j.snapshots.Lock()
	defer j.snapshots.Unlock()
	since, missing, err := j.since()
	if err != nil {
		return err
	}
	if err := j.snapshot(since, fill); err != nil {
		return j.wrap(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stats.Missing -= missing // the snapshot has these changes
	return nil
}

// A position is where the records of the file begin that a snapshot does not have.
type position struct {
	covered uint64 // records that it has, of all that were appended
	from    uint64 // number of the first record that it does not have
	next    uint64 // number of the record at offset
	offset  int64
}

// since returns the position from now on, and how many records are missing until now.
func (j *Journal) since() (p position, missing uint64, err error) {
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.create(); err != nil { // now, since the snapshot has the temporary name
		return p, 0, j.wrap(err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return p, 0, ErrClosed
	}
	return position{covered: j.appended, from: j.next + j.appended - j.done, next: j.next, offset: j.size}, j.stats.Missing, nil
}

func (j *Journal) snapshot(since position, fill func(add func(typ byte, data []byte) error) error) (err error) {
	w := newWriter(j.fs, time.Now().UnixNano())
	defer func() { // also when fill panics
		if j.file != w.f {
			err = errors.Join(err, w.discard())
		}
	}()
	if err := fill(w.add); err != nil {
		return err
	}
	if err := w.endSnapshot(); err != nil {
		return err
	}
	j.writing.Lock()
	end := j.size
	j.writing.Unlock()
	if err := j.copySince(&since, end, w); err != nil {
		return err
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.copySince(&since, j.size, w); err != nil {
		return err
	}
	return j.replace(w, since.covered)
}

// copySince adds the records of the file from p to end to w, and moves p there.
func (j *Journal) copySince(p *position, end int64, w *writer) error {
	r := newReader(j.file, p.offset, end, p.next)
	for {
		record, err := r.record()
		if err == io.EOF {
			p.offset, p.next = end, r.next
			return w.end()
		}
		if err != nil {
			return err
		}
		if r.next > p.from {
			if err := w.add(record.Type, record.Data); err != nil {
				return err
			}
		}
	}
}

// replace replaces the file of j by the file of w, which contains the first covered appended records.
//
// REQUIRES: j.writing.
func (j *Journal) replace(w *writer, covered uint64) error {
	if err := j.fs.rename(tempName, stateName); err != nil {
		return err
	}
	j.closeFile() // it has been removed
	j.file, j.size, j.next, j.unsynced = w.f, w.size, w.next, true
	j.drop(covered)
	return j.syncDir()
}

// drop drops the waiting records that the snapshot in the file has.
func (j *Journal) drop(covered uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for ; j.done < covered; j.done++ {
		n += sizeOf(j.open.bytes[n:])
	}
	j.open.bytes = j.open.bytes[n:]
	j.stats.Waiting -= n
}
