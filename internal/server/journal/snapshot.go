package journal

import (
	"errors"
	"slices"
	"time"
)

// WriteSnapshot writes a snapshot of the records that fill adds: all of the state whose
// changes were appended before the call; see the rule for callers in the package comment.
// Up to 32 MiB of them are written when fill has returned, so that it may hold the locks of the state.
// The journal continues in a new file. When WriteSnapshot returns nil, the snapshot is on
// disk, and files that neither it nor the generation before it needs are removed. On an
// error, that of fill among them, nothing changes. A second call waits for the first.
func (d *Dir) WriteSnapshot(fill func(*SnapshotWriter) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return ErrClosed
	}
	d.generation++ // never used twice, whatever happens
	covered, missing := d.journal.rotate()
	h := snapshotHeader{generation: d.generation, written: time.Now().UnixNano(), covered: covered}
	if err := d.store(h, fill); err != nil {
		return d.wrap(snapshotName(h.generation), err)
	}
	d.journal.found(missing)
	d.snapshots = append(d.snapshots, h)
	d.tidy()
	return nil
}

// store writes the file and gives it its name.
func (d *Dir) store(h snapshotHeader, fill func(*SnapshotWriter) error) (err error) {
	w := newSnapshotWriter(func() (file, error) {
		_ = d.fs.remove(tempName) // one that could not be removed then
		return d.fs.create(tempName)
	}, h)
	renamed := false
	defer func() { // also when fill panics
		if w.f != nil && !renamed {
			_ = w.f.Close()
			err = errors.Join(err, d.fs.remove(tempName))
		}
	}()
	if err := fill(w); err != nil {
		return err
	}
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.f.Close(); err != nil {
		return err
	}
	if err := d.fs.rename(tempName, snapshotName(h.generation)); err != nil {
		return err
	}
	renamed = true
	return d.fs.syncDir()
}

// keptBad is how many damaged files of each kind are kept, so that they do not fill the
// disk.
const keptBad = 3

// tidy removes the files that the two newest snapshots do not need, and damaged files
// except the newest. What cannot be removed is tried again after the next snapshot.
func (d *Dir) tidy() {
	// If the only snapshot is damaged, the whole journal is needed.
	enough := len(d.snapshots) >= 2
	if enough {
		d.snapshots = slices.Delete(d.snapshots, 0, len(d.snapshots)-2)
		d.journal.prune(d.snapshots[0].covered)
	}
	names, err := d.fs.list()
	if err != nil {
		return
	}
	for _, n := range numbersOf(names, snapshotStem, "") {
		if enough && n != d.snapshots[0].generation && n != d.snapshots[1].generation {
			_ = d.fs.remove(snapshotName(n))
		}
	}
	for _, stem := range []string{snapshotStem, journalStem} {
		bad := numbersOf(names, stem, badSuffix)
		for _, n := range bad[:max(0, len(bad)-keptBad)] {
			_ = d.fs.remove(fileName(stem, n) + badSuffix)
		}
	}
}
