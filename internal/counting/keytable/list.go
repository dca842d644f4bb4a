package keytable

// A list of words may take the place of the log in a record of [NewBlocks], for an
// owner that keeps more of an event than its time. The bound is then one of words.

// List returns the words of the list l. They are valid until it changes.
func (b *Blocks) List(l []uint64) []uint64 {
	words, _ := b.places(l)
	return words[:b.Len(l)]
}

// Append appends words to the list l. It reports false, and changes nothing, if the
// list would be longer than the bound, or if the budget has no memory for it.
func (b *Blocks) Append(l []uint64, words ...uint64) bool {
	n := b.Len(l)
	if n+len(words) > b.bound || !b.Reserve(l, len(words)) {
		return false
	}
	l[0] += uint64(len(words))
	copy(b.List(l)[n:], words)
	return true
}

// Truncate leaves the first n words of the list l, and gives its block back if they
// fit in the record.
func (b *Blocks) Truncate(l []uint64, n int) {
	if class(l) != 0 && n <= b.inline {
		first := b.List(l)[:n]
		inline := l[1 : 1+b.inline]
		copy(inline, first)
		b.Clear(l)
	}
	l[0] = l[0]&^logLen | uint64(n)
}
