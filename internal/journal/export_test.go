package journal

import (
	"bytes"
	"encoding/binary"
	"strings"
)

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
