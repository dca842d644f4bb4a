package ratelimit

import (
	"encoding/binary"
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
)

// A banTable holds the bans of a store: of a key under a rule, its newest ban
// and how many there were so far. A ban that holds is never removed for want of
// room. One that is over is kept for as long as it is remembered, unless its
// place is needed: then the one that ended first goes. When all hold, no rule
// begins another, but a reserve is left for bans that are added by hand.
//
// Whether a key is banned is read without a lock: from the cache line of an
// index if it is not, and that of an entry if it is. Changes lock one of the
// shards; they are seen at once, each as a whole. Nothing runs in the
// background: what is no longer remembered goes when bans begin, by a hand.
//
// A ban takes 64 bytes, 24 to 48 for the index, and if its key has more than 15
// bytes a power of two from 32 up for that; one that was added by hand another
// 32 or more for its reason and source. The memory is taken from a budget, and
// used again, not returned.
type banTable struct {
	shards []banShard
	shift  uint // 32 - log2(shards)

	keep  bool // forget nothing, as times may go back from key to key
	rooms [2]banRoom

	_ [64]byte // what follows is written

	begun, refused, dropped atomic.Uint64
}

// banTableConfig is how a banTable is built. Its zero value is the default.
type banTableConfig struct {
	budget  *keytable.Budget // nil means as much as it takes
	most    int              // bans, held or remembered; 0 means 1<<20
	reserve int              // of these, those for bans added by hand; 0 means a sixteenth, less than 0 none
	keep    bool             // forget nothing that is over, and set nothing aside
}

const (
	defaultBans  = 1 << 20
	maxBans      = 1 << 28
	maxBanShards = 64

	// bansPerShard is how many bans make it worth having another shard.
	bansPerShard = 256

	// maxBanKey is the longest key that can be banned.
	maxBanKey = keytable.MaxKey

	// handRoom is the number of the room that is for bans added by hand.
	handRoom = 1

	// handBytes is what is set aside for each of those, and handBase once,
	// as long as all is no more than a handPart of the budget.
	handBytes = 256
	handBase  = 64 << 10
	handPart  = 32

	// dropTries is how many bans that are over are removed at most to make
	// room for one. More than one is needed when others take the room, or
	// it does not fit the key.
	dropTries = 8
)

// newBanTable returns an empty table. Numbers out of range are taken as the
// nearest in range.
func newBanTable(c banTableConfig) *banTable {
	most := min(max(c.most, 0), maxBans)
	if most == 0 {
		most = defaultBans
	}
	reserve := min(max(c.reserve, 0), most)
	switch {
	case c.keep:
		reserve = 0
	case c.reserve == 0:
		reserve = most / 16
	}
	if c.budget == nil {
		c.budget = keytable.NewBudget(math.MaxInt64 / 2)
	}
	shards := min(1<<bits.Len(uint(most/bansPerShard)), maxBanShards)
	t := &banTable{keep: c.keep, shards: make([]banShard, shards), shift: uint(32 - bits.Len(uint(shards-1)))}
	c.budget.Take(int64(shards)*int64(unsafe.Sizeof(banShard{})), 0)
	for i := range t.shards {
		s := &t.shards[i]
		s.t = t
		s.heaps[0].noteOldest(t)
		s.heaps[handRoom].noteOldest(t)
	}
	aside := int64(0)
	if reserve > 0 {
		aside = min(handBase+int64(reserve)*handBytes, c.budget.Limit()/handPart)
	}
	if !c.budget.Take(aside, 0) {
		aside = 0
	}
	t.rooms[0].init(most-reserve, c.budget)
	t.rooms[handRoom].init(reserve, keytable.NewBudget(aside))
	return t
}

// reserved returns the bytes of the budget that are kept free for bans added by hand.
func (t *banTable) reserved() int64 {
	budget := t.rooms[handRoom].entries.budget
	return budget.Limit() - budget.Used()
}

// holds returns until when key is banned under rule at now. hash is the key's,
// the same for every rule.
func (t *banTable) holds(rule uint32, hash uint64, key []byte, now int64) (until int64, ok bool) {
	ix := t.shard(hash).index.Load()
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

// shard returns the shard of all keys with that hash.
func (t *banTable) shard(hash uint64) *banShard { return &t.shards[uint32(hash)>>(t.shift&63)] }

// search returns the entry of a key, and until when its newest ban holds. It is
// no error that another writes meanwhile: if the key has one entry from before
// the search until after it, the search finds it.
func (t *banTable) search(ix *banIndex, rule uint32, hash uint64, key []byte) (number uint32, until int64, ok bool) {
	tag := tagOf(hash, rule)
	i := ix.home(uint32(hash), rule)
	for range ix.lines {
		line := &ix.lines[i]
		head := line[0].Load()
		for match := matches(head, tag); match != 0; match &= match - 1 {
			w := line[slot(match)].Load()
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

// until returns when the newest ban of an entry ends. ok is false if the entry
// is not, or no longer, that of the key.
func (t *banTable) until(number, rule uint32, key []byte) (until int64, ok bool) {
	e := t.entry(number)
	ident := e[entryIdent].Load()
	if uint32(ident) != rule || ident>>32&1 != 0 {
		return 0, false
	}
	a, b := e[entryKey].Load(), e[entryKey+1].Load()
	if len(key) <= maxShortKey {
		if wantA, wantB := shortKey(key); a != wantA || b != wantB {
			return 0, false
		}
	} else {
		if b>>56 != longKey || a>>textPlaceBits != uint64(len(key)) || e[entryIdent].Load() != ident {
			return 0, false // a and b may not belong together before that
		}
		if !sameKey(t.blob(a&(1<<textPlaceBits-1)), key) {
			return 0, false
		}
	}
	until = e.until()
	return until, e[entryIdent].Load() == ident
}

// entry returns the entry of that number, whose upper bit is that of its room.
func (t *banTable) entry(number uint32) *banEntry {
	return (*banEntry)(t.rooms[number>>31].entries.at(number << 1 >> 1))
}

// release gives back the room that an entry takes.
func (t *banTable) release(number uint32) {
	e, room := t.entry(number), &t.rooms[number>>31]
	if a, b := e[entryKey].Load(), e[entryKey+1].Load(); b>>56 == longKey {
		t.dropBlob(a & (1<<textPlaceBits - 1))
	}
	t.dropText(e.cause())
	room.entries.release(number << 1 >> 1)
	room.give()
}

// keepKey returns the two words of an entry that stand for key. ok is false if
// there is no room for it.
func (t *banTable) keepKey(room int, key []byte) (a, b uint64, ok bool) {
	if len(key) <= maxShortKey {
		a, b = shortKey(key)
		return a, b, true
	}
	place, ok := t.keepBlob(room, key)
	return uint64(len(key))<<textPlaceBits | place, longKey << 56, ok
}

// keyOf appends the key of an entry to dst.
//
// REQUIRES: the lock of its shard.
func (t *banTable) keyOf(dst []byte, e *banEntry) []byte {
	return t.appendKey(dst, e[entryKey].Load(), e[entryKey+1].Load())
}

// appendKey appends the key for which the two words of an entry stand.
func (t *banTable) appendKey(dst []byte, a, b uint64) []byte {
	if b>>56 != longKey {
		dst = binary.LittleEndian.AppendUint64(dst, a)
		dst = binary.LittleEndian.AppendUint64(dst, b)
		return dst[:len(dst)-16+int(b>>56)]
	}
	return t.appendBlob(dst, a&(1<<textPlaceBits-1), int(a>>textPlaceBits))
}

// A place is that of a blob in its room, below the number of the room.

func (t *banTable) keepBlob(room int, b []byte) (place uint64, ok bool) {
	place, ok = t.rooms[room].keep(b)
	return uint64(room)<<(textPlaceBits-1) | place, ok
}

func (t *banTable) blob(place uint64) []atomic.Uint64 {
	return t.rooms[place>>(textPlaceBits-1)].blob(place & (1<<(textPlaceBits-1) - 1))
}

func (t *banTable) dropBlob(place uint64) {
	t.rooms[place>>(textPlaceBits-1)].drop(place & (1<<(textPlaceBits-1) - 1))
}

// appendBlob appends the n bytes that a blob holds.
func (t *banTable) appendBlob(dst []byte, place uint64, n int) []byte {
	end := len(dst) + n
	words := t.blob(place)
	for i := 0; len(dst) < end; i++ {
		dst = binary.LittleEndian.AppendUint64(dst, words[i].Load())
	}
	return dst[:end]
}

func (t *banTable) dropText(c banCause) {
	if place, reason, source := c.text(); reason+source > 0 {
		t.dropBlob(place)
	}
}
