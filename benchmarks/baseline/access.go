package baseline

import (
	"sync/atomic"
	"time"
)

// Access is the lock-free ring of a recent-access counter (O2): whoever moves
// the last-write slot on clears the slots that have expired. Adds between the
// move and the clearing are lost, and a late writer moves it back, so that the
// next one clears the current slot again.
type Access struct {
	width time.Duration
	cells []atomic.Int64
	last  atomic.Int64 // slot of the last write
}

// NewAccess returns a window of that many slots.
func NewAccess(slots int, width time.Duration) *Access {
	return &Access{width: width, cells: make([]atomic.Int64, slots)}
}

// Add counts one event.
func (a *Access) Add() {
	slot, last := slotAt(a.width), a.last.Load()
	if slot != last && a.last.CompareAndSwap(last, slot) {
		for s := max(last, slot-int64(len(a.cells))) + 1; s <= slot; s++ {
			a.cells[at(s, len(a.cells))].Store(0)
		}
	}
	a.cells[at(slot, len(a.cells))].Add(1)
}

// Sum returns the sum of the slots that have not expired.
func (a *Access) Sum() (sum uint64) {
	slot, last := slotAt(a.width), a.last.Load()
	for s := slot - int64(len(a.cells)) + 1; s <= last; s++ {
		sum += uint64(a.cells[at(s, len(a.cells))].Load())
	}
	return sum
}
