package keytable

import (
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// An Policy knows what the words of an [Table]'s records mean. Its methods are
// called with the record locked, or all of its page; they must not call the
// Table.
type Policy interface {
	// Base says what the bases of a page are from now on. They are the
	// policy's: the origin that the numbers in its records are relative to, so
	// that these can be small.
	Base(base *[MaxBases]int64)

	// Rebase translates r, whose page had the bases from.
	Rebase(r Record, from *[MaxBases]int64)

	// Expired reports whether r says nothing any more.
	Expired(r Record) bool

	// Weight says what is to be forgotten first: the smallest. What weighs
	// Protected is not forgotten until it has expired.
	Weight(r Record) uint64

	// Drop is told that r is about to be removed.
	Drop(r Record)
}

// Protected is the weight of a record that is not dropped for want of room.
const Protected = math.MaxUint64

// Config says how an Table is built.
type Config struct {
	Words     int     // words of a record for its policy
	KeyWords  int     // words of a record for its key: 0 or 2, see Table
	Pages     int     // rounded up to a power of two from 16 to 65,536; 0 means as many as fit the budget
	Budget    *Budget // what all memory is taken from
	Reserve   int64   // bytes of the budget that are left to Blocks, those they have included
	Compare   bool    // compare keys in full
	RefuseNew bool    // at the budget, refuse new keys instead of forgetting the least
	LowLoad   bool    // keep half of the places empty: a third more memory, and fewer lines that are searched
	Policy    Policy

	// Gather, if not nil, is called for each record of a page, with all of them
	// locked, after some were removed to make room: the policy may move what it has
	// outside of them together, so as to give memory back to the budget.
	Gather func(r Record)
}

// An Table maps keys to records of a few words that lie in the table itself: a
// hit costs a cache miss or two, where [Sharded] costs four. In return a record
// moves, and it can be removed: when its policy says that it has expired, and for
// want of room.
//
// Each record has a lock of its own, a bit of its head, so a hit writes to no
// cache line but the record's. Who holds a record may lock others in other
// tables, if all do so in the same order of tables, and otherwise calls nothing
// of the same Table but the record's own methods: what changes a page waits for
// all its records. Locks are for some hundred nanoseconds; who waits spins and
// then yields.
//
// The table is cut into pages by the upper bits of a seeded hash, as many as
// fit the budget at 64 to 128 KiB each unless told otherwise. A page grows by a
// quarter at a time, so the longest pause is that of moving one page. Growing
// stops at the budget; what happens then concerns one page, and all pages are
// about equally full. An empty page takes 192 bytes and room for four records.
//
// A key is known by 64 bits of its hash, and optionally compared in full. Its
// bytes are kept beside the records, with 4 more. With two KeyWords, a key of up
// to MaxShortKey bytes is kept in the record, and compared in full at no further
// miss. A longer one is known there by 128 bits: those and 64 of a hash with a
// seed of its own.
type Table struct {
	seed, seed2 maphash.Seed
	shift       uint // 64 - log2(pages)
	drop        uint // the bits of a tag that come before those that place it
	stride      uint // words of a place
	skip        uint // of these, the head and the key
	spare       uint // of so many places, one is kept empty
	plain       bool // 64 bits of the hash are enough
	config      Config
	pages       []page
	careless    bool // a test's control: changes do not wait for records

	_ [64]byte // what follows changes

	n, expired, least, refused, added, hand atomic.Uint64

	fixed atomic.Int64 // bytes taken from the budget for pages without keys

	weights sync.Pool // of *weights
}

const (
	minPages = 1 << headBits
	maxPages = 1 << 16

	// pageBytes is what a page takes at most at the budget: small enough that moving
	// it is no pause, and large enough that the pages stay in the cache.
	pageBytes   = 128 << 10
	pageRecords = 256

	// handCalls is how many new keys move the hand one page on.
	handCalls = 512

	lineWords = 8 // of a cache line

	// maxStride bounds the words of a record.
	maxStride = 1 << 20
)

// New returns an empty Table. Tables with one seed agree on every key's
// hash. It is an error if the budget is less than what an empty table takes.
func New(seed maphash.Seed, c Config) (*Table, error) {
	if c.KeyWords != 0 && c.KeyWords != shortWords {
		return nil, fmt.Errorf("key words %d: must be 0 or %d", c.KeyWords, shortWords)
	}
	stride := 1 + c.KeyWords + c.Words
	if c.Words < 0 || stride > maxStride {
		return nil, fmt.Errorf("words %d: must be from 0 to %d", c.Words, maxStride-1-c.KeyWords)
	}
	n := int64(c.Pages)
	if n <= 0 {
		n = (c.Budget.limit - c.Reserve) / int64(max(pageBytes, pageRecords*(8*stride+24)))
	}
	n = 1 << bits.Len64(uint64(min(max(n, minPages), maxPages)-1))
	// Each page is sure of room for a few keys, so that none is refused only
	// because of where it belongs.
	fixed := atMost(n*int64(unsafe.Sizeof(page{}))) + n*firstBytes(stride, c.KeyWords)
	if !c.Budget.Take(fixed, c.Reserve) {
		return nil, fmt.Errorf("budget %d: an empty table takes %d bytes", c.Budget.limit, c.Budget.Used()+fixed+c.Reserve)
	}
	t := &Table{
		seed: seed, seed2: maphash.MakeSeed(),
		shift:  uint(64 - bits.Len64(uint64(n)-1)),
		stride: uint(stride), skip: uint(1 + c.KeyWords), spare: 4,
		plain:  c.KeyWords == 0 && !c.Compare,
		config: c, pages: make([]page, n),
	}
	t.fixed.Store(fixed)
	t.drop = 64 - t.shift - headBits
	switch {
	case c.LowLoad:
		t.spare = 2
	case stride <= lineWords/2:
		t.spare = 6 // longer searches, but most of them in one cache line, and less memory to miss
	}
	for i := range t.pages {
		t.pages[i].t = t
	}
	return t, nil
}

func firstBytes(stride, keyWords int) int64 {
	bytes := atMost(minRecords * 8 * int64(stride))
	if keyWords == 0 {
		bytes += atMost(minRecords*2*4) + atMost(minArena)
	}
	return bytes
}

// Hash returns the hash of key, which other methods take.
func (t *Table) Hash(key string) uint64 { return maphash.String(t.seed, key) }

func (t *Table) page(hash uint64) *page { return &t.pages[hash>>(t.shift&63)] }

// Len returns the number of keys.
func (t *Table) Len() int { return int(t.n.Load()) }

// A State says what became of a look for a record.
type State uint8

// The states. Only with Found and Added is there a record.
const (
	Absent   State = iota // the key has no record
	Found                 // it has
	Added                 // it has one now, of zero words
	NoMemory              // it has none, and there is no room for one
	Moved                 // its page has been drained, see Drain
)

// LockOrAdd is Lock, and adds a record of zero words for a key that has none, in
// a page that has bases. The State is Found, Added, NoMemory or Moved. There is no
// room at the budget, if nothing may be dropped, and for a key longer than
// MaxKey.
//
// For every new key some older ones are looked at: every so often a hand goes
// one page on, what has expired there is removed, and a page that has become
// far too large shrinks.
func (t *Table) LockOrAdd(hash uint64, key string) (Record, State) {
	if r, state := t.Lock(hash, key); state != Absent {
		return r, state
	}
	return t.Add(hash, key)
}

// Add is LockOrAdd for a key that Lock has just found Absent.
func (t *Table) Add(hash uint64, key string) (Record, State) {
	t.turn()
	p := t.page(hash)
	id := t.identify(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	i, state := p.find(hash, key, &id)
	switch {
	case state == Found:
		return Record{p, p.view().head(i)}, Found
	case state == Moved:
		return Record{}, Moved
	case len(key) > MaxKey || !p.fits(id.bytes):
		if len(key) > MaxKey || !p.room(id.bytes) {
			t.refused.Add(1)
			return Record{}, NoMemory
		}
		i = p.free(p.view(), tagOf(hash))
	}
	t.n.Add(1)
	return p.insert(i, tagOf(hash), key, &id), Added
}

// turn moves the hand.
func (t *Table) turn() {
	if t.added.Add(1)%handCalls != 0 {
		return
	}
	p := &t.pages[t.hand.Add(1)%uint64(len(t.pages))]
	if p.mu.TryLock() {
		p.tidy()
		p.mu.Unlock()
	}
}

// Remove removes the record of key, and reports whether there was one.
func (t *Table) Remove(hash uint64, key string) bool {
	p := t.page(hash)
	id := t.identify(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	i, state := p.find(hash, key, &id)
	if state == Found {
		p.remove(i)
		t.n.Add(^uint64(0))
	}
	return state == Found
}

// Rebase gives the page of hash the bases that the policy wants now.
func (t *Table) Rebase(hash uint64) {
	p := t.page(hash)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rebase()
}

// Expire removes all records that have expired, page by page.
func (t *Table) Expire() {
	for i := range t.pages {
		p := &t.pages[i]
		p.mu.Lock()
		p.tidy()
		p.mu.Unlock()
	}
}

// All yields each key with its record, in no order. Each record is locked, and
// its page too, while the loop's body runs, which must not use the table and
// must copy of the key what it keeps. What comes or goes meanwhile is yielded
// once or not at all.
func (t *Table) All() iter.Seq2[[]byte, Record] {
	return func(yield func([]byte, Record) bool) {
		for i := range t.pages {
			if !t.pages[i].each(yield) {
				return
			}
		}
	}
}

// Pages returns the number of pages.
func (t *Table) Pages() int { return len(t.pages) }

// Page yields those of All in the i-th page: a caller that must use the table
// between keys goes page by page. A key is always in the same.
func (t *Table) Page(i int) iter.Seq2[[]byte, Record] {
	return func(yield func([]byte, Record) bool) { t.pages[i].each(yield) }
}

// Drain empties the page of hash for good: f is called for each of its records,
// with all of them locked, and may look into them and use other tables that come
// later in the order. All that follows on a key of that page has the State Moved.
// The policy is not told of a Drop. A page is drained once; later calls do nothing.
func (t *Table) Drain(hash uint64, f func(key []byte, r Record)) { t.page(hash).drain(f) }

// DrainPage is Drain for the i-th page.
func (t *Table) DrainPage(i int, f func(key []byte, r Record)) { t.pages[i].drain(f) }

// Release drains all pages and gives all memory back to the budget. The table is
// of no use afterwards: there is nothing in it, and all keys have moved.
func (t *Table) Release() {
	for i := range t.pages {
		t.pages[i].drain(func([]byte, Record) {})
	}
	t.config.Budget.Give(t.fixed.Swap(0))
}

// Stats says how many keys are not in a table although they were brought.
type Stats struct {
	Expired uint64 // removed after they had expired
	Evicted uint64 // removed for want of room
	Refused uint64 // calls that were not given a record
}

// Stats returns these numbers since t was made.
func (t *Table) Stats() Stats {
	return Stats{Expired: t.expired.Load(), Evicted: t.least.Load(), Refused: t.refused.Load()}
}
