package journal

import (
	"errors"
	"io"
	"time"
)

const (
	journalHeaderLen = prefixLen + 2*8 + 4

	// No more bytes can wait for the disk, so a longer tail is not torn but damaged.
	maxTorn = maxWaiting + journalHeaderLen

	// maxSearch bounds the bytes whose checksums the search for whole records computes, for
	// files that were crafted to be slow.
	maxSearch = 256 << 20
)

func appendJournalHeader(dst []byte, first uint64) []byte {
	return appendHeader(dst, journalMagic, journalVersion, first, uint64(time.Now().UnixNano()))
}

// A journalReader reads the records of a file in their order.
type journalReader struct {
	recordReader       // next is 0 if the header is damaged
	never        bool  // the header was never synced
	skipped      int64 // bytes that resync has passed over
	work         int   // bytes that resync has compared with checksums
}

// newJournalReader reads the header of f. A header that was never synced, because of a
// crash, is no damage: the file has no records. If the header is damaged, call resync to
// find the first record and its number.
func newJournalReader(f file) (*journalReader, error) {
	in, err := newFileReader(f, recordHeaderLen+MaxRecord)
	if err != nil {
		return nil, err
	}
	r := &journalReader{recordReader: recordReader{fileReader: in}}
	head, err := r.peek(journalHeaderLen)
	if err != nil {
		return nil, err
	}
	if len(head) < journalHeaderLen || [journalHeaderLen]byte(head) == [journalHeaderLen]byte{} {
		r.never = true
		return r, nil
	}
	var begun uint64
	err = parseHeader(head, journalMagic, journalVersion, &r.next, &begun)
	if err == nil && (r.next == 0 || r.next > maxNumber) {
		r.next, err = 0, damage("the number of its first record is impossible")
	}
	r.take(journalHeaderLen)
	return r, err
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
		if r.whole(head[:recordHeaderLen+size]) {
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
// record are passed over. The error is that of deliver or of the disk, or ErrVersion.
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
