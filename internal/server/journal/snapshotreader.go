package journal

import "encoding/binary"

// newSnapshotReader reads the header of f, and returns a reader of what follows, whose parts
// have at most that many bytes.
func newSnapshotReader(f file, most int) (r *fileReader, h snapshotHeader, err error) {
	if r, err = newFileReader(f, most); err != nil {
		return nil, h, err
	}
	b, err := r.peek(snapshotHeaderLen)
	if err != nil {
		return nil, h, err
	}
	h, err = parseSnapshotHeader(b)
	r.take(len(b))
	return r, h, err
}

// readSnapshot passes the records of f to deliver, which may be nil, and returns their number.
// It needs the memory of the largest block, and no more than the length of the file.
func readSnapshot(f file, deliver func(Record) error) (uint64, error) {
	r, h, err := newSnapshotReader(f, blockHeaderLen+maxPayload+4)
	var t totals
	for err == nil {
		var payload []byte
		var records int
		payload, records, err = readBlock(r, h.generation, &t)
		switch {
		case err != nil:
		case payload == nil:
			return t.records, nil
		default:
			err = eachRecord(payload, records, deliver)
		}
	}
	return 0, err
}

// readBlock returns the payload of the next block and its number of records, and adds it
// to t. If there is the footer of t instead, the payload is nil.
func readBlock(r *fileReader, generation uint64, t *totals) (payload []byte, records int, err error) {
	b, err := r.peek(4)
	if err != nil {
		return nil, 0, err
	}
	if len(b) < 4 {
		return nil, 0, damage("it has no footer")
	}
	size := int(binary.LittleEndian.Uint32(b))
	if size == 0 {
		if b, err = r.peek(footerLen + 1); err == nil && string(b) != string(t.append(nil, generation)) {
			err = damage("its end is not the footer that agrees with its blocks")
		}
		return nil, 0, err
	}
	if size > maxPayload {
		return nil, 0, damage("block %d has an impossible length", t.blocks)
	}
	end := blockHeaderLen + size
	if b, err = r.peek(end + 4); err != nil {
		return nil, 0, err
	}
	if len(b) < end+4 {
		return nil, 0, damage("it ends within its blocks")
	}
	sum := binary.LittleEndian.Uint32(b[end:])
	if checksum(sumOf(generation, t.blocks), b[:end]) != sum {
		return nil, 0, damage("the checksum of block %d is wrong", t.blocks)
	}
	r.take(len(b))
	records = int(binary.LittleEndian.Uint32(b[4:]))
	t.add(records, size, sum)
	return b[blockHeaderLen:end], records, nil
}

// eachRecord passes the records of a payload to deliver. A correct checksum does not mean
// that the payload is well formed.
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
