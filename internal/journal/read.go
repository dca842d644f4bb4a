package journal

import (
	"fmt"
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

// A damagedSnapshot is a snapshot that is not whole.
type damagedSnapshot struct {
	generation uint64
	err        error
}

// restoreSnapshot reads the newest snapshot that is whole, and returns the newer ones.
// It reads the file twice, and needs the memory of a block.
func (d *Dir) restoreSnapshot(deliver func(Record) error) (info SnapshotInfo, damaged []damagedSnapshot, err error) {
	for ; len(d.snapshots) > 0; d.snapshots = d.snapshots[:len(d.snapshots)-1] {
		s := d.snapshots[len(d.snapshots)-1]
		if _, err := d.pass(s, nil); err != nil {
			damaged = append(damaged, damagedSnapshot{s.generation, err})
			continue
		}
		t, err := d.pass(s, deliver)
		if err != nil {
			return info, nil, fmt.Errorf("%s: %w", snapshotName(s.generation), err)
		}
		info = SnapshotInfo{Generation: s.generation, Written: time.Unix(0, s.written), Records: t.records}
		break
	}
	return info, damaged, nil
}

// pass reads one snapshot from beginning to end.
func (d *Dir) pass(s snapshotHeader, deliver func(Record) error) (totals, error) {
	f, err := d.open(snapshotName(s.generation))
	if err != nil {
		return totals{}, err
	}
	defer f.Close() // read only
	h, t, err := readSnapshot(f, deliver)
	if err == nil && h != s {
		err = damage("it is not the file that it was")
	}
	return t, err
}

// restoreJournal reads the records after covered in the files of these numbers, in
// ascending order. A file that is there and cannot be read is an error: nothing else has
// its records, and it may be read the next time.
func (d *Dir) restoreJournal(numbers []uint64, covered uint64, deliver func([]byte) error) (info JournalInfo, files []journalFile, err error) {
	next := covered + 1
	for _, n := range numbers {
		name := journalName(n)
		s, err := d.scan(name, func(number uint64, record []byte) error {
			if number < next { // in the snapshot, or written again after an error
				return nil
			}
			if number > next {
				info.Missing += number - next
				info.Problems = append(info.Problems, d.wrap(name, missing(next, number-1)))
			}
			next = number + 1
			info.Records++
			return deliver(record)
		})
		if err != nil {
			return info, nil, fmt.Errorf("%s: %w; to start without it, move it away", name, err)
		}
		files = append(files, journalFile{number: n, last: s.last, damaged: s.damaged > 0})
		info.Damaged += s.damaged
		info.Cut += s.torn
		if s.damaged > 0 {
			info.Problems = append(info.Problems, d.wrap(name, damage("%d bytes are not what was written; the whole records around them are used, and the file is kept as %s when it is no longer needed", s.damaged, name+badSuffix)))
		}
		if s.torn > 0 {
			info.Problems = append(info.Problems, d.wrap(name, fmt.Errorf("its last %d bytes are no whole record: torn when the process or the power ended; nothing in them was acknowledged unless the disk has changed it", s.torn)))
		}
	}
	return info, files, nil
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
