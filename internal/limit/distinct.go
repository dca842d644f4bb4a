package limit

import (
	"encoding/binary"
	"sort"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/counting/snapshot"
)

// distinct is the window of [Config.Distinct]: n values, each once, at the time at which
// it came last.
//
// It is a list of the Blocks, oldest first, with two words for each value: the time and
// the value. One that has left the window is only removed when the next one comes, so that
// a copy of a record, which shares the list, can be read at any time. A value that comes
// costs a walk over the list.
type distinct struct {
	n    uint64
	span int64
}

// inlineValues is how many values lie in the record. Most keys have one.
const inlineValues = 2

func newDistinct(c *Config) window { return &distinct{n: c.N, span: int64(c.Span)} }

func (d *distinct) words() int { return 1 + 2*min(inlineValues, int(d.n)) }

func (d *distinct) blocks(budget *keytable.Budget) *keytable.Blocks {
	return keytable.NewBlocks(2*int(d.n), 2*inlineValues, budget)
}

// live returns what is in the window.
func (d *distinct) live(w []uint64, b *keytable.Blocks, t int64) []uint64 {
	list := b.List(w)
	gone := sort.Search(len(list)/2, func(i int) bool { return int64(list[2*i]) > t-d.span })
	return list[2*gone:]
}

// has reports whether value is in the window.
func (d *distinct) has(w []uint64, b *keytable.Blocks, t int64, value uint64) bool {
	live := d.live(w, b, t)
	for i := 1; i < len(live); i += 2 {
		if live[i] == value {
			return true
		}
	}
	return false
}

// count counts value at t, which is no earlier than the newest time. It reports false if
// the budget has no memory for it. A full list drops its oldest value.
func (d *distinct) count(w []uint64, b *keytable.Blocks, t int64, value uint64) bool {
	live := d.live(w, b, t)
	kept := b.List(w)[:0]
	for i := 0; i < len(live); i += 2 {
		if live[i+1] != value {
			kept = append(kept, live[i], live[i+1])
		}
	}
	if len(kept) == 2*int(d.n) {
		kept = kept[:copy(kept, kept[2:])]
	}
	b.Truncate(w, len(kept))
	return b.Append(w, uint64(t), value)
}

func (d *distinct) advance(w []uint64, b *keytable.Blocks, t int64) uint64 { return d.used(w, b, t) }

func (d *distinct) used(w []uint64, b *keytable.Blocks, t int64) uint64 {
	return uint64(len(d.live(w, b, t)) / 2)
}

// What has no value is not counted, and so not given back.
func (d *distinct) charge([]uint64, *keytable.Blocks, int64, uint64)               {}
func (d *distinct) refund([]uint64, *keytable.Blocks, int64, int64, uint64) uint64 { return 0 }
func (d *distinct) refundOldest([]uint64, *keytable.Blocks, int64, uint64) uint64  { return 0 }

func (d *distinct) until(w []uint64, b *keytable.Blocks, t int64, used, most uint64) int64 {
	return int64(d.live(w, b, t)[2*(used-most-1)]) + d.span
}

func (d *distinct) each(w []uint64, b *keytable.Blocks, t int64, yield func(int64, uint64) bool) {
	live := d.live(w, b, t)
	for i := 0; i < len(live) && yield(int64(live[i]), 1); i += 2 {
	}
}

// carry makes w hold the newest values of fw, of another list, that are in the window of
// both at t, as many as there is memory for.
func (d *distinct) carry(w []uint64, b *keytable.Blocks, from *distinct, fw []uint64, fb *keytable.Blocks, t int64) {
	live := from.live(fw, fb, t)
	for len(live) > 0 && (int64(live[0]) <= t-d.span || len(live) > 2*int(d.n)) {
		live = live[2:]
	}
	for len(live) > 0 && b.Append(w, live[0], live[1]) {
		live = live[2:]
	}
}

// appendState appends the number of values, and from the oldest on how long before t each
// came, and the value.
func (d *distinct) appendState(dst []byte, w []uint64, b *keytable.Blocks, t int64) []byte {
	live := d.live(w, b, t)
	dst = binary.AppendUvarint(dst, uint64(len(live)/2))
	for i := 0; i < len(live); i += 2 {
		dst = binary.AppendUvarint(dst, uint64(t)-live[i])
		dst = binary.LittleEndian.AppendUint64(dst, live[i+1])
	}
	return dst
}

func (d *distinct) readState(r *snapshot.Reader, w []uint64, b *keytable.Blocks, t, now int64) {
	last := uint64(snapshot.MaxPast)
	for n := r.UpTo(d.n); n > 0; n-- {
		last = r.UpTo(last)
		value := r.Next(8)
		if r.Failed() || !b.Append(w, uint64(min(t-int64(last), now)), binary.LittleEndian.Uint64(value)) {
			r.Fail()
			return
		}
	}
}

// HasValue reports whether value is counted at t. It is for [Config.Distinct].
func (m *Counter) HasValue(w []uint64, b *keytable.Blocks, t int64, value uint64) bool {
	d, ok := m.window.(*distinct)
	return ok && d.has(w, b, t, value)
}

// CountValue counts value at t, which is no earlier than the newest time, instead of
// when it came before. It reports false if the budget has no memory for it.
func (m *Counter) CountValue(w []uint64, b *keytable.Blocks, t int64, value uint64) bool {
	d, ok := m.window.(*distinct)
	return ok && d.count(w, b, t, value)
}
