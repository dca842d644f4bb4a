package journal

import (
	"bytes"
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

// OtherFile returns a file of that name, of a format so much newer than ours.
func OtherFile(name string, newer int) []byte {
	b := appendPrefix(nil, journalMagic, uint32(journalVersion+newer))
	if strings.HasPrefix(name, snapshotStem) {
		b = appendPrefix(nil, snapshotMagic, uint32(snapshotVersion+newer))
	}
	return append(b, bytes.Repeat([]byte("something else "), 10)...)
}
