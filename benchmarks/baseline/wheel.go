package baseline

import (
	"sync"
	"time"
)

// A Wheel is the time wheel (O3): a stamp, a value and a lock in each slot. It
// reads the clock twice, to find the slot and to stamp it; if the slot turns in
// between, the slot before gets the new stamp and loses its count.
type Wheel struct {
	width time.Duration
	once  bool // read the clock once: what is left of the loss then?
	cells []lockedCell
}

type lockedCell struct {
	mu    sync.RWMutex
	stamp int64
	value int64
}

// NewWheel returns a window of that many slots.
func NewWheel(slots int, width time.Duration) *Wheel {
	return &Wheel{width: width, cells: make([]lockedCell, slots)}
}

// NewRepairedWheel returns a Wheel that reads the clock once.
func NewRepairedWheel(slots int, width time.Duration) *Wheel {
	w := NewWheel(slots, width)
	w.once = true
	return w
}

// Add counts one event.
func (w *Wheel) Add() {
	slot := slotAt(w.width)
	c := &w.cells[at(slot, len(w.cells))]
	if w.once {
		c.add(slot)
		return
	}
	c.add(slotAt(w.width))
}

func (c *lockedCell) add(slot int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stamp != slot {
		c.stamp, c.value = slot, 0
	}
	c.value++
}

// Sum returns the sum of the slots whose stamps have not expired.
func (w *Wheel) Sum() (sum uint64) {
	slot := slotAt(w.width)
	for i := range w.cells {
		sum += w.cells[i].since(slot - int64(len(w.cells)))
	}
	return sum
}

func (c *lockedCell) since(slot int64) uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.stamp <= slot {
		return 0
	}
	return uint64(c.value)
}

// A PaddedWheel is a Wheel with each slot on two cache lines of its own.
type PaddedWheel struct {
	width time.Duration
	cells []paddedCell
}

type paddedCell struct {
	lockedCell
	_ [128 - 40]byte
}

// NewPaddedWheel returns a window of that many slots.
func NewPaddedWheel(slots int, width time.Duration) *PaddedWheel {
	return &PaddedWheel{width: width, cells: make([]paddedCell, slots)}
}

// Add counts one event, with two readings of the clock as Wheel.
func (w *PaddedWheel) Add() {
	c := &w.cells[at(slotAt(w.width), len(w.cells))]
	c.add(slotAt(w.width))
}

// Sum returns the sum of the slots whose stamps have not expired.
func (w *PaddedWheel) Sum() (sum uint64) {
	slot := slotAt(w.width)
	for i := range w.cells {
		sum += w.cells[i].since(slot - int64(len(w.cells)))
	}
	return sum
}
