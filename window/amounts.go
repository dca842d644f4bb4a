package window

import (
	"math"
	"math/bits"

	"github.com/lately-go/lately/internal/counting/ring"
)

// amounts are the slots of one or several sums over one window: of a [Sums], or of one
// span of a [Rollup]. A slot is found by its number; a position is cleared when the
// window moves on to the slot that takes it. The owner holds a mutex.
type amounts struct {
	width, slots int64
	mask         int64     // of a position in a ring
	newest       int64     // slot, or noSlot
	sums         [][]int64 // rings of slots+1 cells, rounded up to a power of two
}

const (
	maxSlotSum = 1<<62 - 1

	// noSlot is the newest slot of amounts that nothing was added to. It is below
	// every slot: a slot is at least 10 ns wide.
	noSlot = math.MinInt64 / 2
)

// newAmounts returns n sums over the window w, which is checked.
func newAmounts(w Window, n int) amounts {
	a := amounts{width: int64(w.Slot), slots: int64(w.Span / w.Slot), newest: noSlot, sums: make([][]int64, n)}
	size := ring.Size(int(a.slots))
	a.mask = int64(size - 1)
	for i := range a.sums {
		a.sums[i] = make([]int64, size)
	}
	return a
}

// slot returns the number of the slot that t lies in.
func (a *amounts) slot(t int64) int64 {
	if a.newest != noSlot && uint64(t-a.newest*a.width) < uint64(a.width) { // spares the division
		return a.newest
	}
	return ring.FloorDiv(t, a.width)
}

// keeps reports whether a slot is in the window, or is the partly expired one before it.
func (a *amounts) keeps(slot int64) bool { return slot >= a.newest-a.slots }

// end returns the end of the newest slot.
func (a *amounts) end() int64 { return (a.newest + 1) * a.width }

// advance moves the window on to slot, if that is ahead.
func (a *amounts) advance(slot int64) {
	if slot <= a.newest {
		return
	}
	for n := max(a.newest, slot-a.mask-1) + 1; n <= slot; n++ {
		for _, cells := range a.sums {
			cells[n&a.mask] = 0
		}
	}
	a.newest = slot
}

// add adds n to sum i in a slot that is kept, and moves the window on to it. It reports
// whether n fitted.
func (a *amounts) add(i int, slot, n int64) bool {
	cell := &a.sums[i][slot&a.mask] // panics here if i is out of range, before anything has moved
	a.advance(slot)
	switch v := *cell; {
	case n > 0 && n > maxSlotSum-v:
		*cell = maxSlotSum
		return false
	case n < 0 && n < -maxSlotSum-v:
		*cell = -maxSlotSum
		return false
	}
	*cell += n
	return true
}

// slotRange is what a read adds up: the slots first to last, and the slot before
// first if it is cut by the edge of the window.
type slotRange struct {
	first, last int64
	cut         bool
}

// in returns the slots of the last span at t.
func (a *amounts) in(t, span int64) slotRange {
	last := a.slot(t)
	first, cut := last-a.slots+1, t != last*a.width+a.width-1
	if span != a.slots*a.width {
		first, cut = ring.Oldest(t, span, a.width)
	}
	return slotRange{first, last, cut}
}

// sum adds up sum i of the slots of r.
func (a *amounts) sum(i int, r slotRange) int64 { return a.add128(i, r).nearest() }

// bounds returns the sums of sum i without and with the slot that is cut.
func (a *amounts) bounds(i int, r slotRange) (without, with int64) {
	total := a.add128(i, r)
	without = total.nearest()
	if cut := r.first - 1; r.cut && a.keeps(cut) && cut <= a.newest {
		total.add(a.sums[i][cut&a.mask])
	}
	return without, total.nearest()
}

// add128 adds up sum i over the slots of r that are kept.
func (a *amounts) add128(i int, r slotRange) int128 {
	cells := a.sums[i]
	mask := uint64(len(cells) - 1)
	first, last := max(r.first, a.newest-a.slots), min(r.last, a.newest)
	upper, lower, carry := int64(0), uint64(0), uint64(0) // in registers
	for slot := first; slot <= last; slot++ {
		n := cells[uint64(slot)&mask]
		lower, carry = bits.Add64(lower, uint64(n), 0)
		upper += n>>63 + int64(carry)
	}
	return int128{upper, lower}
}

// An int128 is a sum that does not overflow.
type int128 struct {
	upper int64
	lower uint64
}

func (x *int128) add(n int64) {
	lower, carry := bits.Add64(x.lower, uint64(n), 0)
	x.lower, x.upper = lower, x.upper+n>>63+int64(carry)
}

// nearest returns x, or the nearest int64.
func (x int128) nearest() int64 {
	switch {
	case x.upper == int64(x.lower)>>63:
		return int64(x.lower)
	case x.upper < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}
