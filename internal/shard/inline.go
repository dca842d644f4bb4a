package shard

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// An Owner knows what the words of an [Inline]'s records mean. Its methods are
// called with the page locked; they must not call the Inline.
type Owner interface {
	// Base says what the bases of a page are from now on. They are the
	// owner's: the origin that the numbers in its records are relative to, so
	// that these can be small.
	Base(base *[MaxBases]int64)

	// Rebase translates r, whose page had the bases from.
	Rebase(r Record, from *[MaxBases]int64)

	// Expired reports whether r says nothing any more.
	Expired(r Record) bool

	// Weight says what is to be forgotten first: the smallest.
	Weight(r Record) uint64

	// Drop is told that r is about to be removed.
	Drop(r Record)
}

// InlineConfig says how an Inline is built.
type InlineConfig struct {
	Words   int     // words of a record besides its head
	Budget  *Budget // what all memory is taken from
	Keep    int64   // bytes of the budget that are left to others
	Compare bool    // compare keys in full
	Refuse  bool    // at the budget, refuse new keys instead of forgetting the least
	Owner   Owner
}

// An Inline maps keys to records of a few words that lie in the table itself: a
// hit costs a cache miss or two, where [Table] costs four. In return a record
// moves, and it can be removed: when its owner says that it has expired, and for
// want of room.
//
// The table is cut into pages by the upper bits of a seeded hash, as many as
// fit the budget at 32 to 64 KiB each. A page grows by a quarter at a time, so
// the longest pause is that of moving one page. Growing stops at the budget;
// what happens then concerns one page, and all pages are about equally full.
//
// A key is known by 64 bits of its hash, and optionally compared in full. Its
// bytes are kept beside the records, with 4 more.
type Inline struct {
	seed   maphash.Seed
	shift  uint // 64 - log2(pages)
	drop   uint // the bits of a tag that come before those that place it
	config InlineConfig
	pages  []Page

	_ [64]byte // what follows changes

	n, expired, least, refused, added, hand atomic.Uint64

	weights sync.Pool // of *weights
}

const (
	minPages = 1 << headBits
	maxPages = 1 << 16

	// pageBytes is what a page takes at most at the budget: small enough that moving
	// it is no pause, and large enough that the Pages stay in the cache.
	pageBytes   = 64 << 10
	pageRecords = 256

	// handCalls is how many calls of Turn move the hand one page on.
	handCalls = 512
)

// NewInline returns an empty Inline. It is an error if the budget is less than
// what an empty one takes.
func NewInline(seed maphash.Seed, c InlineConfig) (*Inline, error) {
	size := int64(max(pageBytes, pageRecords*(8*c.Words+32)))
	n := min(max((c.Budget.limit-c.Keep)/size, minPages), maxPages)
	n = 1 << bits.Len64(uint64(n-1))
	// Each page is sure of room for a few keys, so that none is refused only
	// because of where it belongs.
	fixed := atMost(n*int64(unsafe.Sizeof(Page{}))) + n*firstBytes(c.Words)
	if !c.Budget.Take(fixed, c.Keep) {
		return nil, fmt.Errorf("budget %d: an empty table takes %d bytes", c.Budget.limit, c.Budget.Used()+fixed+c.Keep)
	}
	t := &Inline{seed: seed, shift: uint(64 - bits.Len64(uint64(n)-1)), config: c, pages: make([]Page, n)}
	t.drop = 64 - t.shift - headBits
	for i := range t.pages {
		t.pages[i].t = t
		t.pages[i].stride = uint32(c.Words + 1)
	}
	return t, nil
}

func firstBytes(words int) int64 {
	return atMost(minRecords*8*int64(words+1)) + atMost(minRecords*2*4) + atMost(minArena)
}

// Hash returns the hash of key, which other methods take.
func (t *Inline) Hash(key string) uint64 { return maphash.String(t.seed, key) }

// Page returns the page of all keys with that hash.
func (t *Inline) Page(hash uint64) *Page { return &t.pages[hash>>(t.shift&63)] }

// Pages returns all pages. A key is always in the same.
func (t *Inline) Pages() []Page { return t.pages }

// Len returns the number of keys.
func (t *Inline) Len() int { return int(t.n.Load()) }

// Turn is to be called before a key is added, with no page locked. Every so
// often it moves a hand one page on: what has expired there is removed, and a
// page that has become far too large shrinks.
func (t *Inline) Turn() {
	if t.added.Add(1)%handCalls != 0 {
		return
	}
	p := &t.pages[t.hand.Add(1)%uint64(len(t.pages))]
	if p.mu.TryLock() {
		p.tidy()
		p.Unlock()
	}
}

// Expire removes all records that have expired, page by page.
func (t *Inline) Expire() {
	for i := range t.pages {
		p := &t.pages[i]
		p.Lock()
		p.tidy()
		p.Unlock()
	}
}

// Gone says how many keys are not in a table although they were brought.
type Gone struct {
	Expired uint64 // removed after they had expired
	Least   uint64 // removed for want of room
	Refused uint64 // calls that were not given a record
}

// Gone returns these numbers since t was made.
func (t *Inline) Gone() Gone {
	return Gone{Expired: t.expired.Load(), Least: t.least.Load(), Refused: t.refused.Load()}
}
