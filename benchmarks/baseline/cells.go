package baseline

import (
	"sync"
	"time"
)

// Cells is the counting window by period and length (O4), under a lock: the
// total of the finished cells is kept, the current cell apart. Time moves only
// when something is added.
type Cells struct {
	mu      sync.Mutex
	period  int64
	cells   []int64 // finished ones
	number  int64   // of the current cell
	current int64
	total   int64 // of cells
}

// NewCells returns a window of that many periods.
func NewCells(slots int, period time.Duration) *Cells {
	return &Cells{period: int64(period), cells: make([]int64, slots)}
}

// Add counts one event now.
func (c *Cells) Add() { c.AddAt(time.Now().UnixNano(), 1) }

// AddAt counts n events at t and returns the total of the finished cells.
func (c *Cells) AddAt(t, n int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if number := t / c.period; number > c.number {
		c.moveTo(number)
	}
	c.current += n
	return c.total
}

func (c *Cells) moveTo(number int64) {
	c.finish(c.number, c.current)
	for i := max(c.number+1, number-int64(len(c.cells))); i < number; i++ {
		c.finish(i, 0)
	}
	c.number, c.current = number, 0
}

func (c *Cells) finish(number, count int64) {
	i := at(number, len(c.cells))
	c.total += count - c.cells[i]
	c.cells[i] = count
}

// Sum returns the total of the cells that were finished at the last add: it is
// stale when nothing is added.
func (c *Cells) Sum() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(c.total)
}
