package ratelimit

import (
	"encoding/binary"
	"sync/atomic"
	"time"
)

// A banEntry is what a banTable keeps of one key under one rule, in a cache
// line. Who changes it holds the lock of its shard. Readers without the lock
// look at ident, the key and until: an entry keeps its key from the moment its
// version is even until it is odd again, and versions only grow, so what lies
// between two equal and even idents belongs together.
type banEntry [entryWords]atomic.Uint64

const (
	entryWords = 8

	entryIdent = 0 // version, 32 bits | rule, 32 bits
	entryPlace = 1 // lower half of the hash | place in the heap
	entryUntil = 2 // the end of the newest ban, in nanoseconds since 1970
	entrySince = 3 // its start
	entryPast  = 4 // bans so far, 25 bits | how long they are remembered in ms, 39 bits
	entryKey   = 5 // two words, see shortKey
	entryCause = 7 // why and by whom, see banCause
)

const (
	maxShortKey = 15
	longKey     = 0xff // in place of a short key's length

	maxCount   = 1<<25 - 1
	memoryBits = 39 // ten years in milliseconds take 39
)

func (e *banEntry) rule() uint32    { return uint32(e[entryIdent].Load()) }
func (e *banEntry) hashLow() uint32 { return uint32(e[entryPlace].Load() >> 32) }
func (e *banEntry) until() int64    { return int64(e[entryUntil].Load()) }
func (e *banEntry) since() int64    { return int64(e[entrySince].Load()) }
func (e *banEntry) heapAt() int     { return int(uint32(e[entryPlace].Load())) }
func (e *banEntry) cause() banCause { return banCause(e[entryCause].Load()) }

func (e *banEntry) setHeapAt(i int) {
	e[entryPlace].Store(e[entryPlace].Load()>>32<<32 | uint64(i))
}

func (e *banEntry) count() uint64 { return e[entryPast].Load() >> memoryBits }

func (e *banEntry) memory() time.Duration {
	return time.Duration(e[entryPast].Load()&(1<<memoryBits-1)) * time.Millisecond
}

func (e *banEntry) setPast(count uint64, memory time.Duration) {
	e[entryPast].Store(min(count, maxCount)<<memoryBits | uint64(memory/time.Millisecond))
}

// earlier returns how many bans there were so far, as far as they are
// remembered at now.
func (e *banEntry) earlier(now int64) uint64 {
	if e.forgotten(now) {
		return 0
	}
	return e.count()
}

// forgotten reports whether the ban is over, and no longer remembered.
func (e *banEntry) forgotten(now int64) bool {
	until := e.until()
	return until < now && uint64(now)-uint64(until) > uint64(e.memory())
}

// begin gives a free entry to a rule, a hash and a key that is kept as the
// words a and b say. The ban that it holds is over since now.
func (e *banEntry) begin(rule uint32, hash, a, b uint64, now int64) {
	e[entryPlace].Store(hash << 32)
	e[entryUntil].Store(uint64(now))
	e[entrySince].Store(uint64(now))
	e[entryPast].Store(0)
	e[entryKey].Store(a)
	e[entryKey+1].Store(b)
	e[entryCause].Store(0)
	version := (e[entryIdent].Load()>>32 | 1) + 1
	e[entryIdent].Store(version<<32 | uint64(rule))
}

// end makes e a free entry: no reader takes it for its key's any more.
func (e *banEntry) end() {
	e[entryIdent].Store((e[entryIdent].Load()>>32 | 1) << 32)
}

// shortKey returns a key of at most maxShortKey bytes as two words, its length
// in the upper eight bits of the second. A longer key lies in a blob; the first
// word is then the blob's place and the key's length, and the second longKey in
// its upper bits.
func shortKey(key []byte) (a, b uint64) {
	n := uint(len(key))
	if n >= 8 {
		a = binary.LittleEndian.Uint64(key)
		b = binary.LittleEndian.Uint64(key[n-8:]) >> (8 * (16 - n) & 127)
	} else {
		for i, c := range key {
			a |= uint64(c) << (8 * i)
		}
	}
	return a, b | uint64(n)<<56
}

// sameKey compares the words of a blob with a key as long as the blob's.
func sameKey(words []atomic.Uint64, key []byte) bool {
	for ; len(key) >= 8; key, words = key[8:], words[1:] {
		if words[0].Load() != binary.LittleEndian.Uint64(key) {
			return false
		}
	}
	var tail [8]byte
	return copy(tail[:], key) == 0 || words[0].Load() == binary.LittleEndian.Uint64(tail[:])
}
