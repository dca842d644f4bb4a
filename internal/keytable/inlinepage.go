package keytable

import (
	"sync"
	"sync/atomic"
	"unsafe"
)

const (
	// MaxBases is how many bases a page has.
	MaxBases = 8

	maxRecords = 1 << (32 - keyLenBits) // of a page
	minRecords = 4
	minArena   = 64
	maxArena   = 1<<31 - 1
)

// A page is a part of an [Table]: an open-addressing table with linear probing
// in the order of the hash, at most three quarters full, or with small records
// five sixths, or half if it is LowLoad.
//
// The mutex is for what changes the page: a new record, and all that moves
// records, which locks those that it moves first. So who has locked a record may
// read all that says where it and its key are. A search reads state and first,
// which tell the places, and heads; if it finds a record and locks it, that is
// the one; if it finds none, that is so if state has not changed. When the
// places are given up for larger ones, records in the old ones stay locked for
// ever, so that no search ends there.
type page struct {
	// What a hit reads comes first, in one cache line for up to five bases.

	// state is the number of places, how often the page has changed, and
	// whether it is changing or has been drained.
	state atomic.Uint64
	first atomic.Pointer[uint64] // the head of the first place; nil for none
	t     *Table
	base  [MaxBases]int64 // written with all records locked

	mu sync.Mutex // what follows is written under it

	// Read by who has locked a record, and written with all of them locked.
	place []uint32 // for each place, where its key begins in the arena; none with KeyWords
	arena []byte   // keys: the length, then the bytes

	tail int // bytes of arena that are used
	dead int // of these, bytes of keys that are gone

	n, most  int32 // records, and how many there may be
	refusals int32 // until the next look for what may be dropped, see room
	recent   int32 // arena bytes that recentKeys new keys take, a moving average

	// Bytes taken from the budget for words and place, and for the arena.
	charge, arenaCharge int64
}

// The parts of state, from the lowest bit.
const (
	changing    = 1 << 0
	drained     = 1 << 1
	aChange     = 1 << 2 // counted up to 2^30, and from 0 again
	placesShift = 32
)

// change says that p is changing, and changed that it has changed.
func (p *page) change() { p.state.Store(p.state.Load() | changing) }

func (p *page) changed() {
	s := p.state.Load()
	p.state.Store(s>>placesShift<<placesShift | uint64(uint32(s)+aChange-changing))
}

// setPlaces changes the places in state.
func (p *page) setPlaces(n uint) {
	p.state.Store(p.state.Load()&(1<<placesShift-1) | uint64(n)<<placesShift)
}

// A view is where the places of a page are, as long as it has these.
type view struct {
	first unsafe.Pointer
	n     uint
	step  uint // bytes of one
}

func (p *page) view() view {
	return view{unsafe.Pointer(p.first.Load()), uint(p.state.Load() >> placesShift), 8 * p.t.stride}
}

func (v view) head(i uint) *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Add(v.first, i*v.step)) }

// after returns the words of the place i that come after its head.
func (v view) after(i uint) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Add(v.first, i*v.step+8)), v.step/8-1)
}

func (v view) next(i uint) uint {
	if i++; i < v.n {
		return i
	}
	return 0
}

// home returns the place at which the search for a tag begins: the 32 bits of
// the hash after those of the page, scaled to the places.
func (t *Table) home(tag uint64, places uint) uint {
	return uint(tag << (t.drop & 63) >> 32 * uint64(places) >> 32)
}

// free returns the first empty place from the home of tag.
func (p *page) free(v view, tag uint64) uint {
	i := p.t.home(tag, v.n)
	for v.head(i).Load() != 0 {
		i = v.next(i)
	}
	return i
}

// move copies the record at from, head and all, to the empty place to.
func (p *page) move(v view, to, from uint) {
	copy(v.after(to), v.after(from))
	v.head(to).Store(v.head(from).Load())
	if p.place != nil {
		p.place[to] = p.place[from]
	}
}

// freeze locks all records, and thaw unlocks them: between the two the page may
// change in any way.
//
// REQUIRES: p.mu.
func (p *page) freeze() {
	p.change()
	if p.t.careless {
		return
	}
	v := p.view()
	for i := range v.n {
		if head := v.head(i); head.Load() != 0 {
			lockHead(head)
		}
	}
}

func (p *page) thaw() {
	v := p.view()
	for i := range v.n {
		head := v.head(i)
		if h := head.Load(); h&locked != 0 && !p.t.careless {
			head.Store(h &^ locked)
		}
	}
	p.changed()
}

// fits reports whether there is room for another record with a key that takes
// need bytes of the arena.
func (p *page) fits(need int) bool {
	return p.n < p.most && (need == 0 || p.tail+need <= len(p.arena))
}

// insert makes a record of zeros, locked, in the empty place i, for a key that is
// not there and fits.
func (p *page) insert(i uint, tag uint64, key string, id *identity) Record {
	r := Record{p, p.view().head(i)}
	clear(r.Words())
	p.keep(r, i, key, id)
	r.head.Store(tag | locked) // now searches find it
	p.n++
	return r
}

// remove removes the record at hole, which is locked, and moves those after it up
// so that each is still found from its home (D. Knuth, The Art of Computer
// Programming, volume 3, section 6.4, algorithm R).
func (p *page) remove(hole uint) {
	p.change()
	v := p.view()
	p.forget(Record{p, v.head(hole)}, hole)
	for j := v.next(hole); v.head(j).Load() != 0; j = v.next(j) {
		home := p.t.home(v.head(j).Load(), v.n)
		if hole < home && home <= j || j < hole && (hole < home || home <= j) {
			continue // its home is after the hole
		}
		lockHead(v.head(j))
		p.move(v, hole, j)
		Record{p, v.head(hole)}.Unlock()
		hole = j
	}
	v.head(hole).Store(0)
	p.changed()
}

// forget tells all who must know that r, at i, goes.
func (p *page) forget(r Record, i uint) {
	p.t.config.Policy.Drop(r)
	p.leave(r, i)
}

// leave is forget without the policy.
func (p *page) leave(r Record, i uint) {
	p.n--
	if p.inArena(r) {
		p.dead += keyHead + len(p.stored(p.keyAt(r, i)))
	}
}

// dropAll removes the records for which gone returns true. It asks in the order
// in which scan visits them, and puts every record that stays back to the first
// free place from its home: since it begins after a free place, all records
// before it are in place already.
//
// REQUIRES: all records locked.
func (p *page) dropAll(gone func(r Record) bool) {
	v, had := p.view(), p.n
	p.scan(func(r Record, j uint) {
		if gone(r) {
			p.forget(r, j)
			r.head.Store(0)
			return
		}
		for i := p.t.home(r.head.Load(), v.n); i != j; i = v.next(i) {
			if v.head(i).Load() == 0 {
				p.move(v, i, j)
				r.head.Store(0)
				return
			}
		}
	})
	p.t.n.Add(^uint64(had - p.n - 1))
	p.compact()
}

// scan calls f for each record, in the order of places, from a free one round
// to itself.
func (p *page) scan(f func(r Record, i uint)) {
	v := p.view()
	free := uint(0)
	for v.head(free).Load() != 0 {
		free++
	}
	for i := v.next(free); i != free; i = v.next(i) {
		if head := v.head(i); head.Load() != 0 {
			f(Record{p, head}, i)
		}
	}
}

// each yields each key and record, and reports whether it was let.
func (p *page) each(yield func([]byte, Record) bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var buf keyBuffer
	v := p.view()
	for i := range v.n {
		if v.head(i).Load() != 0 && !p.one(Record{p, v.head(i)}, i, &buf, yield) {
			return false
		}
	}
	return true
}

func (p *page) one(r Record, i uint, buf *keyBuffer, yield func([]byte, Record) bool) bool {
	lockHead(r.head)
	defer r.Unlock()
	return yield(p.key(r, i, buf), r)
}

// drain is Drain of one page.
func (p *page) drain(f func(key []byte, r Record)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state.Load()&drained != 0 {
		return
	}
	p.freeze()
	var buf keyBuffer
	v := p.view()
	for i := range v.n {
		if v.head(i).Load() != 0 {
			r := Record{p, v.head(i)}
			f(p.key(r, i, &buf), r)
			p.leave(r, i)
			p.t.n.Add(^uint64(0))
		}
	}
	p.t.config.Budget.Give(p.charge + p.arenaCharge)
	p.first.Store(nil)
	p.place, p.arena, p.tail, p.dead, p.most, p.charge, p.arenaCharge = nil, nil, 0, 0, 0, 0, 0
	p.setPlaces(0)
	p.state.Store(p.state.Load() | drained)
	p.changed()
}
