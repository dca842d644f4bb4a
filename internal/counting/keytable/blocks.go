package keytable

// Blocks is memory outside of the records of a table, for those that count more
// than they can hold: each record has a few words for its owner, and one block of
// Blocks or none. Blocks take their memory from a [Budget] by the chunk, and give
// it back when [Blocks.Gather] has emptied a chunk.
//
// A record of [NewBlocks] has a log of times, see [Blocks.Add]. Its blocks have 8,
// 16, 32 ... up to bound times. A record of [NewSpill] uses its block as it likes.
//
// The first word says which block a record has. It is locked while its words or
// its block are used; the Blocks may be used by all goroutines at once. Zero words
// have no block.
//
//	block within its class, 27 bits | class + 1 (0: no block), 5 bits | owner's, 32 bits
type Blocks struct {
	bound, inline int
	classes       []Slab
	view          bool // see View
}

const (
	blockShift = 37
	classShift = 32
	classMask  = 1<<5 - 1
	ownerMask  = 1<<classShift - 1
	leastBlock = 8 // times in the smallest block
	leastTimes = 3 // of a log, that are in its record
)

// NewBlocks returns the storage of logs of at most bound times, 1 to [MaxLog]. The first
// inline of them, at least three, lie in the record.
func NewBlocks(bound, inline int, budget *Budget) *Blocks {
	if bound < 1 || bound > MaxLog || inline < leastTimes {
		panic("keytable: bound or inline of Blocks out of range")
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
	b.classes = make([]Slab, len(sizes))
	for i, size := range sizes {
		b.classes[i].init(size, budget)
	}
	return b
}

// NewSpill returns Blocks of so many words each. Inline is how many of the record's
// words are the owner's beside the low 32 bits of the first. Until a record has a block,
// it may be a log of up to inline times.
func NewSpill(inline, words int, budget *Budget) *Blocks {
	b := &Blocks{bound: inline, inline: inline, classes: make([]Slab, 1)}
	b.classes[0].init(words, budget)
	return b
}

// class returns the class of the block of l + 1, 0 if it has none.
func class(l []uint64) int { return int(l[0] >> classShift & classMask) }

func setBlock(l []uint64, class int, block uint32) {
	l[0] = l[0]&ownerMask | uint64(class+1)<<classShift | uint64(block)<<blockShift
}

// Spill gives the record l, which has none, a block, whose words are anything. It
// reports false, and changes nothing, if the budget has no memory for it. The record
// has the block until Clear, which zeroes its first word.
func (b *Blocks) Spill(l []uint64) bool {
	n, ok := b.classes[0].Alloc()
	if ok {
		setBlock(l, 0, n)
	}
	return ok
}

// Block returns the block of l, which has one.
func (b *Blocks) Block(l []uint64) []uint64 {
	return b.classes[class(l)-1].At(uint32(l[0] >> blockShift))
}

// Clear empties l and gives its block back.
func (b *Blocks) Clear(l []uint64) {
	if c := class(l); c != 0 && !b.view {
		b.classes[c-1].Free(uint32(l[0] >> blockShift))
	}
	l[0] = 0
}

// Gather moves the block of l, if it has one, to where others are, if that may give
// memory back to the budget. Call it for the records of a table from time to time
// while many of its records go.
func (b *Blocks) Gather(l []uint64) {
	c := class(l)
	if c == 0 {
		return
	}
	if s := &b.classes[c-1]; s.loose.Load() {
		setBlock(l, c-1, s.gather(uint32(l[0]>>blockShift)))
	}
}

// View returns the same Blocks for copies of logs: to drop times from a copy
// then leaves the log that it was made from as it is. Nothing may be added to a
// copy, and the log must not change meanwhile.
func (b *Blocks) View() *Blocks {
	return &Blocks{bound: b.bound, inline: b.inline, classes: b.classes, view: true}
}

// Release gives all memory of b back to the budget. No record of b may be used any
// more.
func (b *Blocks) Release() {
	for i := range b.classes {
		b.classes[i].Release()
	}
}
