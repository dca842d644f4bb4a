package keytable

import (
	"sync/atomic"
	"unsafe"
)

// Has reports whether a key with that hash has a record, without waiting for who
// has locked it. It may be true for a key that has none, while its page changes
// or if all 64 bits of another key's hash are the same; false is certain.
func (t *Table) Has(hash uint64) bool {
	p := t.page(hash)
	state := p.state.Load()
	first := unsafe.Pointer(p.first.Load())
	if state&(changing|drained) != 0 || p.state.Load() != state {
		return true
	}
	places := uint(state >> placesShift)
	if places == 0 {
		return false
	}
	tag := tagOf(hash)
	for i := t.home(tag, places); ; {
		h := (*atomic.Uint64)(unsafe.Add(first, 8*i*t.stride)).Load()
		if h == 0 {
			return p.state.Load() != state
		}
		if (h^tag)&^status == 0 {
			return true
		}
		if i++; i == places {
			i = 0
		}
	}
}
