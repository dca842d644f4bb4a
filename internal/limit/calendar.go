package limit

import (
	"sync/atomic"
	"time"
)

// calendar is the window of Calendar in a record: the end of the period, and its
// count, which saturates. The zone is asked when a key's first event of a period
// is counted, and answers once for all keys.
type calendar struct {
	period Period
	zone   *time.Location
	latest atomic.Pointer[interval]
}

// An interval is [start, end).
type interval struct{ start, end int64 }

func (c *calendar) advance(w []uint64, t int64) uint64 {
	if w[1] != 0 && t >= int64(w[0]) {
		w[1] = 0
	}
	return w[1]
}

func (c *calendar) charge(w []uint64, t int64, cost uint64) {
	if w[1] == 0 {
		w[0] = uint64(c.of(t).end)
	}
	w[1] = addSaturated(w[1], cost)
}

func (c *calendar) refund(w []uint64, at int64, cost uint64) uint64 {
	if w[1] == 0 || at < c.of(int64(w[0])-1).start {
		return 0
	}
	return takeBack(&w[1], cost)
}

func (c *calendar) until(w []uint64) int64 { return int64(w[0]) }

// of returns the period of t.
func (c *calendar) of(t int64) *interval {
	if i := c.latest.Load(); i != nil && i.start <= t && t < i.end {
		return i
	}
	start, end := c.period.bounds(t, c.zone)
	i := &interval{start, end}
	c.latest.Store(i)
	return i
}
