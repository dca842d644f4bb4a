package journal

import "io"

// readSnapshot passes the records of f to deliver, which may be nil, and returns how many
// there are. It needs the memory of the longest record, and no more than the length of the
// file.
func readSnapshot(f file, deliver func(Record) error) (h snapshotHeader, records uint64, err error) {
	in, err := newFileReader(f, recordHeaderLen+MaxRecord)
	if err != nil {
		return h, 0, err
	}
	head, err := in.peek(snapshotHeaderLen)
	if err != nil {
		return h, 0, err
	}
	if h, err = parseSnapshotHeader(head); err != nil {
		return h, 0, err
	}
	in.take(snapshotHeaderLen)
	r := recordReader{fileReader: in, seed: h.seed(), next: 1}
	for {
		data, err := r.record()
		switch {
		case err == io.EOF:
			return h, 0, damage("it has no end")
		case err == errTorn:
			end, err := r.peek(recordHeaderLen + 1)
			if err == nil && string(end) != string(appendRecord(nil, r.seed, r.next)) {
				err = damage("record %d is not whole", r.next)
			}
			return h, r.next - 1, err
		case err == nil && deliver != nil:
			err = deliver(Record{Type: data[0], Data: data[1:]})
		}
		if err != nil {
			return h, 0, err
		}
	}
}
