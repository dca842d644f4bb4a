package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Restore has the functions to which [Open] passes the records of a directory, which are
// valid until they return. Open returns their errors.
type Restore struct {
	// Snapshot gets the records of the newest snapshot that is whole, in the order in
	// which they were written. All checksums are verified before the first record, so
	// nothing of a damaged snapshot is used.
	Snapshot func(Record) error

	// Journal then gets the records of the journal that this snapshot does not have, in
	// the order in which they were appended.
	Journal func(record []byte) error
}

// Found is what [Open] found.
type Found struct {
	Snapshot SnapshotInfo
	Journal  JournalInfo
}

// SnapshotInfo says which snapshot was read.
type SnapshotInfo struct {
	// Generation is its number; 0 when there was none that is whole.
	Generation uint64

	// Written is when it was begun, by the wall clock of then.
	Written time.Time

	// Records is how many records it has.
	Records uint64

	// Problems says what was wrong with newer ones. Those files are kept, with ".bad"
	// after their names.
	Problems []error
}

// JournalInfo says which records of the journal were read.
type JournalInfo struct {
	// Records is how many were delivered, without those that the snapshot has.
	Records uint64

	// Cut is how many bytes at the ends of files were no whole record, as a crash
	// leaves them. They were not acknowledged.
	Cut int64

	// Damaged is how many bytes the disk has changed, and Missing how many records,
	// by their numbers, are in no file; those around them are delivered. Damaged
	// files are kept, with ".bad" after their names.
	Damaged int64
	Missing uint64

	// Problems has sentences about all this for a log.
	Problems []error
}

// restoring is a Dir while its files are read.
type restoring struct {
	*Dir
	found   Found
	next    uint64 // above the numbers of all journal records that were ever appended
	files   []journalFile
	damaged []damagedSnapshot
}

// A damagedSnapshot is a snapshot that is not whole.
type damagedSnapshot struct {
	generation uint64
	err        error
}

// snapshotHeaders reads the headers of all snapshots. Their numbers must be known before the
// first record is appended.
func (in *restoring) snapshotHeaders(numbers []uint64) error {
	for _, n := range numbers {
		h, err := in.header(snapshotName(n))
		if err == nil && h.generation != n {
			err = damage("its header says generation %d", h.generation)
		}
		switch {
		case err == nil:
			in.snapshots = append(in.snapshots, h)
			in.next = max(in.next, h.covered+1)
		case errors.Is(err, ErrNewer), errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("%s: %w", snapshotName(n), err)
		default:
			in.damaged = append(in.damaged, damagedSnapshot{n, err})
		}
	}
	return nil
}

// snapshot reads the newest snapshot that is whole: the file twice, with the memory of a
// block.
func (in *restoring) snapshot(deliver func(Record) error) error {
	for ; len(in.snapshots) > 0; in.snapshots = in.snapshots[:len(in.snapshots)-1] {
		s := in.snapshots[len(in.snapshots)-1]
		if _, err := in.pass(s, nil); err != nil {
			in.damaged = append(in.damaged, damagedSnapshot{s.generation, err})
			continue
		}
		records, err := in.pass(s, deliver)
		if err != nil {
			return fmt.Errorf("%s: %w", snapshotName(s.generation), err)
		}
		in.found.Snapshot = SnapshotInfo{Generation: s.generation, Written: time.Unix(0, s.written), Records: records}
		break
	}
	return nil
}

// pass reads one snapshot from beginning to end.
func (d *Dir) pass(s snapshotHeader, deliver func(Record) error) (records uint64, err error) {
	f, err := d.open(snapshotName(s.generation))
	if err != nil {
		return 0, err
	}
	defer f.Close() // read only
	return readSnapshot(f, deliver)
}

// journals reads the records that the snapshot does not have, from the files of these numbers,
// in ascending order. A file that cannot be read is an error: nothing else has its records,
// and it may be read the next time.
func (in *restoring) journals(numbers []uint64, deliver func([]byte) error) error {
	info, next := &in.found.Journal, uint64(1)
	if n := len(in.snapshots); n > 0 {
		next = in.snapshots[n-1].covered + 1
	}
	for _, n := range numbers {
		name := journalName(n)
		s, err := in.scan(name, func(number uint64, record []byte) error {
			if number < next { // in the snapshot, or written again after an error
				return nil
			}
			if number > next {
				info.Missing += number - next
				info.Problems = append(info.Problems, in.wrap(name, missing(next, number-1)))
			}
			next = number + 1
			info.Records++
			return deliver(record)
		})
		if err != nil {
			return fmt.Errorf("%s: %w; to start without it, move it away", name, err)
		}
		in.add(n, s)
	}
	return nil
}

// add adds a journal file and what a scan of it has found.
func (in *restoring) add(number uint64, s scan) {
	in.files = append(in.files, journalFile{number: number, last: s.last, damaged: s.damaged > 0})
	in.next = max(in.next, s.last+1)
	info, name := &in.found.Journal, journalName(number)
	info.Damaged += s.damaged
	info.Cut += s.torn
	if s.damaged > 0 {
		info.Problems = append(info.Problems, in.wrap(name, damage("%d bytes are not what was written; the whole records around them are used, and the file is kept as %s when it is no longer needed", s.damaged, name+badSuffix)))
	}
	if s.torn > 0 {
		info.Problems = append(info.Problems, in.wrap(name, fmt.Errorf("its last %d bytes are no whole record: torn when the process or the power ended; nothing in them was acknowledged unless the disk has changed it", s.torn)))
	}
}

// setAsideDamaged renames the damaged snapshots, so that they are not read again.
func (in *restoring) setAsideDamaged() {
	for _, s := range in.damaged {
		name := snapshotName(s.generation)
		problem := in.wrap(name, s.err)
		if err := in.fs.rename(name, name+badSuffix); err != nil {
			problem = fmt.Errorf("%w; it could not be set aside: %w", problem, err)
		} else {
			problem = fmt.Errorf("%w; it was set aside as %s", problem, name+badSuffix)
		}
		in.found.Snapshot.Problems = append(in.found.Snapshot.Problems, problem)
	}
}

// scan is scanJournal for the file of that name.
func (d *Dir) scan(name string, deliver func(uint64, []byte) error) (scan, error) {
	f, err := d.open(name)
	if err != nil {
		return scan{}, err
	}
	defer f.Close() // read only
	return scanJournal(f, deliver)
}

// missing is the error of records that are in no file.
func missing(first, last uint64) error {
	if first == last {
		return damage("record %d is lost", first)
	}
	return damage("records %d to %d are lost: %d", first, last, last-first+1)
}
