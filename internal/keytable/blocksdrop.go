package keytable

// Drop takes the n oldest times out of the log l, or all if it has fewer, and
// returns how many. The cost does not depend on n.
func (b *Blocks) Drop(l []uint64, n int) int {
	size := b.Len(l)
	switch n = min(n, size); {
	case n == 0:
	case n == size:
		b.Clear(l)
	case l[0]>>logClassShift == 0:
		times := b.times(l)
		copy(times, times[n:size])
		l[0] -= uint64(n)
	default:
		times := b.times(l)
		head := wrap(logHead(l)+n, len(times))
		setLog(l, head, size-n)
		l[1] = times[head]
	}
	return n
}
