package keytable

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"unsafe"
)

const (
	// MaxKey is the longest key of a Table, in bytes.
	MaxKey = 1024

	// MaxShortKey is the longest key that a record holds.
	MaxShortKey = 8*keyWords - 1

	keyWords = 2    // words of a record for its key
	longMark = 0xff // in place of the length

	keyHead = 2 // bytes before a key beside the records: its length
)

// A keyField is what a record has of its key, besides the hash in its head:
//
//	a short key:  | its bytes, zeros (15)                | its length |
//	a longer one: | another hash (8) | place among the keys | longMark |
//
// The length tells short keys apart that differ in zeros at the end.
type keyField [8 * keyWords]byte

// field returns the keyField of r.
func (r Record) field() *keyField { return (*keyField)(unsafe.Add(unsafe.Pointer(r.head), 8)) }

// isShort reports whether f is that of key, which is short. Two loads of eight bytes, which
// may overlap, take half the instructions of a comparison of strings.
func (f *keyField) isShort(key string) bool {
	n := uint(len(key))
	if n < 8 {
		return uint(f[MaxShortKey]) == n && string(f[:n]) == key
	}
	b := unsafe.Slice(unsafe.StringData(key), n)
	return uint(f[MaxShortKey]) == n &&
		binary.LittleEndian.Uint64(f[:]) == binary.LittleEndian.Uint64(b) &&
		binary.LittleEndian.Uint64(f[n-8:]) == binary.LittleEndian.Uint64(b[n-8:])
}

// isLong reports whether r is the record of key, which is not short, given that the
// hashes are the same.
func (r Record) isLong(key string) bool {
	return r.inArena() && binary.LittleEndian.Uint64(r.field()[:]) == maphash.String(r.g.t.seed2, key)
}

// inArena reports whether the key of r is beside the records.
func (r Record) inArena() bool { return r.field()[MaxShortKey] == longMark }

// beside returns how many bytes a key takes beside the records.
func beside(key string) int {
	if len(key) <= MaxShortKey {
		return 0
	}
	return keyHead + len(key)
}

// setKey makes r, a record of g, that of a key that fits.
func (g group) setKey(r Record, key string) {
	f := r.field()
	*f = keyField{}
	if len(key) <= MaxShortKey {
		copy(f[:], key)
		f[MaxShortKey] = byte(len(key))
		return
	}
	binary.LittleEndian.PutUint64(f[:], maphash.String(g.t.seed2, key))
	f[MaxShortKey] = longMark
	g.keep(r, key)
}

// arena returns the memory of the keys: each has its length before it.
func (g group) arena() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(g.memory, g.size-headerBytes-g.keys)), g.keys)
}

// keyAt returns where the key of r, which is beside the records, begins.
func (r Record) keyAt() uint16 { return binary.LittleEndian.Uint16(r.field()[8:]) }

// keep stores the key of r beside the records, where it fits.
func (g group) keep(r Record, key string) {
	binary.LittleEndian.PutUint16(r.field()[8:], uint16(g.tail))
	b := g.arena()[g.tail:]
	binary.LittleEndian.PutUint16(b, uint16(len(key)))
	g.tail += keyHead + uint32(copy(b[keyHead:], key))
}

// keyIn returns the key that begins there in an arena, without a copy.
func keyIn(arena []byte, at uint16) string {
	n := binary.LittleEndian.Uint16(arena[at:])
	key := arena[at+keyHead:][:n]
	return unsafe.String(unsafe.SliceData(key), len(key))
}

// stored returns the key of r, which is beside the records, as it lies there.
func (r Record) stored() string { return keyIn(r.g.arena(), r.keyAt()) }

// key returns the key of r as it lies in the memory of the group, until r is unlocked.
func (r Record) key() []byte {
	if r.inArena() {
		key := r.stored()
		return unsafe.Slice(unsafe.StringData(key), len(key))
	}
	f := r.field()
	n := f[MaxShortKey]
	return f[:n:n]
}

// compact closes the gaps that keys have left.
//
// REQUIRES: all records locked.
func (g group) compact() {
	if g.dead == 0 {
		return
	}
	s := g.t.borrow()
	defer g.t.scratch.Put(s)
	s.keys = append(s.keys[:0], g.arena()[:g.tail]...)
	g.tail, g.dead = 0, 0
	for r := range g.all() {
		if r.inArena() {
			g.keep(r, keyIn(s.keys, r.keyAt()))
		}
	}
}

// LongKey returns what a table keeps of a key that is too long to be kept: its
// HMAC-SHA-256 of 32 bytes. Without the secret nobody can build a key that is taken
// for another, and unlike a maphash it is the same in another process.
//
// Its first byte is 0xff: a key of several fields begins with the length of the first, and
// a length that begins so is longer than the rest. Nothing takes it for such a key.
func LongKey(secret *[32]byte, key []byte) []byte {
	h := hmac.New(sha256.New, secret[:])
	h.Write(key)
	digest := h.Sum(nil)
	digest[0] = 0xff
	return digest
}

// Text returns key as a string without a copy: it must not be written to while that is in
// use.
func Text(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }
