package limit

import (
	"github.com/lately-go/lately/internal/keytable"
	"github.com/lately-go/lately/internal/snapshot"
)

// weighted is the window of Weighted: a slotRing whose head and counts are in the
// record, with the oldest slot weighed.
type weighted struct {
	ring slotRing
}

func newWeighted(c *Config) window {
	r := newSlotRing(c)
	r.weighted = true
	return &weighted{r}
}

func (r *weighted) words() int { return ringHead + r.ring.countWords() }

func (r *weighted) advance(w []uint64, _ *keytable.Blocks, t int64) uint64 {
	return r.ring.advance(w, w[ringHead:], t)
}

func (r *weighted) used(w []uint64, _ *keytable.Blocks, t int64) uint64 {
	return r.ring.used(w, w[ringHead:], t)
}

func (r *weighted) charge(w []uint64, _ *keytable.Blocks, t int64, cost uint64) {
	r.ring.charge(w, w[ringHead:], t, cost)
}

func (r *weighted) refund(w []uint64, _ *keytable.Blocks, _, at int64, cost uint64) uint64 {
	return r.ring.refund(w, w[ringHead:], at, cost)
}

func (r *weighted) refundOldest(w []uint64, _ *keytable.Blocks, _ int64, cost uint64) uint64 {
	return r.ring.refundOldest(w, w[ringHead:], cost)
}

func (r *weighted) until(w []uint64, _ *keytable.Blocks, _ int64, _, most uint64) int64 {
	return r.ring.until(w, w[ringHead:], most)
}

func (r *weighted) each(w []uint64, _ *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	r.ring.each(w, w[ringHead:], t, yield)
}

func (r *weighted) appendState(dst []byte, w []uint64, _ *keytable.Blocks, t int64) []byte {
	return r.ring.appendState(dst, w, w[ringHead:], t)
}

func (r *weighted) readState(d *snapshot.Reader, w []uint64, _ *keytable.Blocks, t, now int64) {
	if k := d.UpTo(uint64(r.ring.size)); k > 0 {
		r.ring.readState(d, w, w[ringHead:], int64(k)-1, t, now)
	}
}
