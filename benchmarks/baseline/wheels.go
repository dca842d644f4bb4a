package baseline

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// segments is how many locks a SegmentWheel has.
const segments = 16

// A SegmentWheel is a Wheel whose slots share sixteen locks, to save memory.
type SegmentWheel struct {
	width time.Duration
	locks [segments]sync.RWMutex
	cells []struct{ stamp, value int64 }
}

// NewSegmentWheel returns a window of that many slots.
func NewSegmentWheel(slots int, width time.Duration) *SegmentWheel {
	return &SegmentWheel{width: width, cells: make([]struct{ stamp, value int64 }, slots)}
}

// Add counts one event, with two readings of the clock as Wheel.
func (w *SegmentWheel) Add() {
	i := at(slotAt(w.width), len(w.cells))
	c, l, slot := &w.cells[i], &w.locks[i%segments], slotAt(w.width)
	l.Lock()
	defer l.Unlock()
	if c.stamp != slot {
		c.stamp, c.value = slot, 0
	}
	c.value++
}

// Sum returns the sum of the slots whose stamps have not expired.
func (w *SegmentWheel) Sum() (sum uint64) {
	oldest := slotAt(w.width) - int64(len(w.cells))
	for i := range w.cells {
		l := &w.locks[i%segments]
		l.RLock()
		if c := &w.cells[i]; c.stamp > oldest {
			sum += uint64(c.value)
		}
		l.RUnlock()
	}
	return sum
}

// A FreeWheel is the Wheel's lock-free variant: who swaps in the new stamp sets
// the value to zero. Adds between these two steps are lost.
type FreeWheel struct {
	width time.Duration
	cells []struct{ stamp, value atomic.Int64 }
}

// NewFreeWheel returns a window of that many slots.
func NewFreeWheel(slots int, width time.Duration) *FreeWheel {
	return &FreeWheel{width: width, cells: make([]struct{ stamp, value atomic.Int64 }, slots)}
}

// Add counts one event.
func (w *FreeWheel) Add() { w.add(1) }

func (w *FreeWheel) add(n int64) {
	slot := slotAt(w.width)
	c := &w.cells[at(slot, len(w.cells))]
	if old := c.stamp.Load(); old != slot && c.stamp.CompareAndSwap(old, slot) {
		c.value.Store(0)
	}
	c.value.Add(n)
}

// Sum returns the sum of the slots whose stamps have not expired.
func (w *FreeWheel) Sum() (sum uint64) {
	oldest := slotAt(w.width) - int64(len(w.cells))
	for i := range w.cells {
		if c := &w.cells[i]; c.stamp.Load() > oldest {
			sum += uint64(c.value.Load())
		}
	}
	return sum
}

// A SamplingWheel counts one event in sixteen, as sixteen.
type SamplingWheel struct{ FreeWheel }

// sampled is how many events one counted event stands for.
const sampled = 16

// NewSamplingWheel returns a window of that many slots.
func NewSamplingWheel(slots int, width time.Duration) *SamplingWheel {
	return &SamplingWheel{*NewFreeWheel(slots, width)}
}

// Add counts one event with a chance of one in sixteen; only then does it read
// the clock.
func (w *SamplingWheel) Add() {
	if rand.Uint32()%sampled == 0 {
		w.add(sampled)
	}
}
