package ban

import (
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"
)

// An entry is what a Table stores of one key under one rule, in one cache line. It is
// changed under the lock of its shard. Readers without the lock read ident, the key and
// until: the key of an entry changes only while its version is odd, and versions only
// grow, so what is read between two equal idents with an even version belongs together.
type entry [entryWords]atomic.Uint64

const (
	entryWords = 8

	entryIdent  = 0 // version, 32 bits | rule, 32 bits
	entryPlace  = 1 // lower half of the hash | ended, 1 bit | place in the heap, 31 bits
	entryUntil  = 2 // the end of the newest ban, in nanoseconds since 1970
	entrySince  = 3 // its start
	entryPast   = 4 // bans so far, 25 bits | how long they are remembered in ms, 39 bits
	entryKey    = 5 // two words, see shortKey
	entryOrigin = 7
)

const (
	maxShortKey = 15
	longKey     = 0xff // instead of the length of a short key

	maxCount   = 1<<25 - 1
	memoryBits = 39 // MaxSpan in milliseconds
	endedBit   = 1 << 31
)

func (e *entry) ident() uint64   { return e[entryIdent].Load() }
func (e *entry) rule() uint32    { return uint32(e.ident()) }
func (e *entry) hashLow() uint32 { return uint32(e[entryPlace].Load() >> 32) }
func (e *entry) until() int64    { return int64(e[entryUntil].Load()) }
func (e *entry) since() int64    { return int64(e[entrySince].Load()) }
func (e *entry) origin() origin  { return origin(e[entryOrigin].Load()) }
func (e *entry) count() uint64   { return e[entryPast].Load() >> memoryBits }

// inUse reports whether an entry with that ident is one of a key.
func inUse(ident uint64) bool { return ident>>32&1 == 0 && ident != 0 }

// place returns in which heap the entry is, and where.
func (e *entry) place() (ended bool, at int) {
	p := uint32(e[entryPlace].Load())
	return p&endedBit != 0, int(p &^ endedBit)
}

func (e *entry) setPlace(ended bool, at int) {
	p := e[entryPlace].Load()>>32<<32 | uint64(at)
	if ended {
		p |= endedBit
	}
	e[entryPlace].Store(p)
}

func (e *entry) memory() time.Duration {
	return time.Duration(e[entryPast].Load()&(1<<memoryBits-1)) * time.Millisecond
}

func (e *entry) setPast(count uint64, memory time.Duration) {
	e[entryPast].Store(min(count, maxCount)<<memoryBits | uint64(memory/time.Millisecond))
}

// earlier returns the number of bans so far that are remembered at now.
func (e *entry) earlier(now int64) uint64 {
	if e.expires() < now {
		return 0
	}
	return e.count()
}

// expires returns the last time at which the ban is remembered.
func (e *entry) expires() int64 {
	until, memory := e.until(), int64(e.memory())
	if until > math.MaxInt64-memory {
		return math.MaxInt64
	}
	return until + memory
}

// begin gives a free entry to a rule, a hash and a key that is stored as the words a and
// b. Its ban has ended at now.
func (e *entry) begin(rule uint32, hash, a, b uint64, now int64) {
	e[entryPlace].Store(hash << 32)
	e[entryUntil].Store(uint64(now))
	e[entrySince].Store(uint64(now))
	e[entryPast].Store(0)
	e[entryKey].Store(a)
	e[entryKey+1].Store(b)
	e[entryOrigin].Store(0)
	version := (e.ident()>>32 | 1) + 1
	e[entryIdent].Store(version<<32 | uint64(rule))
}

// end makes e a free entry.
func (e *entry) end() { e[entryIdent].Store((e.ident()>>32 | 1) << 32) }

// shortKey returns a key of at most maxShortKey bytes as two words, with its length in the
// upper eight bits of the second. A longer key is stored in a block: the first word is then
// the place of the block and the length of the key, and the upper bits of the second are
// longKey.
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
