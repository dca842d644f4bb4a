package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// A snapshotReader reads a snapshot block by block. Memory is that of a block,
// and never more than the file is long.
type snapshotReader struct {
	r      *bufio.Reader
	left   int64 // bytes of the file that were not read
	header snapshotHeader
	block  []byte
	totals totals
}

// newSnapshotReader reads the header of f.
func newSnapshotReader(f file) (*snapshotReader, error) {
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	r := &snapshotReader{r: bufio.NewReaderSize(f, int(min(size, blockSize))), left: size}
	b, err := r.take(int(min(size, snapshotHeaderLen)))
	if err != nil {
		return nil, err
	}
	r.header, err = parseSnapshotHeader(b)
	return r, err
}

// take reads n bytes, which are good until the next call.
func (r *snapshotReader) take(n int) ([]byte, error) {
	if int64(n) > r.left {
		return nil, damage("it ends within its blocks")
	}
	if n > cap(r.block) {
		r.block = make([]byte, n)
	}
	b := r.block[:n]
	read, err := io.ReadFull(r.r, b)
	r.left -= int64(read)
	if errors.Is(err, io.ErrUnexpectedEOF) || err == io.EOF && n > 0 {
		err = damage("it is shorter than it was")
	}
	return b, err
}

// next returns the payload of the next block and its number of records, and
// io.EOF after the footer.
func (r *snapshotReader) next() (payload []byte, records int, err error) {
	head, err := r.r.Peek(4)
	if err != nil {
		return nil, 0, cmpErr(err, damage("it has no footer"))
	}
	size := binary.LittleEndian.Uint32(head)
	if size == 0 {
		return nil, 0, r.footer()
	}
	if size > maxPayload {
		return nil, 0, damage("block %d has an impossible length", r.totals.blocks)
	}
	b, err := r.take(blockHeaderLen + int(size) + 4)
	if err != nil {
		return nil, 0, err
	}
	end := len(b) - 4
	sum := binary.LittleEndian.Uint32(b[end:])
	if checksum(sumOf(r.header.generation, r.totals.blocks), b[:end]) != sum {
		return nil, 0, damage("the checksum of block %d is wrong", r.totals.blocks)
	}
	records = int(binary.LittleEndian.Uint32(b[4:]))
	r.totals.add(records, int(size), sum)
	return b[blockHeaderLen:end], records, nil
}

// footer returns io.EOF if the file ends with the footer that it should have.
func (r *snapshotReader) footer() error {
	b, err := r.take(footerLen)
	switch {
	case err != nil:
		return err
	case string(b) != string(r.totals.append(nil, r.header.generation)):
		return damage("its footer does not agree with its blocks")
	case r.left > 0:
		return damage("it goes on after its footer")
	}
	return io.EOF
}

// cmpErr returns the second error for the end of a file, else the first.
func cmpErr(err, atEnd error) error {
	if err == io.EOF {
		return atEnd
	}
	return err
}

// readSnapshot hands the records of f to deliver, which may be nil. Its error
// is the last.
func readSnapshot(f file, deliver func(Record) error) (snapshotHeader, totals, error) {
	r, err := newSnapshotReader(f)
	if err != nil {
		return snapshotHeader{}, totals{}, err
	}
	for {
		payload, records, err := r.next()
		if err == io.EOF {
			return r.header, r.totals, nil
		}
		if err == nil {
			err = eachRecord(payload, records, deliver)
		}
		if err != nil {
			return r.header, r.totals, err
		}
	}
}

// eachRecord takes a payload apart. A checksum that is right does not make it
// well formed: that is for the program to see to that wrote it.
func eachRecord(payload []byte, records int, deliver func(Record) error) error {
	for range records {
		if len(payload) == 0 {
			return damage("a block has fewer records than it says")
		}
		typ := payload[0]
		size, n := binary.Uvarint(payload[1:])
		if n <= 0 || size > uint64(len(payload)-1-n) || size > MaxRecord {
			return damage("a record has an impossible length")
		}
		data := payload[1+n:][:size:size]
		payload = payload[1+n+int(size):]
		if deliver == nil {
			continue
		}
		if err := deliver(Record{Type: typ, Data: data}); err != nil {
			return err
		}
	}
	if len(payload) > 0 {
		return damage("a block has more bytes than its records")
	}
	return nil
}
