package journal

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// AppendWait appends a record and returns when it is on disk.
func (j *Journal) AppendWait(record []byte) error {
	p, err := j.Append(record)
	if err != nil {
		return err
	}
	return p.Wait()
}

// NewerFile returns a file of that name as a version to come might write it.
func NewerFile(name string) []byte {
	magic := journalMagic
	if strings.HasPrefix(name, snapshotStem) {
		magic = snapshotMagic
	}
	b := appendPrefix(nil, magic)
	binary.LittleEndian.PutUint32(b[8:], version+1)
	binary.LittleEndian.PutUint32(b[12:], checksum(0, b[:12]))
	return append(b, bytes.Repeat([]byte("something else "), 10)...)
}
