package keytable

import (
	"encoding/binary"
	"hash/maphash"
	"unsafe"
)

const (
	// MaxKey is the longest key an Table takes, in bytes.
	MaxKey = 1024

	// MaxShortKey is the longest key that two KeyWords hold.
	MaxShortKey = 8*shortWords - 1

	shortWords = 2
	longMark   = 0xff // in place of the length

	keyHead    = 4  // bytes before a key in the arena: its length, and room for compact
	keyLenBits = 11 // of these 32 bits
	keyLenMask = 1<<keyLenBits - 1
)

// An identity is what a record has of its key, besides the hash in its head:
//
//	a short key:  | bytes 0 to 7 | bytes 8 to 14, the length in the top byte |
//	a longer one: | another hash | place in the arena, longMark in the top byte |
//
// The length tells short keys apart that differ in zeros at the end.
type identity struct {
	words [shortWords]uint64
	long  bool
	bytes int // that the key takes in the arena
}

func (t *Table) identify(key string) (id identity) {
	switch {
	case t.config.KeyWords == 0:
		id.bytes = keyHead + len(key)
	case len(key) > MaxShortKey:
		id.words[0], id.words[1] = maphash.String(t.seed2, key), longMark<<56
		id.long, id.bytes = true, keyHead+len(key)
	default:
		id.words[0], id.words[1] = shortKey(key)
	}
	return id
}

// shortKey puts a key of up to MaxShortKey bytes into words.
func shortKey(key string) (w0, w1 uint64) {
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

// same reports whether r, at i, is the record of key, given that the hashes are
// the same.
func (p *page) same(r Record, i uint, key string, id *identity) bool {
	if p.t.config.KeyWords != 0 {
		w := r.keyWords()
		if w[0] != id.words[0] || w[1] != id.words[1] && !(id.long && w[1]>>56 == longMark) {
			return false
		}
		if !id.long {
			return true
		}
	}
	return !p.t.config.Compare || string(p.stored(p.keyAt(r, i))) == key
}

// keyAt returns where the key of r, at i, is in the arena. It has no meaning for
// a short key in the record; see inArena.
func (p *page) keyAt(r Record, i uint) uint32 {
	if p.t.config.KeyWords == 0 {
		return p.place[i]
	}
	return uint32(r.keyWords()[1])
}

// inArena reports whether the key of r is in the arena.
func (p *page) inArena(r Record) bool {
	return p.t.config.KeyWords == 0 || r.keyWords()[1]>>56 == longMark
}

func (p *page) setKeyAt(r Record, i uint, at uint32) {
	if p.t.config.KeyWords == 0 {
		p.place[i] = at
		return
	}
	w := r.keyWords()
	w[1] = w[1]>>32<<32 | uint64(at)
}

// stored returns the key at that place of the arena.
func (p *page) stored(at uint32) []byte {
	n := binary.LittleEndian.Uint32(p.arena[at:]) & keyLenMask
	at += keyHead
	return p.arena[at : at+n : at+n]
}

// A keyBuffer is room for a short key.
type keyBuffer [8 * shortWords]byte

// key returns the key of r, at i, which is locked: in the arena, or in buf.
func (p *page) key(r Record, i uint, buf *keyBuffer) []byte {
	if p.inArena(r) {
		return p.stored(p.keyAt(r, i))
	}
	w := r.keyWords()
	binary.LittleEndian.PutUint64(buf[:], w[0])
	binary.LittleEndian.PutUint64(buf[8:], w[1])
	return buf[:w[1]>>56]
}

// keep stores the key of r, at i: in the record, in the arena, or both.
func (p *page) keep(r Record, i uint, key string, id *identity) {
	if p.t.config.KeyWords != 0 {
		*r.keyWords() = id.words
	}
	p.recent += int32(id.bytes) - p.recent/recentKeys
	if id.bytes == 0 {
		return
	}
	p.setKeyAt(r, i, uint32(p.tail))
	binary.LittleEndian.PutUint32(p.arena[p.tail:], uint32(len(key)))
	copy(p.arena[p.tail+keyHead:], key)
	p.tail += id.bytes
}

// compact closes the gaps that keys have left in the arena. It notes the number
// of each record with its key, and then goes through the arena: what no record
// knows of is a gap.
//
// REQUIRES: all records locked.
func (p *page) compact() {
	if p.dead == 0 {
		return
	}
	v := p.view()
	for i := range v.n {
		if r := (Record{p, v.head(i)}); r.head.Load() != 0 && p.inArena(r) {
			head := p.arena[p.keyAt(r, i):]
			n := binary.LittleEndian.Uint32(head) & keyLenMask
			binary.LittleEndian.PutUint32(head, uint32(i)<<keyLenBits|n)
		}
	}
	to := 0
	for from := 0; from < p.tail; {
		head := binary.LittleEndian.Uint32(p.arena[from:])
		i, size := min(uint(head>>keyLenBits), v.n-1), keyHead+int(head&keyLenMask)
		if r := (Record{p, v.head(i)}); r.head.Load() != 0 && p.inArena(r) && p.keyAt(r, i) == uint32(from) {
			p.setKeyAt(r, i, uint32(to))
			to += copy(p.arena[to:], p.arena[from:from+size])
		}
		from += size
	}
	p.tail, p.dead = to, 0
}
