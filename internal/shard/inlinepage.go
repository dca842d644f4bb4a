package shard

import (
	"encoding/binary"
	"sync"
)

// The head of a record is its first word:
//
//	| hash, the lower 60 bits | spare, 2 bits | flag | live |
//
// The upper 4 bits of the hash are those of the page, so that the head and the
// page together name all 64. The head 0 is that of an empty place.
const (
	live = 1 << 0
	flag = 1 << 1

	headBits = 4
)

func tagOf(hash uint64) uint64 { return hash<<headBits | live }

const (
	// MaxBases is how many bases a page has.
	MaxBases = 8

	// MaxInlineKey is the longest key an Inline takes, in bytes.
	MaxInlineKey = 1024

	keyHead    = 4  // bytes before each key: its length, and room for compact
	keyLenBits = 11 // of these 32 bits
	keyLenMask = 1<<keyLenBits - 1

	maxRecords = 1 << (32 - keyLenBits) // of a page
	minRecords = 4
	minArena   = 64
)

// A Page is the part of an [Inline] under one mutex: an open-addressing table
// with linear probing in the order of the hash, at most three quarters full. All
// but Lock and Unlock are called between these two.
type Page struct {
	// What a hit reads comes first, in one cache line.
	mu     sync.Mutex
	words  []uint64 // places of stride words, head first
	stride uint32
	cap    uint32 // places
	end    int    // the word after the last place
	base   [MaxBases]int64

	t     *Inline
	place []uint32 // for each place, where its key begins in the arena
	arena []byte   // keys: the length, then the bytes
	tail  int      // bytes of arena that are used
	dead  int      // of these, bytes of keys that are gone

	n, most  int // records, and how many there may be
	refusals int // until the next look for expired records, see room

	// Bytes taken from the budget for words and place, and for the arena.
	charge, arenaCharge int64

	_ [32]byte // makes it four cache lines
}

// Lock waits until the page is the caller's alone.
func (p *Page) Lock() { p.mu.Lock() }

// Unlock lets go of the page, and of the records that were found in it.
func (p *Page) Unlock() { p.mu.Unlock() }

// Base returns the page's bases; see [Owner].
func (p *Page) Base() *[MaxBases]int64 { return &p.base }

// A Record is a place in a page. It is good until the page is unlocked, or
// another record added, or one removed.
type Record struct {
	p  *Page
	at int // its head
}

// Words returns the owner's words of r.
func (r Record) Words() []uint64 {
	end := r.at + int(r.p.stride)
	return r.p.words[r.at+1 : end : end]
}

// Base returns the bases of the page that r is in.
func (r Record) Base() *[MaxBases]int64 { return &r.p.base }

// Flag returns the one bit that a record has besides its words. It is false in
// a new record.
func (r Record) Flag() bool { return r.p.words[r.at]&flag != 0 }

// SetFlag sets the flag.
func (r Record) SetFlag() { r.p.words[r.at] |= flag }

// Find returns the record of key. ok is false if it has none.
func (p *Page) Find(hash uint64, key string) (r Record, ok bool) {
	if len(p.words) == 0 {
		return Record{}, false
	}
	tag, words := tagOf(hash), p.words
	for i := p.home(tag); ; {
		head := words[i]
		if head^tag < 1<<headBits && head != 0 && (!p.t.config.Compare || string(p.key(i)) == key) {
			return Record{p, i}, true
		}
		if head == 0 {
			return Record{}, false
		}
		if i += int(p.stride); i >= p.end {
			i = 0
		}
	}
}

// Ready sees to it that the page has bases.
func (p *Page) Ready() {
	if len(p.words) == 0 {
		p.first()
	}
}

// Add adds a record of zero words for a key that has none, and returns it. ok is
// false if there is no room for one, or the key is longer than MaxInlineKey. It
// does not change the bases.
//
// REQUIRES: Ready.
func (p *Page) Add(hash uint64, key string) (r Record, ok bool) {
	t := p.t
	if len(key) > MaxInlineKey || !p.room(keyHead+len(key)) {
		t.refused.Add(1)
		return Record{}, false
	}
	t.n.Add(1)
	return p.insert(tagOf(hash), key), true
}

// Remove removes the record of key, and reports whether there was one.
func (p *Page) Remove(hash uint64, key string) bool {
	r, ok := p.Find(hash, key)
	if ok {
		p.drop(r.at)
	}
	return ok
}

// Rebase gives the page the bases that the owner wants now.
func (p *Page) Rebase() {
	p.dropExpired()
	from := p.base
	p.t.config.Owner.Base(&p.base)
	for i := 0; i < p.end; i += int(p.stride) {
		if p.words[i] != 0 {
			p.t.config.Owner.Rebase(Record{p, i}, &from)
		}
	}
}

// Each calls f for each record until it returns false, and reports whether it
// never did. The key is valid during the call.
func (p *Page) Each(f func(key []byte, r Record) bool) bool {
	for i := 0; i < p.end; i += int(p.stride) {
		if p.words[i] != 0 && !f(p.key(i), Record{p, i}) {
			return false
		}
	}
	return true
}

// home returns the word at which the search for a tag begins: the 32 bits of
// the hash after those of the page, scaled to the places.
func (p *Page) home(tag uint64) int {
	return int(tag<<(p.t.drop&63)>>32*uint64(p.cap)>>32) * int(p.stride)
}

func (p *Page) next(i int) int {
	if i += int(p.stride); i < p.end {
		return i
	}
	return 0
}

// key returns the key of the record at i, in place.
func (p *Page) key(i int) []byte {
	at := int(p.place[i/int(p.stride)])
	n := int(binary.LittleEndian.Uint32(p.arena[at:]) & keyLenMask)
	return p.arena[at+keyHead : at+keyHead+n]
}

// fits reports whether there is room for another record with a key that takes
// need bytes.
func (p *Page) fits(need int) bool { return p.n < p.most && p.tail+need <= len(p.arena) }

// insert adds a record of zeros for a tag and key that are not there, and fit.
func (p *Page) insert(tag uint64, key string) Record {
	i := p.home(tag)
	for p.words[i] != 0 {
		i = p.next(i)
	}
	clear(p.words[i+1 : i+int(p.stride)])
	p.words[i] = tag
	p.place[i/int(p.stride)] = uint32(p.tail)
	binary.LittleEndian.PutUint32(p.arena[p.tail:], uint32(len(key)))
	p.tail += keyHead + copy(p.arena[p.tail+keyHead:], key)
	p.n++
	return Record{p, i}
}

// drop removes the record at i, and moves those after it up so that each is
// still found from its home (D. Knuth, The Art of Computer Programming, volume
// 3, section 6.4, algorithm R).
func (p *Page) drop(i int) {
	p.forget(i)
	stride := int(p.stride)
	hole := i
	for j := p.next(i); p.words[j] != 0; j = p.next(j) {
		home := p.home(p.words[j])
		if hole < home && home <= j || j < hole && (hole < home || home <= j) {
			continue // its home is after the hole
		}
		copy(p.words[hole:hole+stride], p.words[j:j+stride])
		p.place[hole/stride] = p.place[j/stride]
		hole = j
	}
	p.words[hole] = 0
}

// forget tells all who must know that the record at i goes.
func (p *Page) forget(i int) {
	p.t.config.Owner.Drop(Record{p, i})
	p.t.n.Add(^uint64(0))
	p.n--
	p.dead += keyHead + len(p.key(i))
}

// dropAll removes the records for which gone returns true. It asks in the order
// in which each visits them, and puts every record that stays back to the first
// free place from its home: since it begins after a free place, all records
// before it are in place already.
func (p *Page) dropAll(gone func(r Record) bool) {
	stride := int(p.stride)
	p.each(func(j int) {
		if gone(Record{p, j}) {
			p.forget(j)
			p.words[j] = 0
			return
		}
		head := p.words[j]
		p.words[j] = 0
		i := p.home(head)
		for p.words[i] != 0 {
			i = p.next(i)
		}
		p.words[i] = head
		if i != j {
			copy(p.words[i+1:i+stride], p.words[j+1:j+stride])
			p.place[i/stride] = p.place[j/stride]
		}
	})
	p.compact()
}

// each calls f for each record, in the order of places, from a free one round
// to itself.
func (p *Page) each(f func(i int)) {
	free := 0
	for p.words[free] != 0 {
		free += int(p.stride)
	}
	for i := p.next(free); i != free; i = p.next(i) {
		if p.words[i] != 0 {
			f(i)
		}
	}
}

// compact closes the gaps that keys have left in the arena. It notes the number
// of each record with its key, and then goes through the arena: what no record
// knows of is a gap.
func (p *Page) compact() {
	if p.dead == 0 {
		return
	}
	stride := int(p.stride)
	for i, at := range p.place {
		if p.words[i*stride] != 0 {
			head := p.arena[at:]
			n := binary.LittleEndian.Uint32(head) & keyLenMask
			binary.LittleEndian.PutUint32(head, uint32(i)<<keyLenBits|n)
		}
	}
	to := 0
	for from := 0; from < p.tail; {
		head := binary.LittleEndian.Uint32(p.arena[from:])
		i, size := int(head>>keyLenBits), keyHead+int(head&keyLenMask)
		if i < len(p.place) && p.words[i*stride] != 0 && p.place[i] == uint32(from) {
			p.place[i] = uint32(to)
			to += copy(p.arena[to:], p.arena[from:from+size])
		}
		from += size
	}
	p.tail, p.dead = to, 0
}
