package keytable

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

// The head of a record is its first word:
//
//	| hash, the lower 60 bits | spare | locked | flag | live |
//
// The upper 4 bits of the hash are those of the page, so that the head and the
// page together name all 64. The head 0 is that of an empty place.
//
// A head is read and written by atomic operations only. The words after it are
// those of whoever set locked, by a swap, until he clears it: the clearing
// synchronizes before the next setting.
const (
	live   = 1 << 0
	flag   = 1 << 1
	locked = 1 << 2

	headBits = 4
	status   = 1<<headBits - 1 - live
)

func tagOf(hash uint64) uint64 { return hash<<headBits | live }

// A Record is a locked place of an [Table]. Only who locked it may use it, and
// not after Unlock.
type Record struct {
	p    *page
	head *atomic.Uint64
}

// Words returns the policy's words of r.
func (r Record) Words() []uint64 {
	t := r.p.t
	return unsafe.Slice((*uint64)(unsafe.Add(unsafe.Pointer(r.head), 8*t.skip)), t.stride-t.skip)
}

// Base returns the bases of the page that r is in; see [Policy].
func (r Record) Base() *[MaxBases]int64 { return &r.p.base }

// Flag returns the one bit that a record has besides its words. It is false in
// a new record.
func (r Record) Flag() bool { return r.head.Load()&flag != 0 }

// SetFlag sets the flag.
func (r Record) SetFlag() { r.head.Store(r.head.Load() | flag) }

// ClearFlag clears the flag.
func (r Record) ClearFlag() { r.head.Store(r.head.Load() &^ flag) }

// Unlock lets go of r.
func (r Record) Unlock() { r.head.Store(r.head.Load() &^ locked) }

// pause waits a little, longer when it has been called often.
func pause(spins int) {
	if spins < 8 {
		for range 16 << (spins / 2) {
			spin()
		}
		return
	}
	runtime.Gosched()
}

//go:noinline
func spin() {}

// A Hint is where the search for a key's record begins, as of a moment.
type Hint struct {
	p     *page
	first unsafe.Pointer
	at    uint // bytes from there
	state uint64
}

// Prefetch returns the spot of all keys with that hash, and begins to fetch it into
// the cache, to be written. It locks nothing and waits for nothing. What the
// caller does between Prefetch and LockAt, such as to read the clock or to Prefetch in
// other tables, takes no time of its own if the record is not in the cache.
func (t *Table) Prefetch(hash uint64) Hint {
	p := t.page(hash)
	state := p.state.Load()
	first := unsafe.Pointer(p.first.Load())
	if first == nil || state&changing != 0 || p.state.Load() != state {
		return Hint{}
	}
	at := 8 * t.home(tagOf(hash), uint(state>>placesShift)) * t.stride
	prefetch(unsafe.Add(first, at))
	return Hint{p, first, at, state}
}

// Lock finds the record of key and locks it. The State is Found, Absent or
// Moved. It does not allocate.
func (t *Table) Lock(hash uint64, key string) (Record, State) {
	return t.LockAt(t.Prefetch(hash), hash, key)
}

// LockAt is Lock from the Hint that Prefetch found for that hash, now or before.
//
// It takes no other lock as long as the page has not changed since. A record
// that it finds and locks is the one, for those of places that were given up
// stay locked. What is unusual is left to lockSlow, so that nothing here is kept
// for it.
func (t *Table) LockAt(s Hint, hash uint64, key string) (Record, State) {
	if s.p == nil {
		return t.lockSlow(hash, key)
	}
	if !t.plain {
		return t.lockKey(s, hash, key)
	}
	tag, step := tagOf(hash), 8*t.stride
	for at := s.at; ; {
		head := (*atomic.Uint64)(unsafe.Add(s.first, at))
		h := head.Load()
		if (h^tag)&^status == 0 {
			if h&locked == 0 && head.CompareAndSwap(h, h|locked) {
				return Record{s.p, head}, Found
			}
			return t.lockSlow(hash, key)
		}
		if h == 0 {
			return t.absent(s, hash, key)
		}
		if at += step; at == uint(s.state>>placesShift)*step {
			at = 0
		}
	}
}

// lockShort is LockAt for a key that is kept in its record.
func (t *Table) lockShort(s Hint, hash uint64, key string) (Record, State) {
	w0, w1 := shortKey(key)
	tag, step := tagOf(hash), 8*t.stride
	for at := s.at; ; {
		head := (*atomic.Uint64)(unsafe.Add(s.first, at))
		h := head.Load()
		if (h^tag)&^status == 0 {
			if h&locked != 0 || !head.CompareAndSwap(h, h|locked) {
				return t.lockSlow(hash, key)
			}
			r := Record{s.p, head}
			if w := r.keyWords(); w[0] == w0 && w[1] == w1 {
				return r, Found
			}
			head.Store(h)
		}
		if h == 0 {
			return t.absent(s, hash, key)
		}
		if at += step; at == uint(s.state>>placesShift)*step {
			at = 0
		}
	}
}

// lockKey is LockAt where the hash is not enough.
func (t *Table) lockKey(s Hint, hash uint64, key string) (Record, State) {
	if t.config.KeyWords != 0 && len(key) <= MaxShortKey {
		return t.lockShort(s, hash, key)
	}
	id := t.identify(key)
	tag, step := tagOf(hash), 8*t.stride
	for at := s.at; ; {
		head := (*atomic.Uint64)(unsafe.Add(s.first, at))
		h := head.Load()
		if (h^tag)&^status == 0 {
			if h&locked != 0 || !head.CompareAndSwap(h, h|locked) {
				return t.lockSlow(hash, key)
			}
			if r := (Record{s.p, head}); s.p.same(r, at/step, key, &id) {
				return r, Found
			}
			head.Store(h)
		}
		if h == 0 {
			return t.absent(s, hash, key)
		}
		if at += step; at == uint(s.state>>placesShift)*step {
			at = 0
		}
	}
}

// absent is Lock after no record was found from s.
func (t *Table) absent(s Hint, hash uint64, key string) (Record, State) {
	if s.p.state.Load() != s.state {
		return t.lockSlow(hash, key)
	}
	return Record{}, Absent
}

// lockSlow is Lock for a page that changes or has no places, and for a record
// that another has locked: it waits, and then looks again.
func (t *Table) lockSlow(hash uint64, key string) (Record, State) {
	p := t.page(hash)
	id := t.identify(key)
	for spins := 0; ; spins++ {
		r, state := p.try(hash, key, &id)
		if state != busy {
			return r, state
		}
		pause(spins)
	}
}

// busy is the State of a record that another has locked.
const busy State = 255

// try is Lock without waiting for the record, but for the page if that changes.
func (p *page) try(hash uint64, key string, id *identity) (Record, State) {
	state, v := p.state.Load(), p.view()
	if state&(changing|drained) != 0 || p.state.Load() != state {
		p.mu.Lock()
		defer p.mu.Unlock()
		i, state := p.find(hash, key, id)
		if state != Found {
			return Record{}, state
		}
		return Record{p, p.view().head(i)}, Found
	}
	if v.first == nil {
		return Record{}, Absent
	}
	tag := tagOf(hash)
	for i := p.t.home(tag, v.n); ; i = v.next(i) {
		r := Record{p, v.head(i)}
		h := r.head.Load()
		if (h^tag)&^status == 0 {
			if h&locked != 0 || !r.head.CompareAndSwap(h, h|locked) {
				return Record{}, busy
			}
			if p.t.plain || p.same(r, i, key, id) {
				return r, Found
			}
			r.Unlock()
		}
		if h == 0 && p.state.Load() == state {
			return Record{}, Absent
		}
		if h == 0 {
			return Record{}, busy
		}
	}
}

// find is Lock for who has the page. It returns the place of the record, or the
// empty one where the search ended.
//
// REQUIRES: p.mu.
func (p *page) find(hash uint64, key string, id *identity) (uint, State) {
	v := p.view()
	if v.first == nil {
		if p.state.Load()&drained != 0 {
			return 0, Moved
		}
		return 0, Absent
	}
	tag := tagOf(hash)
	for i := p.t.home(tag, v.n); ; i = v.next(i) {
		head := v.head(i)
		h := head.Load()
		if h == 0 {
			return i, Absent
		}
		if (h^tag)&^status == 0 {
			lockHead(head)
			r := Record{p, head}
			if p.t.plain || p.same(r, i, key, id) {
				return i, Found
			}
			r.Unlock()
		}
	}
}

// lockHead locks the record with that head, which is there to stay.
func lockHead(head *atomic.Uint64) {
	for spins := 0; ; spins++ {
		if h := head.Load(); h&locked == 0 && head.CompareAndSwap(h, h|locked) {
			return
		}
		pause(spins)
	}
}
