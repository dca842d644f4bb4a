package journal

import (
	"bufio"
	"errors"
	"io"
)

const (
	// No more bytes can wait for the disk, so a longer tail is not torn but damaged.
	maxTorn = maxWaiting

	// maxSearch bounds the bytes whose checksums the search for whole records computes, for
	// files that were crafted to be slow.
	maxSearch = 256 << 20
)

// errTorn says that a record is not whole.
var errTorn = errors.New("a record is not whole")

// A reader reads the records of a part of a file in their order.
type reader struct {
	r       *bufio.Reader // holds the largest record
	at, end int64         // where the next record begins, and the part ends
	taken   int           // bytes of r that were taken
	next    uint64        // number of the next record; 0 if it is unknown
	last    int64         // end of the last whole record
	skipped int64         // bytes that resync has passed over
	work    int           // bytes that resync has compared with checksums
}

// newReader returns a reader of the bytes of f from at to end. It needs no more memory than
// they have.
func newReader(f io.ReaderAt, at, end int64, next uint64) *reader {
	size := min(end-at, headerLen+recordHeaderLen+1+MaxRecord)
	return &reader{r: bufio.NewReaderSize(io.NewSectionReader(f, at, end-at), int(size)), at: at, end: end, last: at, next: next}
}

// peek returns the next n bytes, or the rest of the part. They are valid until the next call.
func (r *reader) peek(n int) ([]byte, error) {
	if _, err := r.r.Discard(r.taken); err != nil {
		return nil, err
	}
	r.taken = 0
	b, err := r.r.Peek(int(min(int64(n), r.end-r.at)))
	if err == io.EOF {
		err = io.ErrUnexpectedEOF // the file was longer
	}
	return b, err
}

// take consumes n of the bytes that peek has returned.
func (r *reader) take(n int) {
	r.at += int64(n)
	r.taken = n
}

// header reads the header of a file, and the number of the first record from it. Bytes that are none
// are passed over like damaged records.
func (r *reader) header() (header, error) {
	b, err := r.peek(headerLen)
	if err != nil {
		return header{}, err
	}
	h, err := parseHeader(b)
	if err == nil {
		r.take(len(b))
		r.last, r.next = r.at, h.first
	}
	return h, err
}

// record returns the next record, which is valid until the next call. It returns io.EOF at
// the end, and errTorn at bytes that are not the next record.
func (r *reader) record() (Record, error) {
	head, err := r.peek(recordHeaderLen)
	if err != nil {
		return Record{}, err
	}
	if r.at >= r.end {
		return Record{}, io.EOF
	}
	if len(head) < recordHeaderLen || numberOf(head) != r.next || !mayBe(head, r.end-r.at) {
		return Record{}, errTorn
	}
	b, err := r.peek(sizeOf(head))
	if err != nil {
		return Record{}, err
	}
	if !isWhole(b) {
		return Record{}, errTorn
	}
	r.take(len(b))
	r.next++
	return Record{b[recordHeaderLen], b[recordHeaderLen+1:]}, nil
}

// resync skips damaged bytes up to the next whole record whose number can follow, and
// reports whether there is one.
func (r *reader) resync() (bool, error) {
	from := r.at
	for {
		b, err := r.peek(recordHeaderLen + 1 + MaxRecord)
		if err != nil {
			return false, err
		}
		i, found := r.search(b)
		r.take(i)
		if found {
			r.next = numberOf(b[i:])
			r.skipped += r.at - from
			return true, nil
		}
		if i == 0 {
			return false, nil
		}
	}
}

// search returns where the first whole record of b begins, which begins at r.at. Without
// one, it returns where to continue with more of the file, or 0 at its end.
func (r *reader) search(b []byte) (i int, found bool) {
	last := r.at+int64(len(b)) == r.end
	for ; i+recordHeaderLen < len(b); i++ {
		head := b[i:]
		if !mayBe(head, r.end-r.at-int64(i)) || !r.canFollow(numberOf(head)) {
			continue
		}
		size := sizeOf(head)
		if size > len(head) {
			return i, false // the rest of it has to be read
		}
		if r.work += size; r.work > maxSearch {
			return 0, false
		}
		if isWhole(head[:size]) {
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
func (r *reader) canFollow(number uint64) bool {
	if r.next == 0 {
		return 0 < number && number <= maxFirst
	}
	return number >= r.next && number-r.next <= uint64(r.end)/recordHeaderLen
}

// each passes the whole records to deliver, and passes over other bytes. The number of a record is
// r.next-1 meanwhile. The error is that of deliver or of the disk.
func (r *reader) each(deliver func(Record) error) error {
	for {
		record, err := r.record()
		switch err {
		case nil:
			r.last = r.at
			err = deliver(record)
		case io.EOF, errTorn:
			var found bool
			if found, err = r.resync(); err == nil && !found {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}
