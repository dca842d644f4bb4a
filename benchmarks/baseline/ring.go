package baseline

import (
	"sync"
	"time"
)

// A Ring is the window of JD's hotkey workers (O1): twice as many slots as the
// window, under one lock. Each add clears the half ahead of the current slot,
// and adds up the half behind it.
type Ring struct {
	mu    sync.Mutex
	width time.Duration
	slots int
	cells []int64 // 2 * slots
	last  int64   // slot of the last add
}

// NewRing returns a window of that many slots.
func NewRing(slots int, width time.Duration) *Ring {
	return &Ring{width: width, slots: slots, cells: make([]int64, 2*slots)}
}

// Add counts one event and returns the sum.
func (r *Ring) Add() int64 { return r.add(1) }

// Sum returns the sum of the current slot and those before it.
func (r *Ring) Sum() uint64 { return uint64(r.add(0)) }

func (r *Ring) add(n int64) (sum int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := slotAt(r.width)
	if slot-r.last > int64(r.slots) {
		clear(r.cells)
	}
	r.last = slot
	for i := range r.slots {
		r.cells[at(slot+1+int64(i), len(r.cells))] = 0
	}
	r.cells[at(slot, len(r.cells))] += n
	for i := range r.slots {
		sum += r.cells[at(slot-int64(i), len(r.cells))]
	}
	return sum
}
