package keytable

import (
	"encoding/binary"
	"unsafe"

	"github.com/lately-go/lately/internal/snapshot"
)

// Export calls entry for each key of t and flushes w when it is full and at the
// end. entry appends the key's entry to w.Buf, or nothing.
//
// The keys of a group are listed under its lock; each record is then locked for
// itself while entry runs. So a new key waits while a group is listed, any other
// access for one entry, and none while a chunk is written. A key that is held from
// beginning to end is exported once. Export reports whether more chunks are wanted.
func (t *Table) Export(w *snapshot.Writer, entry func(key []byte, r Record)) (more bool) {
	var keys []byte
	for group := range t.Groups() {
		keys = keys[:0]
		for key := range group {
			keys = snapshot.AppendBytes(keys, key)
		}
		for rest := keys; len(rest) > 0; {
			n, at := binary.Uvarint(rest)
			key := rest[at : at+int(n)]
			rest = rest[at+int(n):]
			text := unsafe.String(unsafe.SliceData(key), len(key)) // only read
			if r, state := t.Lock(t.Hash(text), text); state == Found {
				entry(key, r)
				r.Unlock()
			}
			if w.Full() && !w.Flush() {
				return false
			}
		}
	}
	return w.Flush()
}
