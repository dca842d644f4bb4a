package keytable

// LogWords is how many words of a record a [Log] takes.
const LogWords = 2

// A Log is a bounded log of times in a record's two words: the last times
// added, oldest first, at most the bound of its [Logs]. Times are added in
// ascending order. Two zero words are an empty log.
//
// The log starts small and doubles as it fills, so a key that is seen a few
// times costs a few words whatever the bound.
//
//	word 0: storage class + 1 (0: none yet) <<32 | block within the class
//	word 1: position of the oldest time     <<32 | number of times
type Log []uint64

// Len returns the number of times in l.
func (l Log) Len() int { return int(uint32(l[1])) }

func (l Log) head() int { return int(l[1] >> 32) }

func (l Log) set(head, n int) { l[1] = uint64(head)<<32 | uint64(n) }

// Logs stores the times of one log of each record of a shard, under the
// shard's lock.
type Logs struct {
	bound   int
	classes []logClass
	bytes   int64 // of slabs
}

// A logClass holds blocks of one capacity. A block left by a log that outgrew
// it is used again.
type logClass struct {
	capacity int
	slabBits uint8 // log2 of the blocks in a slab
	slabs    [][]int64
	n        uint32 // blocks handed out
	free     []uint32
}

// slabWords is how many words a slab aims at: 4 KiB.
const slabWords = 512

func (ls *Logs) init(bound int) {
	bound = max(bound, 1)
	ls.bound = bound
	for c := 4; ; c *= 2 {
		capacity := min(c, bound)
		bits := uint8(0)
		for capacity<<(bits+1) <= slabWords {
			bits++
		}
		ls.classes = append(ls.classes, logClass{capacity: capacity, slabBits: bits})
		if capacity == bound {
			return
		}
	}
}

// Bound returns the largest number of times a log of ls holds.
func (ls *Logs) Bound() int { return ls.bound }

// At returns the i-th oldest time of l.
func (ls *Logs) At(l Log, i int) int64 {
	b := ls.block(l)
	return b[wrap(l.head()+i, len(b))]
}

// Add adds t, which is no earlier than the newest time of l. A log at its
// bound drops its oldest time for it. A log that is full below its bound moves
// to twice the room; call Expire first, so that it doesn't grow for times that
// no longer matter.
func (ls *Logs) Add(l Log, t int64) {
	n, head := l.Len(), l.head()
	if l[0] == 0 {
		ls.take(l, 0)
	}
	b := ls.block(l)
	if n == len(b) {
		if n == ls.bound {
			b[head] = t
			l.set(wrap(head+1, n), n)
			return
		}
		b, head = ls.grow(l, b), 0
	}
	b[wrap(head+n, len(b))] = t
	l.set(head, n+1)
}

// Expire drops all times up to and including t and returns how many are left.
func (ls *Logs) Expire(l Log, t int64) int {
	n := l.Len()
	if n == 0 {
		return 0
	}
	b, head := ls.block(l), l.head()
	for n > 0 && b[head] <= t {
		head = wrap(head+1, len(b))
		n--
	}
	l.set(head, n)
	return n
}

// Clear empties l and gives its storage back.
func (ls *Logs) Clear(l Log) {
	if l[0] != 0 {
		c := &ls.classes[l[0]>>32-1]
		c.free = append(c.free, uint32(l[0]))
	}
	l[0], l[1] = 0, 0
}

func (ls *Logs) block(l Log) []int64 { return ls.classes[l[0]>>32-1].block(uint32(l[0])) }

func (ls *Logs) take(l Log, class int) {
	c := &ls.classes[class]
	slabs := len(c.slabs)
	l[0] = uint64(class+1)<<32 | uint64(c.take())
	ls.bytes += int64(len(c.slabs)-slabs) * 8 * int64(c.capacity<<c.slabBits)
}

// grow moves the full log l from block b to one of the next class, oldest time
// first, and returns the new block.
func (ls *Logs) grow(l Log, b []int64) []int64 {
	class, old := int(l[0]>>32-1), uint32(l[0])
	ls.take(l, class+1)
	wide := ls.block(l)
	k := copy(wide, b[l.head():])
	copy(wide[k:], b[:l.head()])
	ls.classes[class].free = append(ls.classes[class].free, old)
	l.set(0, len(b))
	return wide
}

func (c *logClass) block(i uint32) []int64 {
	at := int(i&(1<<c.slabBits-1)) * c.capacity
	return c.slabs[i>>c.slabBits][at : at+c.capacity : at+c.capacity]
}

func (c *logClass) take() uint32 {
	if k := len(c.free); k > 0 {
		i := c.free[k-1]
		c.free = c.free[:k-1]
		return i
	}
	if c.n&(1<<c.slabBits-1) == 0 {
		c.slabs = append(c.slabs, make([]int64, c.capacity<<c.slabBits))
	}
	c.n++
	return c.n - 1
}

// wrap returns i modulo n for 0 <= i < 2n, without a division.
func wrap(i, n int) int {
	if i >= n {
		return i - n
	}
	return i
}
