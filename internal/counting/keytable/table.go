package keytable

import (
	"fmt"
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
)

// A Policy knows what the words of a [Table]'s records mean. Its methods are
// called with the record locked, or all of its group; they must not call the
// Table.
type Policy interface {
	// Base sets the bases of a group. They belong to the policy: the origin that
	// the numbers in its records are relative to, so that these can be small.
	Base(base *[MaxBases]int64)

	// Rebase translates r, whose group had the bases from.
	Rebase(r Record, from *[MaxBases]int64)

	// Expired reports whether r holds nothing that counts.
	Expired(r Record) bool

	// Weight orders what is evicted: the smallest first. A record of the weight
	// Protected is not evicted until it has expired.
	Weight(r Record) uint64

	// Drop is called before r is removed, other than by Drain.
	Drop(r Record)
}

// Plain is the part of a [Policy] for records whose numbers are relative to nothing, and
// which own nothing outside of the table.
type Plain struct{}

// Base sets none.
func (Plain) Base(*[MaxBases]int64) {}

// Rebase has nothing to do.
func (Plain) Rebase(Record, *[MaxBases]int64) {}

// Drop has nothing to give back.
func (Plain) Drop(Record) {}

// Protected is the weight of a record that is not evicted.
const Protected = math.MaxUint64

// Config says how a Table is built.
type Config struct {
	Words     int     // words of a record for its user
	Budget    *Budget // what all memory is taken from
	Reserve   int64   // bytes of the budget that are left to Blocks, what these have taken included
	RefuseNew bool    // at the budget, refuse new keys instead of evicting
	Policy    Policy

	// Gather, if not nil, is called for each record of a group, with all of them
	// locked, when memory is short: the user may move together what it has outside
	// of the records, so as to give memory back to the budget.
	Gather func(r Record)
}

// A Table maps keys to records of a few words, which lie in the table itself: a hit
// costs a cache miss or two. A record moves when its group changes, and is removed
// when the policy says that it has expired, or evicted at the budget.
//
// Each record has a lock, a bit of its head, so a hit writes to no cache line but
// the record's. A goroutine that holds a record may lock others in other tables,
// if all do so in the same order of tables, and otherwise calls nothing of the same
// Table but the record's own methods: what changes a group waits for all its
// records. Locks are held for some hundred nanoseconds; waiting is spinning, then
// yielding.
//
// The records lie in groups of up to 64 KiB. A directory finds the group by the
// upper bits of a seeded hash. A group grows and is then split; nothing grows at
// the budget, where each group evicts for itself. The longest pause is a split.
// An empty table takes some kibibytes.
//
// A key of up to MaxShortKey bytes is kept in its record, and compared in full at no
// further miss. A longer one is known there by 128 bits: 64 of its hash, and 64 of a hash
// with a seed of its own. Its bytes are kept in the group beside the records, with 2 bytes
// more.
type Table struct {
	seed, seed2 maphash.Seed
	stride      uint // words of a record
	step        uint // bytes of a record
	careless    bool // a test's control: changes do not wait for records
	config      Config
	least, full int64 // the sizes of the smallest group and of one that is split
	directory   atomic.Pointer[directory]

	_ [64]byte // what follows changes

	n, expired, evicted, refused, added, hand atomic.Uint64

	groups   atomic.Int64
	mu       sync.Mutex // for changes of the directory; locked after that of a group
	released bool       // the directory was given back to the budget
	reserve  sync.Once  // of Reserve
	scratch  sync.Pool  // of *scratch
}

// sweepEvery is how many new keys move the sweep on to the next group, which has at most
// a few times as many: so a new key pays for a look at two or three others.
const sweepEvery = 512

// maxStride bounds the words of a record.
const maxStride = 1 << 20

// New returns an empty Table. Tables with one seed agree on every key's hash. It
// is an error if the budget is less than what an empty table takes.
func New(seed maphash.Seed, c Config) (*Table, error) {
	stride := ownWords + c.Words
	if c.Words < 0 || stride > maxStride {
		return nil, fmt.Errorf("words %d: must be from 0 to %d", c.Words, maxStride-ownWords)
	}
	t := &Table{
		seed: seed, seed2: maphash.MakeSeed(),
		stride: uint(stride), step: 8 * uint(stride), config: c,
	}
	t.least = groupBytes(headerBytes + (minRecords+1)*int64(t.step))
	t.full = max(fullBytes, groupBytes(headerBytes+fullRecords*(int64(t.step)+fullKey)))
	fixed := directoryBytes(minGroups) + minGroups*t.least
	if !t.take(fixed) {
		return nil, fmt.Errorf("budget %d: an empty table takes %d bytes", c.Budget.limit, c.Budget.Used()+fixed+c.Reserve)
	}
	d := newDirectory(minGroups)
	t.directory.Store(d)
	l := t.layOut(t.least, content{}, 0)
	for i := range d.entries {
		d.entries[i].set(t.newGroup(l, uint64(i)<<(64-headBits), headBits).header)
	}
	return t, nil
}

// Hash returns the hash of key, which other methods take.
func (t *Table) Hash(key string) uint64 { return maphash.String(t.seed, key) }

// Len returns the number of keys.
func (t *Table) Len() int { return int(t.n.Load()) }

// A State is the result of a search for a record.
type State uint8

// The states. Only with Found and Added is there a record.
const (
	Absent   State = iota // the key has no record
	Found                 // it has
	Added                 // it has one now, of zero words
	NoMemory              // it has none, and there is no memory for one
	Moved                 // its group has been drained, see Drain
)

// LockOrAdd is Lock, and adds a record of zero words for a key that has none, in a
// group that has bases. The State is Found, Added, NoMemory or Moved. There is no
// memory at the budget, if nothing may be evicted, and for a key longer than
// MaxKey.
//
// New keys pay for the sweep: every so often it goes one group on, removes what
// has expired there, and gives back memory that is hardly used.
func (t *Table) LockOrAdd(hash uint64, key string) (Record, State) {
	if r, state := t.search(t.Prefetch(hash), hash, key); state == Found {
		return r, Found
	}
	return t.Add(hash, key)
}

// Add is LockOrAdd for a key that Lock has just found Absent.
func (t *Table) Add(hash uint64, key string) (Record, State) {
	if len(key) > MaxKey {
		t.refused.Add(1)
		return Record{}, NoMemory
	}
	return t.add(place{}, hash, key, true)
}

// LockOrAddAt is LockAt, and adds a record of zero words for a key of up to MaxKey bytes
// that has none, if its group has memory for one. If the group would have to make
// memory first, the State is Absent, and Add does so.
func (t *Table) LockOrAddAt(h Hint, hash uint64, key string) (Record, State) {
	r, state := t.search(h, hash, key)
	if state == Found {
		return r, Found
	}
	if state == busy {
		if r, state = t.lockSlow(hash, key); state != Absent {
			return r, state
		}
	}
	return t.add(place{r, h.state}, hash, key, false)
}

// A place is where a search ended that began when the group had that state.
type place struct {
	r     Record
	state uint64
}

func (t *Table) add(p place, hash uint64, key string, makeSpace bool) (Record, State) {
	if t.added.Add(1)%sweepEvery == 0 {
		t.Sweep()
	}
	for {
		g, ok := t.lockGroup(hash)
		if !ok {
			return Record{}, Moved
		}
		r, state := g.add(p, hash, key, makeSpace)
		if g.mu.Unlock(); state != again {
			return r, state
		}
	}
}

// add is add in g.
//
// REQUIRES: g.mu.
func (g group) add(p place, hash uint64, key string, makeSpace bool) (Record, State) {
	r := p.r
	if r.g.header != g.header || g.state.Load() != p.state || r.head.Load() != 0 {
		var state State
		if r, state = g.find(hash, key); state == Found {
			return r, Found
		}
	}
	if need := beside(key); !g.fits(need) {
		if !makeSpace {
			return Record{}, Absent
		}
		switch state := g.makeSpace(need); state {
		case NoMemory:
			g.t.refused.Add(1)
			return Record{}, state
		case again:
			return Record{}, state
		}
		r = g.free(tagOf(hash))
	}
	g.t.n.Add(1)
	g.insert(r, hash, key)
	return r, Added
}

// Sweep removes what has expired in one group, the one after that of the last call,
// unless another goroutine has locked it.
func (t *Table) Sweep() {
	d := t.directory.Load()
	h := d.entries[t.hand.Add(1)%uint64(len(d.entries))].group.Load()
	if h == nil || !h.mu.TryLock() {
		return
	}
	switch {
	case h.state.Load()&retired != 0:
	case h.reserved > 0:
		h.reserved--
	default:
		g := group{t, h}
		if _, ok := g.smaller(); ok || t.nearBudget() || g.sampleExpired() {
			g.tidy()
		}
	}
	h.mu.Unlock()
}

// Remove removes the record of key, and reports whether there was one.
func (t *Table) Remove(hash uint64, key string) bool {
	g, ok := t.lockGroup(hash)
	if !ok {
		return false
	}
	defer g.mu.Unlock()
	r, state := g.find(hash, key)
	if state == Found {
		g.remove(r.index())
	}
	return state == Found
}

// Rebase gives the group of hash the bases that the policy wants now.
func (t *Table) Rebase(hash uint64) {
	if g, ok := t.lockGroup(hash); ok {
		g.rebase()
		g.mu.Unlock()
	}
}

// Expire removes all records that have expired, group by group.
func (t *Table) Expire() {
	for g := range t.lockedGroups() {
		g.tidy()
	}
}

// Stats says how many keys are not in a table although they were added.
type Stats struct {
	Expired uint64 // removed after they had expired
	Evicted uint64 // removed at the budget
	Refused uint64 // calls that were not given a record
}

// Stats returns these numbers since t was made.
func (t *Table) Stats() Stats {
	return Stats{Expired: t.expired.Load(), Evicted: t.evicted.Load(), Refused: t.refused.Load()}
}
