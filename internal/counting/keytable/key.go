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
	MaxShortKey = 8*shortWords - 1

	shortWords = 2    // words of a record for its key
	longMark   = 0xff // in place of the length

	keyHead = 2 // bytes before a key beside the records: its length
)

// An identity is what a record has of its key, besides the hash in its head:
//
//	a short key:  | bytes 0 to 7 | bytes 8 to 14, the length in the top byte |
//	a longer one: | another hash | place among the keys, longMark in the top byte |
//
// The length tells short keys apart that differ in zeros at the end.
type identity struct {
	first, second uint64
	bytes         int // that the key takes beside the records
}

func (t *Table) identify(key string) (id identity) {
	if len(key) <= MaxShortKey {
		id.first, id.second = ShortKey(key)
		return id
	}
	return identity{maphash.String(t.seed2, key), longMark << 56, keyHead + len(key)}
}

// ShortKey returns a key of up to MaxShortKey bytes as two words: in little endian, its
// bytes, zeros, and its length.
func ShortKey(key string) (w0, w1 uint64) {
	n := len(key)
	b := unsafe.Slice(unsafe.StringData(key), n)
	switch {
	case n >= 8:
		w0 = binary.LittleEndian.Uint64(b)
		w1 = binary.LittleEndian.Uint64(b[n-8:]) >> (8 * uint(16-n)) // the first bytes are in w0
	case n >= 4:
		w0 = uint64(binary.LittleEndian.Uint32(b)) | uint64(binary.LittleEndian.Uint32(b[n-4:]))<<(8*uint(n-4))
	case n > 0:
		w0 = uint64(b[0]) | uint64(b[n/2])<<(8*uint(n/2)) | uint64(b[n-1])<<(8*uint(n-1))
	}
	return w0, w1 | uint64(n)<<56
}

// keyWords returns the words of r that are its key's.
func (r Record) keyWords() *[shortWords]uint64 {
	return (*[shortWords]uint64)(unsafe.Add(unsafe.Pointer(r.head), 8))
}

// isLong reports whether r is the record of key, which is not short, given that the
// hashes are the same.
func (r Record) isLong(key string) bool {
	w := r.keyWords()
	return w[1]>>56 == longMark && w[0] == maphash.String(r.g.t.seed2, key)
}

// inArena reports whether the key of r is beside the records.
func (r Record) inArena() bool { return r.keyWords()[1]>>56 == longMark }

// arena returns the memory of the keys: each has its length before it.
func (g group) arena() []byte {
	return unsafe.Slice((*byte)(unsafe.Add(g.memory, g.size-headerBytes-g.keys)), g.keys)
}

// keyAt returns where the key of r, which is beside the records, begins.
func (r Record) keyAt() uint16 { return uint16(r.keyWords()[1]) }

// keep stores the key of r beside the records, where it fits.
func (g group) keep(r Record, key string) {
	r.keyWords()[1] = longMark<<56 | uint64(g.tail)
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

// A keyBuffer holds a short key.
type keyBuffer [8 * shortWords]byte

// key returns the key of r, which is locked: in the group's memory, or in buf.
func (r Record) key(buf *keyBuffer) []byte {
	if r.inArena() {
		key := r.stored()
		return unsafe.Slice(unsafe.StringData(key), len(key))
	}
	w := r.keyWords()
	binary.LittleEndian.PutUint64(buf[:], w[0])
	binary.LittleEndian.PutUint64(buf[8:], w[1])
	return buf[:w[1]>>56]
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
