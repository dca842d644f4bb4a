package limit

import (
	"cmp"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// calendar is the window of Calendar. The zone is asked when a key's first event of a
// period is counted, and answers once for all keys.
type calendar struct {
	period
	unit   Period
	zone   *time.Location
	latest atomic.Pointer[interval]
}

// An interval is [start, end).
type interval struct{ start, end int64 }

func newCalendar(c *Config) window {
	return &calendar{unit: c.Period, zone: cmp.Or(c.Zone, time.UTC)}
}

func (c *calendar) charge(w []uint64, _ *keytable.Blocks, t int64, cost uint64) {
	if w[1] == 0 {
		w[0] = uint64(c.of(t).end)
	}
	w[1] = addSaturated(w[1], cost)
}

func (c *calendar) refund(w []uint64, _ *keytable.Blocks, _, at int64, cost uint64) uint64 {
	if w[1] == 0 || at < c.of(int64(w[0])-1).start {
		return 0
	}
	return takeBack(&w[1], cost)
}

// of returns the period of t.
func (c *calendar) of(t int64) *interval {
	if i := c.latest.Load(); i != nil && i.start <= t && t < i.end {
		return i
	}
	start, end := c.unit.Bounds(t, c.zone)
	i := &interval{start, end}
	c.latest.Store(i)
	return i
}

// longestPeriod bounds the length of a period, in nanoseconds.
const longestPeriod = 35 * 24 * 3600e9

// appendState appends the count, and how long after t the period ends.
func (c *calendar) appendState(dst []byte, w []uint64, _ *keytable.Blocks, t int64) []byte {
	dst = binary.AppendUvarint(dst, w[1])
	return binary.AppendVarint(dst, int64(w[0])-t)
}

func (c *calendar) readState(r *snapshot.Reader, w []uint64, _ *keytable.Blocks, t, now int64) {
	count := r.Uvarint()
	if count == 0 {
		return
	}
	left := r.Varint()
	if left > longestPeriod || left < -snapshot.MaxPast {
		r.Fail()
		return
	}
	end := t + left
	if now < t { // the clock was set back, perhaps over the beginning of the period
		end = min(end, c.of(now).end)
	}
	w[0], w[1] = uint64(end), count
}
