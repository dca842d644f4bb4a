// Package ban stores the bans of rules: how long they last, their table and the list of
// them.
package ban

import (
	"cmp"
	"math"
	"sync"
	"sync/atomic"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// A Table stores bans: for a key under a rule, its newest ban and how many there were. A
// ban that holds is never removed to free memory. One that ended is kept for as long as it
// is remembered; if there are as many bans as there may be, or the budget is used up, some
// of those that expire first are dropped. If all bans hold, no rule begins another, but
// a reserve is left for bans that are added by hand.
//
// Bans lie in a [keytable.Table]: to ask whether a key is banned locks the record of its ban,
// if there is one. Changes of a key are made one after the other and are visible at once,
// each as a whole. Nothing runs in the background: new bans remove those that have expired.
//
// A ban takes 80 to 110 bytes, and the bytes of its key if that is longer than 15 bytes;
// bans added by hand share their reasons and sources.
type Table struct {
	shared  part // for all bans
	reserve part // for those added by hand that find no place there
	texts   texts
	keep    bool // expire nothing
	dropped atomic.Pointer[func(rule uint32) bool]
	now     atomic.Int64 // the newest time of a change

	refused atomic.Uint64
	rules   sync.Map                 // how many bans of each rule there are, an *atomic.Int64
	held    atomic.Pointer[heldBans] // as they were counted last
	changes [64]sync.Mutex           // of the keys with that hash
}

// A part is a part of the bans, with memory of its own.
type part struct {
	table  atomic.Pointer[keytable.Table] // nil before the first ban
	budget *keytable.Budget
	most   int64 // how many bans there may be
	bans   atomic.Int64
	mu     sync.Mutex // one makes the table

	searched atomic.Int64 // when there was no ban to drop
}

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

	// The memory of the reserve is reserveBytes for each ban and reserveBase once, but at
	// most 1/reservePart of the budget.
	reserveBytes = 256
	reserveBase  = 64 << 10
	reservePart  = 32
)

// NewTable returns an empty table. It takes memory when the first ban comes.
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
	aside := int64(0)
	if reserve > 0 {
		aside = min(reserveBase+int64(reserve)*reserveBytes, c.Budget.Limit()/reservePart)
	}
	if !c.Budget.Take(aside, 0) {
		aside = 0
	}
	t := &Table{keep: c.Keep, shared: part{budget: c.Budget, most: int64(most - reserve)}}
	t.reserve = part{budget: keytable.NewBudget(aside), most: int64(reserve)}
	t.now.Store(math.MinInt64)
	t.shared.searched.Store(math.MinInt64)
	t.reserve.searched.Store(math.MinInt64)
	return t
}

// A policy is that of the records of a part.
type policy struct {
	keytable.Plain
	t *Table
	p *part
}

// Expired reports whether the ban is not remembered any more, or its rule is gone.
func (y policy) Expired(r keytable.Record) bool {
	e := entry(r.Words())
	if keep := y.t.dropped.Load(); keep != nil && !(*keep)(e.rule()) {
		return true
	}
	return !y.t.keep && e.expires() < y.t.now.Load()
}

// Weight returns what is dropped first: what expires first of what has ended.
func (y policy) Weight(r keytable.Record) uint64 {
	e := entry(r.Words())
	if y.t.keep || e.until() > y.t.now.Load() {
		return keytable.Protected
	}
	return min(keytable.Stamp(e.expires()), keytable.Protected-1)
}

// Drop gives back what the ban has outside of its record.
func (y policy) Drop(r keytable.Record) {
	e := entry(r.Words())
	y.t.texts.release(e.origin())
	y.t.Of(e.rule()).Add(-1)
	y.p.bans.Add(-1)
}

// Reserved returns the bytes of the budget that are kept free for bans added by hand.
func (t *Table) Reserved() int64 { return t.reserve.budget.Limit() - t.reserve.budget.Used() }

// Len returns the number of bans that hold or are remembered.
func (t *Table) Len() int { return int(t.shared.bans.Load() + t.reserve.bans.Load()) }

// tables yields the tables of the parts that have one.
func (t *Table) tables(yield func(in *keytable.Table) bool) {
	for _, p := range []*part{&t.shared, &t.reserve} {
		if in := p.table.Load(); in != nil && !yield(in) {
			return
		}
	}
}

// identity returns the hash of a key under a rule: two rules differ in it for every key.
func identity(rule uint32, hash uint64) uint64 { return hash + uint64(rule)*0x9e3779b97f4a7c15 }

// find returns the locked record of a key, and the table where it is, nil if it has none.
func (t *Table) find(id uint64, key []byte) (r keytable.Record, in *keytable.Table) {
	if r, in = t.shared.find(id, key); in == nil {
		r, in = t.reserve.find(id, key)
	}
	return r, in
}

func (p *part) find(id uint64, key []byte) (r keytable.Record, in *keytable.Table) {
	if p.bans.Load() == 0 {
		return r, nil
	}
	if in = p.table.Load(); in != nil {
		if r, state := in.Lock(id, keytable.Text(key)); state == keytable.Found {
			return r, in
		}
	}
	return r, nil
}

// Until returns when the ban of key under rule ends that holds at now. hash is the key's,
// the same for every rule.
func (t *Table) Until(rule uint32, hash uint64, key []byte, now int64) (until int64, ok bool) {
	r, in := t.find(identity(rule, hash), key)
	if in == nil {
		return 0, false
	}
	until = entry(r.Words()).until()
	r.Unlock()
	return until, now < until
}
