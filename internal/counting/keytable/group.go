package keytable

import (
	"iter"
	"sync"
	"sync/atomic"
	"unsafe"
)

// MaxBases is how many bases a group has.
const MaxBases = 8

// A group holds the records for a range of hashes: an open-addressing table with
// linear probing, at most five sixths full. They lie in one piece of memory without
// pointers:
//
//	places of records | long keys
//
// The header lies apart from them, beside other headers: at the same place of each
// piece, headers would all be in the same few sets of the processor's cache.
//
// A group grows in place of itself, by being replaced by a larger one, and one of
// full size is split. The layout of a published group never changes; a new layout
// means a new group.
//
// The mutex is for what changes the group: a new record, and all that moves
// records, which locks the records that it moves first. So a goroutine that has
// locked a record may read what says where its key is. A search reads heads only.
// If it finds a record and locks it, that is the one; if it finds none, that is
// true if state has not changed. All records of a group that is replaced stay
// locked for ever, so that no search ends there.
type group struct {
	t *Table
	*header
}

// The first cache line has all that a hit reads in a table with one window, and most
// of what an insert reads and writes.
type header struct {
	memory unsafe.Pointer // the first place; does not change
	state  atomic.Uint64  // how often the group has changed, and the bits below
	mu     sync.Mutex     // what follows is read and written under it, unless it says otherwise
	size   uint32         // bytes, the header included; does not change
	keys   uint32         // bytes of size for keys; does not change
	tail   uint32         // bytes of keys in use; the keys are read by who has locked a record
	dead   uint32         // bytes of tail whose keys are gone
	recent int32          // bytes that recentKeys new keys take, a moving average
	n      int32          // records
	depth  uint16         // how many upper bits all hashes of the range share
	places uint16         // does not change

	// refusals is how many calls are refused until the next look for records that
	// may be evicted, see makeSpace.
	refusals uint16

	reserved uint16 // how often the sweep leaves the group as it is, see Reserve

	base  [MaxBases]int64 // read by who has locked a record, written with all locked
	first uint64          // the lowest hash of the range
}

// headerBytes is the size of a header: two cache lines.
const headerBytes = 128

// The parts of state.
const (
	changing = 1 << 0 // records move
	retired  = 1 << 1 // the group was replaced, or its range drained
	aChange  = 1 << 2
)

// newGroup returns a group without records. Its bytes are charged by the caller.
func (t *Table) newGroup(l layout, first uint64, depth uint16) group {
	words := make([]uint64, (l.size-headerBytes)/8)
	t.groups.Add(1)
	return group{t, &header{
		memory: unsafe.Pointer(unsafe.SliceData(words)),
		size:   uint32(l.size), keys: uint32(l.keys), places: uint16(l.places),
		first: first, depth: depth,
	}}
}

// retire ends the use of g, all of whose records are locked and stay so.
func (g group) retire() {
	g.state.Store(g.state.Load() | retired)
	g.t.groups.Add(-1)
}

// home returns the place at which the search for a hash begins: its lower 32 bits,
// scaled to the places.
func home(hash uint64, places uint) uint {
	return uint(uint64(uint32(hash)) * uint64(places) >> 32)
}

// homeOf is home for the record with that head.
func (g group) homeOf(head uint64) uint { return home(head>>headBits, uint(g.places)) }

func (g group) record(i uint) Record {
	return Record{g, (*atomic.Uint64)(unsafe.Add(g.memory, i*g.t.step))}
}

// index returns the place of r.
func (r Record) index() uint {
	return uint(uintptr(unsafe.Pointer(r.head))-uintptr(r.g.memory)) / r.g.t.step
}

// after returns the words of the record after its head.
func (r Record) after() []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(r.head), 8)), r.g.t.stride-1)
}

func (g group) next(i uint) uint {
	if i++; i < uint(g.places) {
		return i
	}
	return 0
}

// free returns the first empty place from the home of a head.
func (g group) free(head uint64) Record {
	i := g.homeOf(head)
	for g.record(i).head.Load() != 0 {
		i = g.next(i)
	}
	return g.record(i)
}

// most returns how many records g can hold.
func (g group) most() int32 { return recordsIn(int64(g.places)) }

// recordsIn returns how many records there may be in that many places.
func recordsIn(places int64) int32 { return int32(places - max((places+5)/6, 1)) }

// move copies the record from, head and all, to the empty place r of the same group.
func (r Record) move(from Record) {
	copy(r.after(), from.after())
	head := from.head.Load()
	if r.g.t.careless {
		head &^= locked // by somebody who does not find it again
	}
	r.head.Store(head)
}

// adopt copies r, a locked record of another group, to g, where it is not locked
// and which nobody else knows yet.
func (g group) adopt(r Record) {
	head := r.head.Load() &^ locked
	to := g.free(head)
	copy(to.after(), r.after())
	if r.inArena() {
		g.keep(to, r.stored())
	}
	to.head.Store(head)
	g.n++
}

// freeze locks all records, and thaw unlocks them: between the two the group may
// change in any way.
//
// REQUIRES: g.mu.
func (g group) freeze() {
	g.state.Store(g.state.Load() | changing)
	if g.t.careless {
		return
	}
	for r := range g.all() {
		lockHead(r.head)
	}
}

func (g group) thaw() {
	for r := range g.all() {
		if !g.t.careless {
			r.Unlock()
		}
	}
	g.changed()
}

func (g group) changed() { g.state.Store((g.state.Load() + aChange) &^ changing) }

// all yields the records in the order of places.
func (g group) all() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		for i := range uint(g.places) {
			if r := g.record(i); r.head.Load() != 0 && !yield(r) {
				return
			}
		}
	}
}

// fits reports whether there is memory for another record with a key that takes
// need bytes beside the records.
func (g group) fits(need int) bool {
	return g.n < g.most() && (need == 0 || g.tail+uint32(need) <= g.keys)
}

// insert makes the empty place r a record of zeros, locked, for a key that is not
// there and fits.
func (g group) insert(r Record, hash uint64, key string) {
	if g.n == 0 {
		g.t.config.Policy.Base(&g.base)
	}
	clear(r.Words())
	g.setKey(r, key)
	g.recent += int32(beside(key)) - g.recent/recentKeys
	r.head.Store(tagOf(hash) | locked) // now searches find it
	g.n++
}

// remove removes the record at hole, which is locked, and moves those after it up
// so that each is still found from its home (D. Knuth, The Art of Computer
// Programming, volume 3, section 6.4, algorithm R).
func (g group) remove(hole uint) {
	g.state.Store(g.state.Load() | changing)
	g.evict(g.record(hole))
	for j := g.next(hole); g.record(j).head.Load() != 0; j = g.next(j) {
		home := g.homeOf(g.record(j).head.Load())
		if hole < home && home <= j || j < hole && (hole < home || home <= j) {
			continue // its home is after the hole
		}
		lockHead(g.record(j).head)
		g.record(hole).move(g.record(j))
		g.record(hole).Unlock()
		hole = j
	}
	g.record(hole).head.Store(0)
	g.changed()
}

// evict tells the policy that r goes, and counts it as gone.
func (g group) evict(r Record) {
	g.t.config.Policy.Drop(r)
	g.t.n.Add(^uint64(0))
	g.leave(r)
}

// leave counts r as gone from g.
func (g group) leave(r Record) {
	g.n--
	if r.inArena() {
		g.dead += keyHead + uint32(len(r.stored()))
	}
}

// removeIf removes the records for which gone returns true, which has them leave g. It
// asks in the order of places, from a free one round to itself, and puts every
// record that stays to the first free place from its home: since it begins after a
// free place, all records before it are in place already.
//
// REQUIRES: all records locked.
func (g group) removeIf(gone func(r Record) bool) {
	g.scan(func(r Record) {
		if gone(r) {
			r.head.Store(0)
			return
		}
		for i := g.homeOf(r.head.Load()); g.record(i) != r; i = g.next(i) {
			if to := g.record(i); to.head.Load() == 0 {
				to.move(r)
				r.head.Store(0)
				return
			}
		}
	})
	g.compact()
}

// scan calls f for each record, in the order of places, from a free one round to
// itself.
func (g group) scan(f func(r Record)) {
	free := uint(0)
	for g.record(free).head.Load() != 0 {
		free++
	}
	for i := g.next(free); i != free; i = g.next(i) {
		if r := g.record(i); r.head.Load() != 0 {
			f(r)
		}
	}
}
