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

	// The search for whole records behind one that is not ends after
	// checksums over this many bytes. It is a bound for files that were made
	// to be slow; no other comes near.
	maxSearch = 256 << 20
)

// A journalFile is a file of the journal.
type journalFile struct {
	number  uint64 // in its name
	last    uint64 // highest number that a record in it has or may have
	good    int64  // offset up to which records are whole, when it was opened
	damaged bool   // there are whole records behind one that is not
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
	r    *bufio.Reader
	size int64
	at   int64  // where the next record begins
	next uint64 // the number that it has
	head [recordHeaderLen]byte
	buf  []byte
}

// newJournalReader reads the header of f. A header that was never synced, after
// a crash while the file was made, is no damage: the file then has no records.
func newJournalReader(f file) (*journalReader, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	r := &journalReader{r: bufio.NewReaderSize(f, int(min(size, 64<<10))), size: size}
	var head [journalHeaderLen]byte
	_, err = io.ReadFull(r.r, head[:])
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), err == io.EOF, err == nil && head == [journalHeaderLen]byte{}:
		return r, nil
	case err != nil:
		return nil, err
	}
	r.next, err = parseJournalHeader(head[:])
	r.at = journalHeaderLen
	return r, err
}

// record returns the next record, which is good until the next call. It returns
// io.EOF where the file ends, and errTorn at bytes that are no record.
func (r *journalReader) record() ([]byte, error) {
	if r.at == r.size {
		return nil, io.EOF
	}
	left := r.size - r.at - recordHeaderLen
	if r.next == 0 || left < 0 {
		return nil, errTorn
	}
	head := r.head[:]
	if _, err := io.ReadFull(r.r, head); err != nil {
		return nil, err
	}
	size, ok := recordSize(head, left)
	if !ok || recordNumber(head) != r.next {
		return nil, errTorn
	}
	if size > cap(r.buf) {
		r.buf = make([]byte, size)
	}
	data := r.buf[:size]
	if _, err := io.ReadFull(r.r, data); err != nil {
		return nil, err
	}
	if !recordWhole(head, data) {
		return nil, errTorn
	}
	r.at += recordHeaderLen + int64(size)
	r.next++
	return data, nil
}

// scanJournal looks through f. The error is that of the disk, or that the header
// is damaged.
func scanJournal(f file) (j journalFile, err error) {
	r, err := newJournalReader(f)
	if err != nil {
		return j, err
	}
	for err == nil {
		_, err = r.record()
	}
	if err != io.EOF && err != errTorn {
		return j, err
	}
	j.good = r.at
	if r.next > 0 {
		j.last = r.next - 1
	}
	return j, nil
}

// searchRest looks behind the last whole record of f, whose number was last, for
// others. If there are, it returns the number of the last of them.
func searchRest(f file, j journalFile) (last uint64, found bool, err error) {
	size, err := f.Size()
	if err != nil {
		return 0, false, err
	}
	if size-j.good > maxTorn {
		return j.last + uint64(size-j.good)/recordHeaderLen, true, nil
	}
	if _, err := io.CopyN(io.Discard, f, j.good); err != nil {
		return 0, false, err
	}
	rest := make([]byte, size-j.good)
	if _, err := io.ReadFull(f, rest); err != nil {
		return 0, false, err
	}
	last, found = wholeRecords(rest, j.last+1)
	return last, found, nil
}

// wholeRecords looks for a whole record at any place in rest with a number from
// next on, and returns the number of the last one that follows it.
func wholeRecords(rest []byte, next uint64) (last uint64, found bool) {
	most := uint64(len(rest)) / recordHeaderLen // records that fit
	for work := 0; len(rest) > recordHeaderLen; rest = rest[1:] {
		number := recordNumber(rest)
		size, ok := recordSize(rest, int64(len(rest)-recordHeaderLen))
		if !ok || number < next || number-next > most {
			continue
		}
		if work += size; work > maxSearch {
			return next + most, true
		}
		if recordWhole(rest, rest[recordHeaderLen:][:size]) {
			last, found = number, true
			rest = rest[recordHeaderLen+size-1:]
		}
	}
	return last, found
}

// findJournals looks through the files of these numbers, in ascending order. A
// file that is there and cannot be read is an error: nothing else has its records,
// and it may be read the next time.
func (d *Dir) findJournals(numbers []uint64) error {
	for _, n := range numbers {
		name := journalName(n)
		j, err := d.findJournal(name)
		if err == nil {
			j.number = n
			d.found = append(d.found, j)
			continue
		}
		if !errors.Is(err, errDamaged) {
			return fmt.Errorf("%s: %w; to start without it, move it away", name, err)
		}
		if err := d.layer.rename(name, name+badSuffix); err != nil {
			return err
		}
		d.lost = append(d.lost, fmt.Errorf("%w; it was set aside as %s", d.wrap(name, err), name+badSuffix))
	}
	return nil
}

func (d *Dir) findJournal(name string) (j journalFile, err error) {
	f, err := d.layer.open(name)
	if err != nil {
		return j, err
	}
	size, err := f.Size()
	if err == nil {
		j, err = scanJournal(f)
	}
	_ = f.Close() // read only
	if err != nil {
		if errors.Is(err, errDamaged) {
			d.damaged += size
		}
		return j, err
	}
	rest := size - j.good
	if rest == 0 {
		return j, nil
	}
	if f, err = d.layer.open(name); err != nil {
		return j, err
	}
	defer f.Close() // read only
	last, found, err := searchRest(f, j)
	if err != nil {
		return j, err
	}
	if !found {
		d.cut += rest
		d.lost = append(d.lost, d.wrap(name, fmt.Errorf("its last %d bytes are no whole record: torn when the process or the power ended; nothing in them was acknowledged unless the disk has changed it", rest)))
		return j, nil
	}
	d.damaged += rest
	d.lost = append(d.lost, d.wrap(name, damage("record %d is not whole and others are behind it; %d bytes are not used, and the file is kept as %s when it is no longer needed", j.last+1, rest, name+badSuffix)))
	j.last, j.damaged = last, true
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
	// what was written, and Missing about how many records are known by their
	// numbers to be in no file. Both are zero unless disks fail or
	// files are changed or removed. Damaged files are kept, with ".bad" after
	// their names.
	Damaged int64
	Missing uint64

	// Problems says all this as sentences, for a log.
	Problems []error
}

// ReadJournal hands the records to deliver that were in the journal when the
// directory was opened and that the snapshot which [Dir.ReadSnapshot] read does
// not have, in the order in which they were appended. What deliver gets is valid
// until it returns. The error is that of deliver, or of a disk that fails now;
// begin anew then, with the snapshot.
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
	if j.good == 0 {
		return next, nil
	}
	f, err := d.layer.open(journalName(j.number))
	if err != nil {
		return next, err
	}
	defer f.Close() // read only
	r, err := newJournalReader(f)
	if err != nil {
		return next, err
	}
	for r.at < j.good {
		number := r.next
		data, err := r.record()
		if err != nil {
			return next, err
		}
		if number < next { // in the snapshot, or written again after an error
			if number <= d.base {
				info.Covered++
			}
			continue
		}
		if number > next {
			info.Missing += number - next
			info.Problems = append(info.Problems, d.wrap(journalName(j.number), damage("records %d to %d are in no file", next, number-1)))
		}
		next = number + 1
		info.Records++
		if err := deliver(data); err != nil {
			return next, err
		}
	}
	return next, nil
}
