package baseline

import (
	"sync"
	"time"
)

// Ticks is the window of counting periods in a circular array (O5), under a
// lock: a period is known by its absolute tick, and a jump clears those between.
type Ticks struct {
	mu     sync.Mutex
	period int64
	cells  []int64
	head   int64 // tick of the newest period
}

// NewTicks returns a window of that many periods.
func NewTicks(slots int, period time.Duration) *Ticks {
	return &Ticks{period: int64(period), cells: make([]int64, slots)}
}

// Add counts one event now.
func (w *Ticks) Add() { w.AddAt(time.Now().UnixNano(), 1) }

// AddAt counts n events at t, which is not before the newest period.
func (w *Ticks) AddAt(t, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moveTo(t / w.period)
	w.cells[at(w.head, len(w.cells))] += n
}

// Sum returns the sum of the periods of the window that ends now.
func (w *Ticks) Sum() (sum uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moveTo(time.Now().UnixNano() / w.period)
	for _, n := range w.cells {
		sum += uint64(n)
	}
	return sum
}

func (w *Ticks) moveTo(tick int64) {
	for i := max(w.head, tick-int64(len(w.cells))) + 1; i <= tick; i++ {
		w.cells[at(i, len(w.cells))] = 0
	}
	w.head = max(w.head, tick)
}
