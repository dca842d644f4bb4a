// Package ban stores the bans of rules: how long they last, their table and the list of
// them.
package ban

import (
	"cmp"
	"math"
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/lately-go/lately/internal/keytable"
)

// A Table stores bans: for a key under a rule, its newest ban and how many there were. A
// ban that holds is never removed to free memory. One that ended is kept for as long as it
// is remembered; if the table is full, the one that expires first is dropped, and if the
// budget is used up, those of the same shard. If all bans hold, no rule begins another, but
// a reserve is left for bans that are added by hand.
//
// Whether a key is banned is read without a lock: from a cache line of an index if it is
// not, and from one more if it is. Changes lock one of the shards and are visible at once,
// each as a whole. Nothing runs in the background: each operation moves a few entries
// whose bans have ended, and removes a few that have expired; one of many copies its shard
// to give it more memory.
//
// A ban takes 90 to 110 bytes, and the bytes of its key if that is longer than 15 bytes; a
// ban added by hand takes those of its reason and source.
type Table struct {
	shards []shard
	shift  uint        // 32 - log2(shards)
	keep   bool        // expire nothing
	empty  *generation // the memory of a shard without entries

	_ [64]byte // what follows is written

	shared  pool // for all bans
	reserve pool // for bans added by hand that find no place in shared

	refused, dropped atomic.Uint64
}

// A pool is a part of the memory and of the number of bans of a Table.
type pool struct{ budget, places *keytable.Budget }

// A Config configures a Table. Its zero value is the default.
type Config struct {
	// Budget pays for the memory; nil means an unlimited one.
	Budget *keytable.Budget

	// Most is how many bans there can be, remembered ones included; 0 means DefaultMost.
	// Only bans added by hand may take the last sixteenth of them.
	Most int

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

// NewTable returns an empty table.
func NewTable(c Config) *Table {
	most := cmp.Or(c.Most, DefaultMost)
	if c.Keep {
		return newTable(c, most, 0)
	}
	return newTable(c, most, most/16)
}

// newTable returns a table for that many bans. Only those added by hand may take the
// reserve.
func newTable(c Config, most, reserve int) *Table {
	if c.Budget == nil {
		c.Budget = keytable.NewBudget(math.MaxInt64 / 2)
	}
	shards := min(1<<bits.Len(uint(most/bansPerShard)), maxShards)
	t := &Table{keep: c.Keep, empty: newGeneration(nil, 0, 0), shards: make([]shard, shards), shift: uint(32 - bits.Len(uint(shards-1)))}
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
	t.shared = pool{c.Budget, keytable.NewBudget(int64(most - reserve))}
	t.reserve = pool{keytable.NewBudget(aside), keytable.NewBudget(int64(reserve))}
	return t
}

// Reserved returns the bytes of the budget that are kept free for bans added by hand.
func (t *Table) Reserved() int64 {
	b := t.reserve.budget
	return b.Limit() - b.Used()
}

// Len returns the number of bans that hold or are remembered.
func (t *Table) Len() int { return int(t.shared.places.Used() + t.reserve.places.Used()) }

// Until returns when the ban of key under rule ends that holds at now. hash is the key's,
// the same for every rule. It takes no lock.
func (t *Table) Until(rule uint32, hash uint64, key []byte, now int64) (until int64, ok bool) {
	g := t.shard(uint32(hash)).memory.Load()
	if g == t.empty {
		return 0, false
	}
	tag := tagOf(uint32(hash), rule)
	if head := g.index[g.home(tag)][0].Load(); !isFull(head) && matches(head, tag) == 0 {
		return 0, false // nearly always
	}
	number, ok := g.find(tag, rule, key)
	if !ok {
		return 0, false
	}
	until = atomic.LoadInt64(&g.entries[number].until)
	return until, now < until
}

// shard returns the shard of all keys with that lower half of their hash.
func (t *Table) shard(hashLow uint32) *shard { return &t.shards[hashLow>>(t.shift&63)] }

// pool returns the reserve or the other pool.
func (t *Table) pool(reserve bool) *pool {
	if reserve {
		return &t.reserve
	}
	return &t.shared
}
