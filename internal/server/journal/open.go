package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"
)

// Found is what [Open] found.
type Found struct {
	Written  time.Time // when the snapshot was begun, by the wall clock of then; zero if there is none
	Snapshot uint64    // records of the snapshot
	Appended uint64    // records that were appended since

	// Cut is how many bytes at the end were no whole record, as a crash leaves them. They
	// were not acknowledged, and are removed.
	Cut int64

	// Damaged is how many bytes the disk has changed, and Missing how many records, by
	// their numbers, are lost; those around them are delivered.
	Damaged int64
	Missing uint64

	// Problems has sentences about all this for a log.
	Problems []error
}

// Open locks the directory at path, which it makes, for its owner only, if it is missing. It
// passes all records to restore: the snapshot's in the order in which they were added, then the
// appended ones. It changes no file before it has read all of them. Call [Journal.Close] in the
// end.
//
// The error says what to do: the directory is in use (ErrLocked), other users can write to
// it, it or a file cannot be read, a file is no regular file or of a newer version
// (ErrNewer); or it is that of restore. Damage is no error, but a problem of Found. After an
// error, restore may have received a part of the state.
func Open(path string, restore func(Record) error) (*Journal, Found, error) {
	j, found, err := openLocked(path, restore)
	if err != nil {
		return nil, found, fmt.Errorf("journal: %s: %w", path, err)
	}
	return j, found, nil
}

func openLocked(path string, restore func(Record) error) (*Journal, Found, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, Found{}, err
	}
	l, err := openDir(path)
	if err != nil {
		return nil, Found{}, err
	}
	unlock, err := l.lock()
	if err != nil {
		return nil, Found{}, errors.Join(err, l.close())
	}
	release := func() error { return errors.Join(unlock(), l.close()) }
	j := &Journal{fs: l, path: path, release: release}
	found, err := j.restore(restore)
	if err != nil {
		return nil, found, errors.Join(err, release())
	}
	return j, found, nil
}

// restore reads the file, if there is one, and starts the goroutine that writes.
func (j *Journal) restore(deliver func(Record) error) (found Found, err error) {
	f, err := j.fs.open(stateName)
	switch {
	case err == nil:
		if found, err = j.read(f, deliver); err != nil {
			return found, errors.Join(fmt.Errorf("%s: %w", stateName, err), f.Close())
		}
	case errors.Is(err, fs.ErrPermission):
		// Most likely the program was once run by another user.
		return found, fmt.Errorf("%w; give it to the user that runs this program", err)
	case !errors.Is(err, fs.ErrNotExist):
		return found, err
	}
	_ = j.fs.remove(tempName) // of a snapshot that was not finished; the next one tries again
	j.start()
	return found, nil
}

// read passes the records of f to deliver, and makes f the file of j unless it has no whole record.
func (j *Journal) read(f file, deliver func(Record) error) (found Found, err error) {
	info, err := f.Stat()
	if err != nil {
		return found, err
	}
	r := newReader(f, 0, info.Size(), 0)
	h, err := r.header()
	if err != nil && !errors.Is(err, errDamaged) {
		return found, err
	}
	in := restoring{Journal: j, header: h, next: h.first, deliver: deliver}
	if err != nil {
		in.problem(err)
	}
	if err := r.each(func(record Record) error { return in.record(r.next-1, record) }); err != nil {
		return in.Found, err
	}
	in.end(r)
	if r.last == 0 {
		return in.Found, f.Close() // the first record goes to a new file
	}
	if r.last < r.end {
		if err := f.Truncate(r.last); err != nil {
			return in.Found, err
		}
	}
	j.file, j.size, j.next = f, r.last, r.next
	return in.Found, nil
}

// restoring is a Journal while its file is read.
type restoring struct {
	*Journal
	Found
	header  header
	next    uint64 // number of the next record; 0 if it is unknown
	deliver func(Record) error
}

func (in *restoring) problem(err error) { in.Problems = append(in.Problems, in.wrap(err)) }

// record passes a record to deliver.
func (in *restoring) record(number uint64, record Record) error {
	if in.next != 0 && number > in.next {
		in.lost(number - in.next)
	}
	in.next = number + 1
	if number < in.header.first+in.header.records {
		in.Snapshot++
	} else {
		in.Appended++
	}
	return in.deliver(record)
}

// lost counts records that are missing after the delivered ones.
func (in *restoring) lost(n uint64) {
	at := in.Snapshot + in.Appended + in.Missing + 1
	in.Missing += n
	if n == 1 {
		in.problem(damage("record %d is lost", at))
	} else {
		in.problem(damage("records %d to %d are lost: %d", at, at+n-1, n))
	}
}

// end judges the bytes that are no whole record.
func (in *restoring) end(r *reader) {
	if in.header.written != 0 {
		in.Written = time.Unix(0, in.header.written)
	}
	in.Damaged += r.skipped
	in.Cut = r.end - r.last
	snapshotEnd := in.header.first + in.header.records
	if r.next < snapshotEnd {
		in.lost(snapshotEnd - r.next)
	}
	if r.next < snapshotEnd || r.next == 0 || in.Cut > maxTorn || r.work > maxSearch {
		in.Damaged, in.Cut = in.Damaged+in.Cut, 0
	}
	if in.Damaged > 0 {
		in.problem(damage("%d bytes are not what was written; the whole records around them are used", in.Damaged))
	}
	if in.Cut > 0 {
		in.problem(fmt.Errorf("its last %d bytes are no whole record: torn when the process or the power ended; nothing in them was acknowledged unless the disk has changed it", in.Cut))
	}
}
