package journal

import (
	"errors"
	"fmt"
	"slices"
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

	// Records is how many records it has.
	Records uint64

	// Problems says what was wrong with newer ones. Those files are kept, with ".bad"
	// after their names.
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
func (d *Dir) ReadSnapshot(deliver func(Record) error) (info Info, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return Info{}, ErrClosed
	}
	defer func() { info.Problems = slices.Clone(d.problems) }()
	d.base, d.readSnapshot = 0, false
	for ; len(d.snapshots) > 0; d.snapshots = d.snapshots[:len(d.snapshots)-1] {
		s := d.snapshots[len(d.snapshots)-1]
		name := snapshotName(s.generation)
		if _, err := d.pass(s, nil); err != nil {
			d.problems = append(d.problems, d.setAside(name, err))
			continue
		}
		t, err := d.pass(s, deliver)
		if err != nil {
			return Info{}, d.wrap(name, err)
		}
		d.base, d.readSnapshot = s.covered, true
		return Info{Generation: s.generation, Written: time.Unix(0, s.written), Records: t.records}, nil
	}
	d.readSnapshot = true
	return Info{}, nil
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

// JournalInfo says what [Dir.ReadJournal] found.
type JournalInfo struct {
	// Records is how many were delivered, without those that the snapshot has.
	Records uint64

	// Cut is how many bytes at the ends of files were no whole record, as a
	// crash leaves them: records that nobody was told are on disk.
	Cut int64

	// Damaged is how many bytes cannot be used because the disk did not keep
	// what was written, and Missing how many records are known by their
	// numbers to be in no file; those around them are delivered. Both are zero
	// unless disks fail or files are changed or removed. Damaged files are kept,
	// with ".bad" after their names.
	Damaged int64
	Missing uint64

	// Problems says all this as sentences, for a log.
	Problems []error
}

// findJournals looks through the files of these numbers, in ascending order. A
// file that is there and cannot be read is an error: nothing else has its records,
// and it may be read the next time.
func (d *Dir) findJournals(numbers []uint64) error {
	info := &d.scanned
	for _, n := range numbers {
		name := journalName(n)
		s, err := d.scan(name, nil)
		if err != nil {
			return fmt.Errorf("%s: %w; to start without it, move it away", name, err)
		}
		d.found = append(d.found, journalFile{number: n, last: s.last, damaged: s.damaged > 0})
		info.Damaged += s.damaged
		info.Cut += s.torn
		if s.damaged > 0 {
			info.Problems = append(info.Problems, d.wrap(name, damage("%d bytes are not what was written; the whole records around them are used, and the file is kept as %s when it is no longer needed", s.damaged, name+badSuffix)))
		}
		if s.torn > 0 {
			info.Problems = append(info.Problems, d.wrap(name, fmt.Errorf("its last %d bytes are no whole record: torn when the process or the power ended; nothing in them was acknowledged unless the disk has changed it", s.torn)))
		}
	}
	return nil
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

// ReadJournal hands the records to deliver that were in the journal when the
// directory was opened and that the snapshot which [Dir.ReadSnapshot] read does
// not have, in the order in which they were appended. What deliver gets is valid
// until it returns. The error is that of deliver, or of a disk that fails now;
// begin again then, with the snapshot.
//
// Memory is that of a record.
func (d *Dir) ReadJournal(deliver func(record []byte) error) (JournalInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	info := d.scanned
	info.Problems = slices.Clone(info.Problems)
	if d.closed {
		return info, ErrClosed
	}
	if d.hadSnapshot && !d.readSnapshot {
		return info, ErrUnread
	}
	d.readJournal = false
	next := d.base + 1
	for _, j := range d.found {
		name := journalName(j.number)
		_, err := d.scan(name, func(number uint64, record []byte) error {
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
			return info, d.wrap(name, err)
		}
	}
	d.readJournal = true
	return info, nil
}

// missing is the error of records that are in no file.
func missing(first, last uint64) error {
	if first == last {
		return damage("record %d is lost", first)
	}
	return damage("records %d to %d are lost: %d", first, last, last-first+1)
}
