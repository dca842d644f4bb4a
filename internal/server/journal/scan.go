package journal

import (
	"encoding/binary"
	"errors"
	"io"
	"time"
)

const (
	journalHeaderLen = prefixLen + 2*8 + 4
	recordHeaderLen  = 4 + 8 + 4

	// No more bytes can wait for the disk, so a longer tail is not torn but damaged.
	maxTorn = maxWaiting + journalHeaderLen

	// maxSearch bounds the bytes whose checksums the search for whole records computes, for
	// files that were crafted to be slow.
	maxSearch = 256 << 20
)

func appendJournalHeader(dst []byte, first uint64) []byte {
	return appendHeader(dst, journalMagic, first, uint64(time.Now().UnixNano()))
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
	*fileReader
	next    uint64 // the number of the next record; 0 if the header is damaged
	never   bool   // the header was never synced
	skipped int64  // bytes that resync has passed over
	work    int    // bytes that resync has compared with checksums
}

// newJournalReader reads the header of f. A header that was never synced, because of a
// crash, is no damage: the file has no records. If the header is damaged, call resync to
// find the first record and its number.
func newJournalReader(f file) (*journalReader, error) {
	in, err := newFileReader(f, recordHeaderLen+MaxRecord)
	if err != nil {
		return nil, err
	}
	r := &journalReader{fileReader: in}
	head, err := r.peek(journalHeaderLen)
	if err != nil {
		return nil, err
	}
	if len(head) < journalHeaderLen || [journalHeaderLen]byte(head) == [journalHeaderLen]byte{} {
		r.never = true
		return r, nil
	}
	var begun uint64
	err = parseHeader(head, journalMagic, &r.next, &begun)
	if err == nil && (r.next == 0 || r.next > maxNumber) {
		r.next, err = 0, damage("the number of its first record is impossible")
	}
	r.take(journalHeaderLen)
	return r, err
}

// record returns the next record, which is valid until the next call. It returns io.EOF at
// the end of the file, and errTorn at bytes that are not the next record.
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
	b, err := r.peek(recordHeaderLen + size)
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

// resync skips damaged bytes up to the next whole record whose number can follow, and
// reports whether there is one.
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

// search returns where the first whole record of b begins, which begins at r.at. Without
// one, it returns where to continue with more of the file, or 0 at its end.
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

// canFollow reports whether the next whole record can have that number: no more records can
// be lost than fit in a file of this size.
func (r *journalReader) canFollow(number uint64) bool {
	if r.next == 0 {
		return 0 < number && number <= maxNumber
	}
	return number >= r.next && number-r.next <= uint64(r.size)/recordHeaderLen
}

// A scan is what was found in a journal file.
type scan struct {
	last uint64 // highest number that a record has or may have

	// Bytes that are no whole records: damaged were acknowledged, or may have been;
	// torn are at the end, as a crash leaves them.
	damaged, torn int64
}

// scanJournal passes the whole records of f with their numbers to deliver. Bytes that are no
// record are passed over. The error is that of deliver or of the disk, or ErrNewer.
func scanJournal(f file, deliver func(number uint64, record []byte) error) (s scan, err error) {
	r, err := newJournalReader(f)
	headless := errors.Is(err, errDamaged)
	var end int64 // of the last whole record
	for found := true; found; {
		for err == nil {
			var data []byte
			if data, err = r.record(); err == nil {
				if err := deliver(r.next-1, data); err != nil {
					return s, err
				}
			}
		}
		if err != io.EOF && err != errTorn && !errors.Is(err, errDamaged) {
			return s, err
		}
		end = r.at
		if found, err = r.resync(); err != nil {
			return s, err
		}
	}
	s = scan{last: max(r.next, 1) - 1, damaged: r.skipped, torn: r.size - end}
	if headless {
		s.damaged += journalHeaderLen
	}
	if s.torn > maxTorn || r.work > maxSearch || headless && r.next == 0 {
		s.last += uint64(s.torn) / recordHeaderLen
		s.damaged, s.torn = s.damaged+s.torn, 0
	}
	return s, nil
}
