package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	journalHeaderLen = prefixLen + 2*8 + 4
	recordHeaderLen  = 4 + 8 + 4

	// More than this many bytes are never under way to the disk, so a longer
	// tail was not torn but damaged.
	maxTorn = maxWaiting + journalHeaderLen

	// The search for whole records behind damaged bytes ends after checksums
	// over this many bytes. It is a bound for files that were made to be slow;
	// no other comes near.
	maxSearch = 256 << 20
)

// A journalFile is a file of the journal.
type journalFile struct {
	number  uint64 // in its name
	last    uint64 // highest number that a record in it has or may have
	end     int64  // offset behind its last whole record, when it was opened
	damaged bool   // bytes before end, or more than a torn tail behind it, are no records
}

func appendJournalHeader(dst []byte, first uint64) []byte {
	start := len(dst)
	dst = appendPrefix(dst, journalMagic)
	dst = binary.LittleEndian.AppendUint64(dst, first)
	dst = binary.LittleEndian.AppendUint64(dst, uint64(time.Now().UnixNano()))
	return binary.LittleEndian.AppendUint32(dst, checksum(0, dst[start:]))
}

func parseJournalHeader(b []byte) (first uint64, err error) {
	if err := checkPrefix(b, journalMagic); err != nil {
		return 0, err
	}
	end := journalHeaderLen - 4
	first = binary.LittleEndian.Uint64(b[prefixLen:])
	if checksum(0, b[:end]) != binary.LittleEndian.Uint32(b[end:]) || first == 0 || first > maxNumber {
		return 0, damage("its header is wrong")
	}
	return first, nil
}

func appendRecord(dst []byte, number uint64, data []byte) []byte {
	start := len(dst)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(data)))
	dst = binary.LittleEndian.AppendUint64(dst, number)
	sum := checksum(checksum(0, dst[start:]), data)
	dst = binary.LittleEndian.AppendUint32(dst, sum)
	return append(dst, data...)
}

// recordSize returns the length of the data of a record that begins with head
// and is followed by left bytes, if it can be one.
func recordSize(head []byte, left int64) (int, bool) {
	size := int64(binary.LittleEndian.Uint32(head))
	return int(size), 0 < size && size <= MaxRecord && size <= left
}

func recordNumber(head []byte) uint64 { return binary.LittleEndian.Uint64(head[4:]) }

func recordWhole(head, data []byte) bool {
	return checksum(checksum(0, head[:12]), data) == binary.LittleEndian.Uint32(head[12:])
}

// errTorn says that a record is not whole.
var errTorn = errors.New("a record is not whole")

// A journalReader reads the records of a file in their order.
type journalReader struct {
	r       *bufio.Reader // holds the largest record
	size    int64
	at      int64  // where the next record begins
	next    uint64 // the number that it has; 0 if the header is damaged
	taken   int    // bytes of r that the last record has
	never   bool   // the header was never synced
	skipped int64  // bytes that resync has passed over
	work    int    // bytes that resync has compared with checksums
}

// newJournalReader reads the header of f. A header that was never synced, after
// a crash while the file was made, is no damage: the file then has no records.
// The numbers of a file whose header is damaged are those of its records; call
// resync to come to the first.
func newJournalReader(f file) (*journalReader, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	r := &journalReader{r: bufio.NewReaderSize(f, int(min(size, recordHeaderLen+MaxRecord))), size: size}
	head, err := r.r.Peek(int(min(size, journalHeaderLen)))
	switch {
	case err != nil && err != io.EOF:
		return nil, err
	case len(head) < journalHeaderLen, [journalHeaderLen]byte(head) == [journalHeaderLen]byte{}:
		r.never = true
		return r, nil
	}
	r.at, r.taken = journalHeaderLen, journalHeaderLen
	r.next, err = parseJournalHeader(head)
	return r, err
}

// peek returns the bytes from r.at on: n of them, or what is left of the file. They
// are good until the next call.
func (r *journalReader) peek(n int64) ([]byte, error) {
	if _, err := r.r.Discard(r.taken); err != nil {
		return nil, err
	}
	r.taken = 0
	b, err := r.r.Peek(int(min(n, r.size-r.at)))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // the file was longer
	}
	return b, err
}

// record returns the next record, which is good until the next call. It returns
// io.EOF where the file ends, and errTorn at bytes that are no record, or one with
// another number.
func (r *journalReader) record() ([]byte, error) {
	head, err := r.peek(recordHeaderLen)
	if err != nil {
		return nil, err
	}
	if r.at >= r.size {
		return nil, io.EOF
	}
	if len(head) < recordHeaderLen || recordNumber(head) != r.next {
		return nil, errTorn
	}
	size, ok := recordSize(head, r.size-r.at-recordHeaderLen)
	if !ok {
		return nil, errTorn
	}
	b, err := r.peek(int64(recordHeaderLen + size))
	if err != nil {
		return nil, err
	}
	if !recordWhole(b, b[recordHeaderLen:]) {
		return nil, errTorn
	}
	r.take(len(b))
	r.next++
	return b[recordHeaderLen:], nil
}

func (r *journalReader) take(n int) {
	r.at += int64(n)
	r.taken = n
}

// resync passes over damaged bytes to the next record that is whole and has a number
// that can follow, and reports whether there is one. Behind it, record goes on.
func (r *journalReader) resync() (bool, error) {
	from := r.at
	for !r.never {
		b, err := r.peek(recordHeaderLen + MaxRecord)
		if err != nil {
			return false, err
		}
		i, found := r.search(b)
		r.take(i)
		if found {
			r.next = recordNumber(b[i:])
			r.skipped += r.at - from
			return true, nil
		}
		if i == 0 {
			break
		}
	}
	return false, nil
}

// search looks in b, which begins at r.at, for the first record that is whole, and
// returns where it begins. If there is none, it returns where to go on with more of
// the file; 0 if there is nothing more to look at.
func (r *journalReader) search(b []byte) (i int, found bool) {
	last := r.at+int64(len(b)) == r.size
	for ; i+recordHeaderLen < len(b); i++ {
		head := b[i:]
		size, ok := recordSize(head, r.size-r.at-int64(i)-recordHeaderLen)
		if !ok || !r.canFollow(recordNumber(head)) {
			continue
		}
		if recordHeaderLen+size > len(head) {
			return i, false // the rest of it has to be read
		}
		if r.work += size; r.work > maxSearch {
			return 0, false
		}
		if recordWhole(head, head[recordHeaderLen:][:size]) {
			return i, true
		}
	}
	if last {
		return 0, false
	}
	return i, false
}

// canFollow reports whether the next whole record can have a number: no more can be
// lost than a file of this size can hold.
func (r *journalReader) canFollow(number uint64) bool {
	if r.next == 0 {
		return 0 < number && number <= maxNumber
	}
	return number >= r.next && number-r.next <= uint64(r.size)/recordHeaderLen
}

// A damageReport is how many bytes of a file are no whole records.
type damageReport struct {
	damaged int64 // they were acknowledged, or may have been
	torn    int64 // at the end, as a crash leaves them
}

// scanJournal looks through f. The error is that of the disk.
func scanJournal(f file) (j journalFile, report damageReport, err error) {
	r, err := newJournalReader(f)
	headless := errors.Is(err, errDamaged)
	for found := true; found; {
		for err == nil {
			_, err = r.record()
		}
		if err != io.EOF && err != errTorn && !errors.Is(err, errDamaged) {
			return j, report, err
		}
		j.end = r.at
		if found, err = r.resync(); err != nil {
			return j, report, err
		}
	}
	j.last = max(r.next, 1) - 1
	report.damaged, report.torn = r.skipped, r.size-j.end
	if headless {
		report.damaged += journalHeaderLen
	}
	if report.torn > maxTorn || r.work > maxSearch || headless && r.next == 0 {
		j.last += uint64(report.torn) / recordHeaderLen
		report.damaged, report.torn = report.damaged+report.torn, 0
	}
	j.damaged = report.damaged > 0
	return j, report, nil
}

// findJournals looks through the files of these numbers, in ascending order. A
// file that is there and cannot be read is an error: nothing else has its records,
// and it may be read the next time.
func (d *Dir) findJournals(numbers []uint64) error {
	for _, n := range numbers {
		name := journalName(n)
		j, err := d.findJournal(name)
		if err != nil {
			return fmt.Errorf("%s: %w; to start without it, move it away", name, err)
		}
		j.number = n
		d.found = append(d.found, j)
	}
	return nil
}

func (d *Dir) findJournal(name string) (journalFile, error) {
	f, err := d.fs.open(name)
	if err != nil {
		return journalFile{}, err
	}
	defer f.Close() // read only
	j, report, err := scanJournal(f)
	if err != nil {
		return j, err
	}
	d.damaged += report.damaged
	d.cut += report.torn
	if report.damaged > 0 {
		d.lost = append(d.lost, d.wrap(name, damage("%d bytes are not what was written; the whole records around them are used, and the file is kept as %s when it is no longer needed", report.damaged, name+badSuffix)))
	}
	if report.torn > 0 {
		d.lost = append(d.lost, d.wrap(name, fmt.Errorf("its last %d bytes are no whole record: torn when the process or the power ended; nothing in them was acknowledged unless the disk has changed it", report.torn)))
	}
	return j, nil
}

// JournalInfo says what [Dir.ReadJournal] found.
type JournalInfo struct {
	// Records is how many were delivered; Covered how many were not, as the
	// snapshot that was read has them.
	Records, Covered uint64

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
	info := JournalInfo{Cut: d.cut, Damaged: d.damaged, Problems: append([]error(nil), d.lost...)}
	if d.closed {
		return info, ErrClosed
	}
	if d.hadSnapshot && !d.readSnapshot {
		return info, ErrUnread
	}
	d.readJournal = false
	next := d.base + 1
	for _, j := range d.found {
		var err error
		if next, err = d.readFile(j, next, &info, deliver); err != nil {
			return info, d.wrap(journalName(j.number), err)
		}
	}
	d.readJournal = true
	return info, nil
}

// readFile reads the whole records of a file from number next on, and returns
// the number after its last.
func (d *Dir) readFile(j journalFile, next uint64, info *JournalInfo, deliver func([]byte) error) (uint64, error) {
	f, err := d.fs.open(journalName(j.number))
	if err != nil {
		return next, err
	}
	defer f.Close() // read only
	r, err := newJournalReader(f)
	if err != nil && !errors.Is(err, errDamaged) {
		return next, err
	}
	for r.at < j.end {
		data, err := r.record()
		if err == errTorn {
			if found, err := r.resync(); err != nil || !found {
				return next, err
			}
			continue
		}
		if err != nil {
			return next, err
		}
		number := r.next - 1
		if number < next { // in the snapshot, or written again after an error
			if number <= d.base {
				info.Covered++
			}
			continue
		}
		if number > next {
			info.Missing += number - next
			info.Problems = append(info.Problems, d.wrap(journalName(j.number), missing(next, number-1)))
		}
		next = number + 1
		info.Records++
		if err := deliver(data); err != nil {
			return next, err
		}
	}
	return next, nil
}

// missing is the error of records that are in no file.
func missing(first, last uint64) error {
	if first == last {
		return damage("record %d is lost", first)
	}
	return damage("records %d to %d are lost: %d", first, last, last-first+1)
}
