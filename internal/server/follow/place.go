package follow

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"time"
)

// maxHead is how many of the first bytes of a file identify it. They are those of several
// lines, with their times.
const maxHead = 1024

// A place is how far a file has been read, and what identifies the file, in saved state.
type place struct {
	Path     string    `json:"path"` // without symbolic links and what rotation adds
	Dev      uint64    `json:"dev"`
	Ino      uint64    `json:"ino"`
	Offset   int64     `json:"offset"` // of the first byte that was not passed on
	HeadLen  int       `json:"head_len"`
	HeadHash string    `json:"head_hash"` // of the first HeadLen bytes
	Modified time.Time `json:"modified"`
	linePlace
}

// A likeness is how surely a file is the file of a place.
type likeness int

const (
	other    likeness = iota
	unpacked          // it has the same first bytes when it is decompressed
	copied            // it has the same first bytes
	same              // and it is the same inode
)

// like returns how a file is that of p. head has its first bytes, maxHead of them if there
// are so many.
func (p *place) like(info fs.FileInfo, head []byte, compressed bool) likeness {
	dev, ino := fileID(info)
	inode := dev == p.Dev && ino == p.Ino && ino != 0 && !compressed
	switch {
	case p.HeadLen > len(head), p.HeadLen > 0 && hashOf(head[:p.HeadLen]) != p.HeadHash:
		return other
	case inode:
		return same
	case p.HeadLen == 0: // nothing was read: nothing identifies it
		return other
	case compressed:
		return unpacked
	}
	return copied
}

func hashOf(head []byte) string {
	h := sha256.Sum256(head)
	return hex.EncodeToString(h[:])
}

// readHead returns the first bytes of r.
func readHead(r io.ReaderAt, n int) []byte {
	head := make([]byte, n)
	got, _ := r.ReadAt(head, 0) // a file that cannot be read has no head, and is not known
	return head[:got]
}

// startsWith reports whether r begins with head.
func startsWith(r io.ReaderAt, head []byte) bool {
	return bytes.Equal(readHead(r, len(head)), head)
}
