package match

import "encoding/binary"

// AppendShape appends to dst what k is: bytes that are the same for keys that are
// [Key.Equal], and for no others, in this process and in any other. They are for
// files of counts, whose reader has to know that its key is the writer's.
func (k Key) AppendShape(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(k.refs)))
	for _, r := range k.refs {
		dst = binary.AppendUvarint(dst, uint64(len(r.name)))
		dst = append(dst, r.name...)
	}
	off := byte(0)
	if k.fold.Off {
		off = 1
	}
	return append(dst, off, byte(k.fold.IPv4), byte(k.fold.IPv6)) // NewKey has left in it what matters
}
