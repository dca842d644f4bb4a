package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// ErrUnread is returned by [Dir.WriteSnapshot] while there is state in the
// directory that was not read to its end: the new snapshot would not have it and
// would take its place. [Dir.ReadJournal] returns it when it is called first.
var ErrUnread = errors.New("journal: there is state that was not read; call ReadSnapshot and ReadJournal until both return no error")

// Info says which snapshot was read.
type Info struct {
	// Generation is its number; 0 when there was none that is whole.
	Generation uint64

	// Written is when it was begun, by the wall clock of then.
	Written time.Time

	// Records and Bytes are how many records it has, and how many bytes these
	// take in the file.
	Records, Bytes uint64

	// Problems says what was wrong with newer ones: for a log, and for a
	// count of what should never be. Those files are kept, with ".bad" after
	// their names.
	Problems []error
}

// ReadSnapshot hands the records of the newest snapshot that is whole to deliver,
// in the order in which they were written. All checksums are verified before the
// first record is delivered, so a damaged file is left for the one before it
// with nothing of it used. No snapshot is no error: Info.Generation is 0 then.
//
// The error is that of deliver, or of a disk that fails between the two
// passes. What was delivered until then is not the whole: begin again, with an
// empty state. Reading costs about as much as reading the file twice, and the
// memory of a block.
func (d *Dir) ReadSnapshot(deliver func(Record) error) (Info, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return Info{}, ErrClosed
	}
	d.base, d.readSnapshot = 0, false
	for len(d.snapshots) > 0 {
		s := d.snapshots[len(d.snapshots)-1]
		name := snapshotName(s.generation)
		if _, _, err := d.pass(s, nil); err != nil {
			d.snapshots = d.snapshots[:len(d.snapshots)-1]
			d.problems = append(d.problems, d.setAside(name, err))
			continue
		}
		header, t, err := d.pass(s, deliver)
		if err != nil {
			return d.info(snapshotHeader{}, totals{}), d.wrap(name, err)
		}
		d.base, d.readSnapshot = s.covered, true
		return d.info(header, t), nil
	}
	d.readSnapshot = true
	return d.info(snapshotHeader{}, totals{}), nil
}

func (d *Dir) info(h snapshotHeader, t totals) Info {
	info := Info{Generation: h.generation, Records: t.records, Bytes: t.bytes, Problems: append([]error(nil), d.problems...)}
	if h.generation != 0 {
		info.Written = time.Unix(0, h.written)
	}
	return info
}

// pass reads one snapshot from beginning to end.
func (d *Dir) pass(s snapshotHeader, deliver func(Record) error) (snapshotHeader, totals, error) {
	f, err := d.fs.open(snapshotName(s.generation))
	if err != nil {
		return snapshotHeader{}, totals{}, err
	}
	defer f.Close() // read only
	h, t, err := readSnapshot(f, deliver)
	if err == nil && h != s {
		err = damage("it is not the file that it was")
	}
	return h, t, err
}

// WriteSnapshot writes a new generation: what fill adds. When it returns nil, the
// snapshot is on disk under its name, the generation before it is kept, and what
// neither needs is removed. On any error, a full disk among them, all that was
// there stays as it is.
//
// Everything must be in what fill adds whose record was appended before
// WriteSnapshot was called; see the rule for callers in the package comment. fill
// runs on the calling goroutine. Its error is returned.
//
// It may be called while records are appended, one call at a time; a second
// waits. The journal continues in a new file.
func (d *Dir) WriteSnapshot(fill func(*SnapshotWriter) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return ErrClosed
	case !d.readSnapshot && d.hadSnapshot || !d.readJournal && len(d.found) > 0:
		return ErrUnread
	}
	d.generation++ // never used twice, whatever happens
	covered, missing := d.journal.rotate()
	h := newSnapshotHeader(d.generation, covered)
	if err := d.store(h, fill); err != nil {
		return d.wrap(snapshotName(h.generation), err)
	}
	d.journal.found(missing)
	d.snapshots = append(d.snapshots, h)
	d.tidy()
	d.forgetBad()
	return nil
}

// store writes the file and gives it its name.
func (d *Dir) store(h snapshotHeader, fill func(*SnapshotWriter) error) (err error) {
	f, err := d.fs.create(tempName)
	if errors.Is(err, fs.ErrExist) { // one that could not be removed then
		if err = d.fs.remove(tempName); err == nil {
			f, err = d.fs.create(tempName)
		}
	}
	if err != nil {
		return err
	}
	renamed := false
	defer func() { // also when fill panics
		if f != nil {
			err = errors.Join(err, f.Close())
		}
		if !renamed {
			err = errors.Join(err, d.fs.remove(tempName))
		}
	}()
	w := newSnapshotWriter(f, h)
	if err := fill(w); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	closing := f
	f = nil
	if err := closing.Close(); err != nil {
		return err
	}
	if err := d.fs.rename(tempName, snapshotName(h.generation)); err != nil {
		return err
	}
	renamed = true
	return d.fs.syncDir()
}

// tidy removes what the two newest snapshots do not need. What cannot be removed
// is tried again after the next snapshot.
func (d *Dir) tidy() {
	if len(d.snapshots) < 2 {
		return // should this one be damaged, the journal from its beginning is all there is
	}
	d.snapshots = append(d.snapshots[:0], d.snapshots[len(d.snapshots)-2:]...)
	d.journal.prune(d.snapshots[0].covered)
	names, err := d.fs.list()
	if err != nil {
		return
	}
	for _, name := range names {
		n, ok := numberOf(name, snapshotStem)
		if ok && n != d.snapshots[0].generation && n != d.snapshots[1].generation {
			_ = d.fs.remove(name)
		}
	}
}

// setAside keeps a file that cannot be used under a name that nothing reads,
// and returns the problem as a sentence.
func (d *Dir) setAside(name string, why error) error {
	if err := d.fs.rename(name, name+badSuffix); err != nil {
		return fmt.Errorf("%w; it could not be set aside: %w", d.wrap(name, why), err)
	}
	return fmt.Errorf("%w; it was set aside as %s", d.wrap(name, why), name+badSuffix)
}
