// Package ban stores the bans of rules: their records, how long they last, the list of
// them, and their text format.
package ban

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
)

// A Table stores bans: for a key under a rule, its newest ban and how many there were. A
// ban that holds is never removed to free memory. One that ended is kept for as long as it
// is remembered; if the table is full, the one that expires first is dropped. If all bans
// hold, no rule begins another, but a reserve is left for bans that are added by hand.
//
// Whether a key is banned is read without a lock: from one cache line of an index if it is
// not, and from one more if it is. Changes lock one of the shards and are visible at once,
// each as a whole. Nothing runs in the background: each operation moves a few entries
// whose bans have ended, and removes a few that have expired.
//
// A ban takes 64 bytes, 24 to 48 bytes in the index, and if its key is longer than 15
// bytes a power of two from 32 up for the key; a ban added by hand takes 32 bytes or more
// for its reason and source. Memory is taken from a budget and reused, but not returned.
type Table struct {
	shards  []shard
	shift   uint // 32 - log2(shards)
	keep    bool // expire nothing
	entries slab
	texts   texts

	_ [64]byte // what follows is written

	begun, refused, dropped atomic.Uint64
}

// A Config configures a Table. Its zero value is the default.
type Config struct {
	// Budget pays for the memory; nil means an unlimited one.
	Budget *keytable.Budget

	// Most is how many bans there can be, remembered ones included; 0 means DefaultMost.
	Most int

	// Reserve is how many of them only bans added by hand may take; 0 means a sixteenth,
	// less than 0 none.
	Reserve int

	// Keep makes the table expire nothing, and reserve nothing: for times that go back
	// from key to key.
	Keep bool
}

const (
	// DefaultMost is the default of Config.Most.
	DefaultMost = 1 << 20

	// MaxMost is the maximum of Config.Most.
	MaxMost = 1 << 28

	// MaxKey is the longest key in bytes.
	MaxKey = keytable.MaxKey

	maxShards = 64

	// bansPerShard is for how many bans a table has one more shard.
	bansPerShard = 256

	// The memory of the reserve is reserveBytes for each ban and reserveBase once, but at
	// most 1/reservePart of the budget.
	reserveBytes = 256
	reserveBase  = 64 << 10
	reservePart  = 32
)

// NewTable returns an empty table. Numbers out of range are replaced by the nearest in
// range.
func NewTable(c Config) *Table {
	most := min(max(c.Most, 0), MaxMost)
	if most == 0 {
		most = DefaultMost
	}
	reserve := min(max(c.Reserve, 0), most)
	switch {
	case c.Keep:
		reserve = 0
	case c.Reserve == 0:
		reserve = most / 16
	}
	if c.Budget == nil {
		c.Budget = keytable.NewBudget(math.MaxInt64 / 2)
	}
	shards := min(1<<bits.Len(uint(most/bansPerShard)), maxShards)
	t := &Table{keep: c.Keep, shards: make([]shard, shards), shift: uint(32 - bits.Len(uint(shards-1)))}
	c.Budget.Take(int64(shards)*int64(unsafe.Sizeof(shard{})), 0)
	for i := range t.shards {
		t.shards[i].init(t)
	}
	aside := int64(0)
	if reserve > 0 {
		aside = min(reserveBase+int64(reserve)*reserveBytes, c.Budget.Limit()/reservePart)
	}
	if !c.Budget.Take(aside, 0) {
		aside = 0
	}
	chunk := uint8(chunkBits)
	if most < smallTable {
		chunk = smallChunkBits
	}
	reserved := keytable.NewBudget(aside)
	t.entries.init(entryWords, chunk, pool{budget: c.Budget, most: uint32(most - reserve)}, pool{budget: reserved, most: uint32(reserve)})
	t.texts.init(chunk, c.Budget, reserved)
	return t
}

// Reserved returns the bytes of the budget that are kept free for bans added by hand.
func (t *Table) Reserved() int64 {
	b := t.entries.reserve.budget
	return b.Limit() - b.Used()
}

// Len returns the number of bans that hold or are remembered.
func (t *Table) Len() int { return t.entries.used() }

// Until returns when the ban of key under rule ends that holds at now. hash is the key's,
// the same for every rule. It takes no lock.
func (t *Table) Until(rule uint32, hash uint64, key []byte, now int64) (until int64, ok bool) {
	ix := t.shard(uint32(hash)).index.Load()
	if ix == nil {
		return 0, false
	}
	head := ix.lines[ix.home(uint32(hash), rule)][0].Load()
	if head>>56 == 0 && matches(head, tagOf(hash, rule)) == 0 {
		return 0, false
	}
	_, until, _ = t.search(ix, rule, hash, key)
	return until, now < until
}

// shard returns the shard of all keys with that lower half of their hash.
func (t *Table) shard(hashLow uint32) *shard { return &t.shards[hashLow>>(t.shift&63)] }

// search returns the entry of a key, and when its newest ban ends. Others may write
// meanwhile: if the key has one entry from before the search until after it, the search
// finds it.
func (t *Table) search(ix *index, rule uint32, hash uint64, key []byte) (number uint32, until int64, ok bool) {
	tag := tagOf(hash, rule)
	i := ix.home(uint32(hash), rule)
	for range ix.lines {
		l := &ix.lines[i]
		head := l[0].Load()
		for match := matches(head, tag); match != 0; match &= match - 1 {
			w := l[slot(match)].Load()
			if w&tagMask != tag || uint32(w) == 0 {
				continue
			}
			if until, ok := t.until(uint32(w)-1, rule, key); ok {
				return uint32(w) - 1, until, true
			}
		}
		if head>>56 == 0 {
			break
		}
		i = (i + 1) & ix.mask
	}
	return 0, math.MinInt64, false
}

// until returns when the newest ban of an entry ends. ok is false if the entry is not, or
// no longer, that of the key.
func (t *Table) until(number, rule uint32, key []byte) (until int64, ok bool) {
	e := t.entry(number)
	ident := e.ident()
	if uint32(ident) != rule || !inUse(ident) {
		return 0, false
	}
	a, b := e[entryKey].Load(), e[entryKey+1].Load()
	if len(key) <= maxShortKey {
		if wantA, wantB := shortKey(key); a != wantA || b != wantB {
			return 0, false
		}
	} else {
		if b>>56 != longKey || a>>placeBits != uint64(len(key)) || e.ident() != ident {
			return 0, false // a and b may not belong together before that
		}
		if !t.texts.equal(a&(1<<placeBits-1), key) {
			return 0, false
		}
	}
	until = e.until()
	return until, e.ident() == ident
}

func (t *Table) entry(number uint32) *entry { return (*entry)(t.entries.at(number)) }

// storeKey returns the two words of an entry that stand for key. ok is false if there is
// no memory for it.
func (t *Table) storeKey(key []byte, manual bool) (a, b uint64, ok bool) {
	if len(key) <= maxShortKey {
		a, b = shortKey(key)
		return a, b, true
	}
	if len(key) > MaxKey {
		return 0, 0, false
	}
	place, ok := t.texts.add(key, manual)
	return uint64(len(key))<<placeBits | place, longKey << 56, ok
}

// appendKey appends the key that two words of an entry stand for.
func (t *Table) appendKey(dst []byte, a, b uint64) []byte {
	if b>>56 == longKey {
		return t.texts.append(dst, a&(1<<placeBits-1), int(a>>placeBits))
	}
	dst = binary.LittleEndian.AppendUint64(dst, a)
	dst = binary.LittleEndian.AppendUint64(dst, b)
	return dst[:len(dst)-16+int(b>>56)]
}

func (t *Table) releaseText(o origin) {
	if place, reason, source := o.text(); reason+source > 0 {
		t.texts.release(place)
	}
}
