package keytable

// NewSpill returns Blocks for records that have one block of so many words when
// there is too much to count in the record itself, to be used as its owner likes.
// Inline is how many of the record's words are the owner's beside the first, of
// which the low 32 bits are. Of the methods of Blocks only [Blocks.Spill],
// [Blocks.Spilled], [Blocks.Block], [Blocks.Clear], [Blocks.View] and
// [Blocks.Release] are for these.
func NewSpill(inline, words int, budget *Budget) *Blocks {
	b := &Blocks{inline: inline, classes: make([]blockClass, 1)}
	b.classes[0].init(words, budget)
	return b
}

// Spill gives the record l, which has none, a block, whose words are anything. It
// reports false, and changes nothing, if that takes memory that the budget has
// not. The record has the block until Clear, which zeroes its first word.
func (b *Blocks) Spill(l []uint64) bool {
	n, ok := b.classes[0].take()
	if ok {
		l[0] = l[0]&(1<<logBlockShift-1) | 1<<logClassShift | uint64(n)<<logBlockShift
	}
	return ok
}

// Spilled reports whether l has a block.
func (b *Blocks) Spilled(l []uint64) bool { return l[0]>>logClassShift != 0 }

// Block returns the block of l, which has one.
func (b *Blocks) Block(l []uint64) []uint64 { return b.classes[0].at(logBlock(l)) }
