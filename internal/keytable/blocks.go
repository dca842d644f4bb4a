package keytable

import (
	"math"
	"sort"
)

// MaxLog is the largest bound of a log of [Blocks].
const MaxLog = math.MaxUint16

// Blocks keeps bounded logs of times, one in some words of each record of a
// table: the last times added, oldest first. Times are added in ascending order.
// Zero words are an empty log.
//
// The first few times lie in the record. A log with more of them moves them all
// to a block of 8, 16, 32 ... up to bound times, so that a key that is seen a few
// times costs no more than its record. Blocks take their memory from a [Budget]
// by the chunk, and give it back when [Blocks.Gather] has emptied a chunk.
//
// A log's words are
//
//	word 0: class of the block (0: none, the times are here), 4 bits |
//	        whether a time was dropped that had not expired, 1 bit |
//	        block within the class, 27 bits | place of the oldest time, 16 bits |
//	        number of times, 16 bits
//	word 1: the oldest time
//	word 2…: the next ones; with a block, the newest time and nothing else
//
// The oldest time and the newest are in the record in either case: an event at
// which no time leaves the log, as one that a full log refuses, does not touch
// the block.
//
// A log's words are used by one goroutine at a time, its record being locked;
// the Blocks may be used by all of them at once.
type Blocks struct {
	bound, inline int
	classes       []blockClass
	view          bool // see View
}

const (
	logClassShift = 60
	logLost       = 1 << 59
	logBlockShift = 32
	logBlockMask  = maxBlocks - 1
	logHeadShift  = 16
	logHalf       = 1<<16 - 1
	leastBlock    = 8  // times in the smallest block
	manyExpired   = 16 // from here on, those still to go are found by bisection
)

// NewBlocks returns the storage of logs of at most bound times, 1 to [MaxLog],
// of which the first inline, at least two, lie in the record.
func NewBlocks(bound, inline int, budget *Budget) *Blocks {
	if bound < 1 || bound > MaxLog || inline < 2 {
		panic("shard: bound or inline of Blocks out of range")
	}
	b := &Blocks{bound: bound, inline: min(inline, bound)}
	if bound == b.inline {
		return b
	}
	var sizes []int
	// A block hardly smaller than the last one is not worth moving out of.
	for size := leastBlock; size+size/2 < bound; size *= 2 {
		if size > b.inline {
			sizes = append(sizes, size)
		}
	}
	sizes = append(sizes, bound)
	b.classes = make([]blockClass, len(sizes))
	for i, size := range sizes {
		b.classes[i].init(size, budget)
	}
	return b
}

// Words returns how many words of a record a log takes.
func (b *Blocks) Words() int { return 1 + b.inline }

// Bound returns the largest number of times a log of b holds.
func (b *Blocks) Bound() int { return b.bound }

// Len returns the number of times in the log l.
func (b *Blocks) Len(l []uint64) int { return int(l[0] & logHalf) }

// Lost reports whether l, being at its bound, has dropped a time for a newer
// one, and that time might still count. It is so until a time expires, because
// what was dropped was no newer than any that is left.
func (b *Blocks) Lost(l []uint64) bool { return l[0]&logLost != 0 }

// Lose says of l, unless it is empty, what Lost reports: it was made of another log
// that had dropped a time.
func (b *Blocks) Lose(l []uint64) {
	if b.Len(l) > 0 {
		l[0] |= logLost
	}
}

// At returns the i-th oldest time of l.
func (b *Blocks) At(l []uint64, i int) int64 {
	times := b.times(l)
	return int64(times[wrap(logHead(l)+i, len(times))])
}

// Newest returns the newest time of l, which is not empty.
func (b *Blocks) Newest(l []uint64) int64 {
	if l[0]>>logClassShift == 0 {
		return int64(l[l[0]&logHalf])
	}
	return int64(l[2])
}

// Room sees to it that n more times can be added to l, or as many as the bound
// allows if that is less. It reports false, and changes nothing, if that takes
// memory that the budget has not.
func (b *Blocks) Room(l []uint64, n int) bool {
	if b.view {
		return true
	}
	need := min(b.Len(l)+min(n, b.bound), b.bound)
	if class := l[0] >> logClassShift; need <= b.inline || class != 0 && need <= b.classes[class-1].words {
		return true
	}
	return b.grow(l, need)
}

// Fits is Room for n more times in the log l, which is empty, or for as many as there
// is memory for. It returns for how many. It tries each size of block once at most.
func (b *Blocks) Fits(l []uint64, n int) int {
	n = min(n, b.bound)
	for size := len(b.classes) - 1; !b.Room(l, n); {
		for size >= 0 && b.classes[size].words >= n {
			size--
		}
		if size < 0 {
			return b.inline // that is room without a block
		}
		n = b.classes[size].words
	}
	return n
}

// Push is Room for one and Add, and reports false if there is no room: at the
// bound, or for want of memory.
func (b *Blocks) Push(l []uint64, t int64) bool {
	h := l[0]
	n := int(h & logHalf)
	if h>>logClassShift == 0 && n < b.inline {
		l[1+n] = uint64(t)
		l[0]++
		return true
	}
	if n == b.bound || !b.Room(l, 1) {
		return false
	}
	b.Add(l, t)
	return true
}

// Add adds t, which is no earlier than the newest time of l. A log at its bound
// drops its oldest time for it, and so does one without room; call Room first.
func (b *Blocks) Add(l []uint64, t int64) {
	h := l[0]
	n := int(h & logHalf)
	if h>>logClassShift == 0 {
		if n < b.inline {
			l[1+n] = uint64(t)
			l[0]++
			return
		}
	} else if times := b.times(l); n < len(times) {
		times[wrap(logHead(l)+n, len(times))] = uint64(t)
		l[0]++
		l[2] = uint64(t)
		if n == 0 {
			l[1] = uint64(t)
		}
		return
	}
	if n < b.bound && b.grow(l, n+1) {
		b.times(l)[n] = uint64(t)
		l[0]++
		l[2] = uint64(t)
		return
	}
	b.replace(l, t)
}

// replace puts t in the place of the oldest time.
func (b *Blocks) replace(l []uint64, t int64) {
	times, n, head := b.times(l), b.Len(l), logHead(l)
	l[0] |= logLost
	if l[0]>>logClassShift == 0 {
		copy(times, times[1:])
		times[n-1] = uint64(t)
		return
	}
	times[head] = uint64(t)
	head = wrap(head+1, n)
	setLog(l, head, n)
	l[1], l[2] = times[head], uint64(t)
}

// Expire drops all times up to and including gone and returns how many are left.
func (b *Blocks) Expire(l []uint64, gone int64) int {
	if int64(l[1]) <= gone {
		b.expire(l, gone)
	}
	return int(l[0] & logHalf)
}

// expire is Expire when there may be something to drop.
func (b *Blocks) expire(l []uint64, gone int64) {
	if l[0]&logHalf == 0 { // the oldest time is that of before
		l[1] = math.MaxInt64
		return
	}
	times, n, head := b.times(l), b.Len(l), logHead(l)
	k, first := 1, wrap(head+1, len(times))
	for k < n && int64(times[first]) <= gone {
		if k++; k == manyExpired {
			k += sort.Search(n-k, func(i int) bool { return int64(times[wrap(head+k+i, len(times))]) > gone })
			first = wrap(head+k, len(times))
			break
		}
		first = wrap(first+1, len(times))
	}
	n -= k
	l[0] &^= logLost
	switch {
	case l[0]>>logClassShift == 0:
		copy(times, times[k:k+n])
		l[0] = uint64(n)
	case n <= 1: // the block is not worth keeping
		last := times[wrap(head+k+n-1, len(times))]
		b.Clear(l)
		if n == 1 {
			l[0], l[1] = 1, last
		}
	default:
		setLog(l, first, n)
		l[1] = times[first]
	}
}

// Remove takes up to n times that are equal to t out of l, and returns how many.
func (b *Blocks) Remove(l []uint64, t int64, n int) int {
	times, size, head := b.times(l), b.Len(l), logHead(l)
	at := func(i int) *uint64 { return &times[wrap(head+i, len(times))] }
	first := sort.Search(size, func(i int) bool { return int64(*at(i)) >= t })
	k := 0
	for k < n && first+k < size && int64(*at(first + k)) == t {
		k++
	}
	if k == 0 {
		return 0
	}
	if l[0]>>logClassShift == 0 || first > (size-k)/2 {
		for i := first; i < size-k; i++ {
			*at(i) = *at(i + k)
		}
	} else {
		for i := first - 1; i >= 0; i-- {
			*at(i + k) = *at(i)
		}
		head = wrap(head+k, len(times))
	}
	setLog(l, head, size-k)
	switch {
	case size == k:
		b.Clear(l)
	case l[0]>>logClassShift != 0:
		l[1], l[2] = times[head], times[wrap(head+size-k-1, len(times))]
	}
	return k
}

// Clear empties l and gives its block back.
func (b *Blocks) Clear(l []uint64) {
	if class := l[0] >> logClassShift; class != 0 && !b.view {
		b.classes[class-1].give(logBlock(l))
	}
	l[0] = 0
}

// Gather moves the block of l, if it has one, to where others are, if that may give
// memory back to the budget. Call it for the records of a table from time to time
// while many of its records go.
func (b *Blocks) Gather(l []uint64) {
	class := l[0] >> logClassShift
	if class == 0 {
		return
	}
	if c := &b.classes[class-1]; c.loose.Load() {
		l[0] = l[0]&^(logBlockMask<<logBlockShift) | uint64(c.gather(logBlock(l)))<<logBlockShift
	}
}

// View returns the same Blocks for copies of logs: to drop times from a copy
// then leaves the log that it was made from as it is. Nothing may be added to a
// copy, and the log must not change meanwhile.
func (b *Blocks) View() *Blocks {
	return &Blocks{bound: b.bound, inline: b.inline, classes: b.classes, view: true}
}

// times returns the places of l's times.
func (b *Blocks) times(l []uint64) []uint64 {
	if class := l[0] >> logClassShift; class != 0 {
		return b.classes[class-1].at(logBlock(l))
	}
	return l[1 : 1+b.inline : 1+b.inline]
}

// grow moves l to a block for at least need times, oldest first.
func (b *Blocks) grow(l []uint64, need int) bool {
	class := int(l[0] >> logClassShift)
	for b.classes[class].words < need {
		class++
	}
	block, ok := b.classes[class].take()
	if !ok {
		return false
	}
	from, to := b.times(l), b.classes[class].at(block)
	n, head := b.Len(l), logHead(l)
	k := copy(to[:n], from[head:])
	copy(to[k:n], from)
	if n > 0 {
		l[2] = to[n-1]
	}
	if old := l[0] >> logClassShift; old != 0 {
		b.classes[old-1].give(logBlock(l))
	}
	l[0] = uint64(class+1)<<logClassShift | l[0]&logLost | uint64(block)<<logBlockShift | uint64(n)
	return true
}

func logBlock(l []uint64) uint32 { return uint32(l[0]>>logBlockShift) & logBlockMask }

func logHead(l []uint64) int { return int(l[0] >> logHeadShift & logHalf) }

func setLog(l []uint64, head, n int) {
	l[0] = l[0]>>logBlockShift<<logBlockShift | uint64(head)<<logHeadShift | uint64(n)
}
