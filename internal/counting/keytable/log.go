package keytable

// MaxLog is the largest bound of a log of [Blocks].
const MaxLog = 1 << 20

// A log of times takes some words of a record: the last times added, oldest first,
// in ascending order. Zero words are an empty log. The first few times lie in the
// record. A log with more of them moves them all to a block, so that a key that is
// seen a few times costs no more than its record.
//
//	word 0: the block, see Blocks, and in the lower half: whether a time was
//	        dropped that had not expired, 1 bit | number of times, 21 bits
//	word 1: the oldest time
//	word 2…: the next ones; with a block, the newest time, then the place of the
//	        oldest time in the block, and nothing else
//
// The oldest time and the newest are in the record in either case: an event at
// which no time leaves the log, as one that a full log refuses, does not touch
// the block.
const (
	logLost     = 1 << 31
	logLen      = 1<<21 - 1
	logOldest   = 1
	logNewest   = 2
	logHead     = 3
	manyExpired = 16 // from here on, those still to go are found by bisection
)

// Len returns the number of times in the log l.
func (b *Blocks) Len(l []uint64) int { return int(l[0] & logLen) }

// Lost reports whether l, being at its bound, has dropped a time for a newer
// one, and that time might still count. It is so until a time expires, because
// what was dropped was no newer than any that is left.
func (b *Blocks) Lost(l []uint64) bool { return l[0]&logLost != 0 }

// Lose marks the non-empty log l as incomplete, see Lost: it was copied from a log
// that had dropped a time.
func (b *Blocks) Lose(l []uint64) {
	if b.Len(l) > 0 {
		l[0] |= logLost
	}
}

// places returns the places of l's times, and that of the oldest.
func (b *Blocks) places(l []uint64) (times []uint64, head int) {
	if c := class(l); c != 0 {
		return b.classes[c-1].At(uint32(l[0] >> blockShift)), int(l[logHead])
	}
	return l[1 : 1+b.inline : 1+b.inline], 0
}

// At returns the i-th oldest time of l.
func (b *Blocks) At(l []uint64, i int) int64 {
	times, head := b.places(l)
	return int64(times[wrap(head+i, len(times))])
}

// Newest returns the newest time of l, which is not empty.
func (b *Blocks) Newest(l []uint64) int64 {
	if class(l) == 0 {
		return int64(l[b.Len(l)])
	}
	return int64(l[logNewest])
}

// Reserve sees to it that n more times can be added to l, or as many as the bound
// allows if that is less. It reports false, and changes nothing, if the budget has no
// memory for them.
func (b *Blocks) Reserve(l []uint64, n int) bool {
	if b.view {
		return true
	}
	need := min(b.Len(l)+min(n, b.bound), b.bound)
	if c := class(l); need <= b.inline || c != 0 && need <= b.classes[c-1].words {
		return true
	}
	return b.grow(l, need)
}

// Fits reserves n more times in the log l, which is empty, or as many as there is
// memory for. It returns how many. It tries each size of block once at most.
func (b *Blocks) Fits(l []uint64, n int) int {
	n = min(n, b.bound)
	for size := len(b.classes) - 1; !b.Reserve(l, n); {
		for size >= 0 && b.classes[size].words >= n {
			size--
		}
		if size < 0 {
			return b.inline // these need no block
		}
		n = b.classes[size].words
	}
	return n
}

// grow moves l to a block for at least need times, oldest first.
func (b *Blocks) grow(l []uint64, need int) bool {
	size := class(l)
	for b.classes[size].words < need {
		size++
	}
	block, ok := b.classes[size].Alloc()
	if !ok {
		return false
	}
	from, head := b.places(l)
	to, n := b.classes[size].At(block), b.Len(l)
	k := copy(to[:n], from[head:])
	copy(to[k:n], from)
	if old := class(l); old != 0 {
		b.classes[old-1].Free(uint32(l[0] >> blockShift))
	}
	setBlock(l, size, block)
	if l[logHead] = 0; n > 0 {
		l[logNewest] = to[n-1]
	}
	return true
}

// Push adds t, which is no earlier than the newest time of l. It reports false, and
// changes nothing, if l is at its bound or there is no memory.
func (b *Blocks) Push(l []uint64, t int64) bool {
	n := b.Len(l)
	if class(l) == 0 && n < b.inline {
		l[1+n] = uint64(t)
		l[0]++
		return true
	}
	times, head := b.places(l)
	if n == len(times) {
		if n == b.bound || !b.grow(l, n+1) {
			return false
		}
		times, head = b.places(l)
	}
	times[wrap(head+n, len(times))] = uint64(t)
	if l[logNewest] = uint64(t); n == 0 {
		l[logOldest] = uint64(t)
	}
	l[0]++
	return true
}

// Add adds t, which is no earlier than the newest time of l, n times. A log at its bound
// drops its oldest time for each, and so does one without memory; call Reserve first.
func (b *Blocks) Add(l []uint64, t int64, n int) {
	n = min(n, b.bound+1) // one more than fits shows that a time was dropped
	if n < 2 || !b.Reserve(l, n) || class(l) == 0 {
		for range n {
			if !b.Push(l, t) {
				b.replace(l, t)
			}
		}
		return
	}
	times, head := b.places(l)
	size, had := len(times), b.Len(l)
	if over := had + n - size; over > 0 {
		l[0] |= logLost
		over, n = min(over, had), min(n, size)
		l[0] -= uint64(over)
		had, head = had-over, wrap(head+over, size)
	}
	from := wrap(head+had, size)
	end := min(from+n, size)
	fill(times[from:end], t)
	fill(times[:n-(end-from)], t)
	l[0] += uint64(n)
	l[logOldest], l[logNewest], l[logHead] = times[head], uint64(t), uint64(head)
}

// fill sets all times to t.
func fill(times []uint64, t int64) {
	for i := range times {
		times[i] = uint64(t)
	}
}

// replace puts t in the place of the oldest time.
func (b *Blocks) replace(l []uint64, t int64) {
	l[0] |= logLost
	times, head := b.places(l)
	if class(l) == 0 {
		n := copy(times, times[1:])
		times[n] = uint64(t)
		return
	}
	times[head] = uint64(t)
	head = wrap(head+1, len(times))
	l[logOldest], l[logNewest], l[logHead] = times[head], uint64(t), uint64(head)
}

// wrap returns i modulo n for 0 <= i < 2n, without a division.
func wrap(i, n int) int {
	if i >= n {
		return i - n
	}
	return i
}
