package keytable

import (
	"encoding/binary"
	"math"

	"github.com/lately-go/lately/internal/counting/snapshot"
)

// A Size is how much a Table holds: what another needs memory for that is to hold the
// same keys.
type Size struct {
	Keys  uint64
	Bytes uint64 // of the keys that are not in their records
}

// size returns the Size of t.
func (t *Table) size() (s Size) {
	for g := range t.lockedGroups() {
		s.Keys += uint64(g.n)
		s.Bytes += uint64(g.tail - g.dead)
	}
	return s
}

func (s Size) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, s.Keys), s.Bytes)
}

// ReadSize reads the Size at the end of the head of a chunk of [Table.Export].
func ReadSize(r *snapshot.Reader) Size { return Size{r.Uvarint(), r.Uvarint()} }

// reservedSweeps is how often the sweep passes over a group that was reserved: that is
// about how often it comes by while the keys are added for which there is memory.
const reservedSweeps = 2

// Reserve makes memory for s, so that no group has to grow and be split while so much
// is added. It does something only for a Table without keys, once, and only if s is
// within the budget. The sweep gives back later what has not been used.
func (t *Table) Reserve(s Size) {
	t.reserve.Do(func() {
		if t.Len() > 0 || s.Keys == 0 || s.Keys > math.MaxInt32 || s.Bytes/s.Keys > MaxKey+keyHead {
			return
		}
		depth, l := t.reservation(int64(s.Keys), int64((s.Bytes+s.Keys-1)/s.Keys))
		free := t.config.Budget.Limit() - t.config.Budget.Used() - t.config.Reserve
		if l.size<<depth > free {
			return
		}
		for g := range t.lockedGroups() {
			g.reserve(depth, l)
		}
	})
}

// reservation returns the depth and the layout of groups of at most full size for
// that many keys with that many bytes each. As hashes are spread at random, hardly any
// group gets more keys than the mean and four standard deviations.
func (t *Table) reservation(keys, bytes int64) (depth uint16, l layout) {
	for depth = headBits; ; depth++ {
		n := float64(keys) / float64(uint64(1)<<depth)
		most := int64(n+4*math.Sqrt(n)) + minRecords
		size := content{n: most, tail: most * bytes}.bytes(t)
		if size <= t.full || depth == 32 {
			return depth, t.layOut(groupBytes(max(size, t.least)), content{recent: int32(bytes * recentKeys)}, 0)
		}
	}
}

// reserve replaces g, if it has no records, by groups of that depth and layout.
func (g group) reserve(depth uint16, l layout) {
	t := g.t
	if g.n > 0 || g.depth > depth || g.depth == depth && int64(g.size) >= l.size ||
		!t.widen(depth) || !t.take(l.size<<(depth-g.depth)) {
		return
	}
	g.freeze()
	for i := range uint64(1) << (depth - g.depth) {
		to := t.newGroup(l, g.first|i<<(64-depth), depth)
		to.recent, to.reserved = g.recent, reservedSweeps
		t.publish(to.first, depth, to.header)
	}
	g.retire()
	t.config.Budget.Give(int64(g.size))
}
