package sketch

// A cell is one counter of a row: how much its keys were charged with in each
// of its newest panes. It lies in a few words:
//
//	| newest pane, 48 bits | count | count | ...
//
// with the count of pane k in place k mod places. A cell that was never charged
// has pane 0.
//
// cell is the layout, the words are the part's.
type cell struct {
	words  int   // of a cell
	places int64 // panes that a cell knows
	bits   uint  // of a count
	first  uint  // the bit that the counts begin at
}

const (
	paneBits = 48
	paneMask = 1<<paneBits - 1

	// paneBias makes the numbers of panes positive. With panes of 2^16
	// nanoseconds or more, as in a span of 1 ms or more, 48 bits are enough for all
	// times.
	paneBias = 1 << (paneBits - 1)
)

// cellFor returns the layout that counts up to n, and at least one more, as
// the largest count means endless.
func cellFor(n uint64) cell {
	switch {
	case n < 1<<8-1:
		return cell{words: 2, places: 10, bits: 8, first: paneBits}
	case n < 1<<16-1:
		return cell{words: 4, places: 13, bits: 16, first: paneBits}
	}
	return cell{words: 8, places: 14, bits: 32, first: 64}
}

// most is the largest count, which stands for all that do not fit.
func (c *cell) most() uint64 { return 1<<c.bits - 1 }

// newest returns the newest pane that the cell w has.
func newest(w []uint64) int64 { return int64(w[0] & paneMask) }

// bit returns where a pane's count begins.
func (c *cell) bit(pane int64) uint { return c.first + uint(pane%c.places)*c.bits }

// before returns where the count of the pane before that at bit begins.
func (c *cell) before(bit uint) uint {
	if bit == c.first {
		bit += uint(c.places) * c.bits
	}
	return bit - c.bits
}

// count returns the count at bit.
func (c *cell) count(w []uint64, bit uint) uint64 { return w[bit>>6] >> (bit & 63) & c.most() }

// raise makes the count at bit at least n.
func (c *cell) raise(w []uint64, bit uint, n uint64) {
	if c.count(w, bit) < n {
		w[bit>>6] = w[bit>>6]&^(c.most()<<(bit&63)) | n<<(bit&63)
	}
}

// age makes pane the newest of w, if it is newer, and clears the counts of the panes
// between.
func (c *cell) age(w []uint64, pane int64) {
	last := newest(w)
	if pane <= last {
		return
	}
	if pane-last >= c.places {
		clear(w)
	} else {
		for bit, n := c.bit(pane), pane-last; n > 0; bit, n = c.before(bit), n-1 {
			w[bit>>6] &^= c.most() << (bit & 63)
		}
	}
	w[0] = w[0]&^paneMask | uint64(pane)
}
