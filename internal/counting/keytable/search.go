package keytable

import (
	"sync/atomic"
	"unsafe"
)

// A Hint says where the search for a key's record begins, as of a moment.
type Hint struct {
	g     *header
	at    uint   // bytes from g.memory
	state uint64 // of g then
}

// Prefetch returns the hint for all keys with that hash, and begins to fetch the
// cache line of the record for writing. It locks nothing and waits for nothing.
// If the record is not in the cache, what the caller does between Prefetch and
// LockAt, such as reading the clock, costs no time.
func (t *Table) Prefetch(hash uint64) Hint {
	e := t.entryOf(hash)
	places := e.places.Load()
	prefetch(uintptr(places>>16) + uintptr(home(hash, uint(places&0xffff))*t.step))
	g := e.group.Load()
	if g == nil {
		return Hint{state: retired}
	}
	return t.hintIn(g, hash)
}

func (t *Table) hintIn(g *header, hash uint64) Hint {
	return Hint{g, home(hash, uint(g.places)) * t.step, g.state.Load()}
}

// Lock finds the record of key and locks it. The State is Found, Absent or Moved.
// It does not allocate.
func (t *Table) Lock(hash uint64, key string) (Record, State) {
	return t.LockAt(t.Prefetch(hash), hash, key)
}

// LockAt is Lock with the Hint that Prefetch returned for that hash, now or
// before.
func (t *Table) LockAt(h Hint, hash uint64, key string) (Record, State) {
	r, state := t.search(h, hash, key)
	if state == Found || state == Absent && t.unchanged(h, hash) {
		return r, state
	}
	return t.lockSlow(hash, key)
}

// busy is the State of a search that has to be repeated.
const busy State = 255

// search looks for the record of key from h on and locks it. It takes no other
// lock and does not wait. A record that it locks is the right one, whatever
// became of the group since h was made: records of a group that was replaced stay
// locked. That there is no record, Absent, is true only if the group has not
// changed meanwhile; see unchanged. The Record is then the empty place where the
// search ended: as long as the state of the group stays the same and the place stays
// empty, the key has no record.
func (t *Table) search(h Hint, hash uint64, key string) (Record, State) {
	if h.g == nil {
		return Record{}, busy
	}
	head, state := h.g.probe(h.at, t.step, tagOf(hash))
	r := Record{group{t, h.g}, head}
	if state != Found {
		return r, state
	}
	if len(key) <= MaxShortKey {
		if r.field().isShort(key) {
			return r, Found
		}
	} else if r.isLong(key) {
		return r, Found
	}
	h.at = r.g.next(r.index()) * t.step // another key has the same hash
	r.Unlock()
	return t.search(h, hash, key)
}

// probe locks the first record of the hash with that tag from at on, in steps of a
// record, and returns its head, or that of the empty place before which there is none. It
// calls nothing, so that all it uses is in registers.
func (g *header) probe(at, step uint, tag uint64) (*atomic.Uint64, State) {
	memory, end := g.memory, uint(g.places)*step
	for {
		head := (*atomic.Uint64)(unsafe.Add(memory, at))
		w := head.Load()
		if (w^tag)&^status == 0 {
			if w&locked != 0 || !head.CompareAndSwap(w, w|locked) {
				return head, busy
			}
			return head, Found
		}
		if w == 0 {
			return head, Absent
		}
		if at += step; at == end {
			at = 0
		}
	}
}

// lockSlow is Lock after a search found nothing or a record that another goroutine
// has locked: it searches again until it knows.
func (t *Table) lockSlow(hash uint64, key string) (Record, State) {
	for spins := 0; ; spins++ {
		h := t.Prefetch(hash)
		if h.state&(changing|retired) != 0 {
			return t.lockWaiting(hash, key)
		}
		r, state := t.search(h, hash, key)
		if state == Found || state == Absent && t.unchanged(h, hash) {
			return r, state
		}
		pause(spins)
	}
}

// unchanged reports whether the group of h was not changing, has not changed since, and is
// still the group for hash.
func (t *Table) unchanged(h Hint, hash uint64) bool {
	return h.state&(changing|retired) == 0 && h.g.state.Load() == h.state && t.groupOf(hash) == h.g
}

// lockWaiting is Lock for a group that changes: it waits for the change to end.
func (t *Table) lockWaiting(hash uint64, key string) (Record, State) {
	g, ok := t.lockGroup(hash)
	if !ok {
		return Record{}, Moved
	}
	defer g.mu.Unlock()
	return g.find(hash, key)
}

// find is search in a group that cannot change: it waits for a goroutine that has
// locked the record.
//
// REQUIRES: g.mu.
func (g group) find(hash uint64, key string) (Record, State) {
	h := g.t.hintIn(g.header, hash)
	for spins := 0; ; spins++ {
		if r, state := g.t.search(h, hash, key); state != busy {
			return r, state
		}
		pause(spins)
	}
}

// Has reports whether key has a record, without waiting for a goroutine that has
// locked it. It may be true for a key without a record while its group changes; false
// is certain.
func (t *Table) Has(hash uint64, key string) bool {
	h := t.Prefetch(hash)
	r, state := t.search(h, hash, key)
	if state == Found {
		r.Unlock()
	}
	return state != Absent || !t.unchanged(h, hash)
}
