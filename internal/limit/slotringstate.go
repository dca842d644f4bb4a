package limit

import (
	"encoding/binary"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// appendState appends how many slots the oldest is before the newest, and 1, how
// many the newest is before that of t, and the counts from the newest on.
func (r *slotRing) appendState(dst []byte, h []uint64, b *keytable.Blocks, t int64) []byte {
	c := b.Block(h)
	oldest := r.back(h)
	dst = binary.AppendUvarint(dst, uint64(oldest)+1)
	dst = binary.AppendUvarint(dst, uint64(r.number(t)-r.slot(h, 0)))
	for back := range oldest + 1 {
		dst = binary.AppendUvarint(dst, r.count(h, c, back))
	}
	return dst
}

// readSlots reads what appendState has appended after its first number. oldest is
// how many slots the oldest is before the newest.
func (r *slotRing) readSlots(d *snapshot.Reader, h, c []uint64, oldest, t, now int64) {
	newest := r.number(t) - int64(d.UpTo(snapshot.MaxPast/uint64(r.width)))
	last := min(newest, r.number(now)) // what is later counts there
	back := last - min(newest-oldest, last)
	clear(c)
	h[ringPlace] = h[ringPlace]&^ringPending | ringNewestEmpty
	r.setPlace(h, back, back) // the oldest is at 0
	h[ringEnd] = uint64((last + 1) * r.width)
	h[ringSum] = 0
	for k := newest; k >= newest-oldest; k-- {
		count := d.UpTo(r.full)
		word, shift := r.place(h, last-min(k, last))
		count = min(count, r.full-c[word]>>shift&r.full)
		c[word] += count << shift
		h[ringSum] += count
	}
	if h[ringSum] == 0 {
		d.Fail()
		return
	}
	r.trim(h, c, back)
	if r.count(h, c, 0) > 0 {
		h[ringPlace] &^= ringNewestEmpty
	}
}
