package ring

// A word is one position of a ring, 64 bits that change in one atomic step:
//
//	| tag, 27 bits | guard, 1 bit | count, 36 bits |
//
// The tag is the low part of the slot's turn, which is its number divided by
// the length of the ring: position and tag together name the slot. The tag is
// on top so that taking it modulo 2^27 is one shift, and so that the difference
// of two tags sign-extends.
//
// The guard keeps an add that does not fit from carrying into the tag. It is
// set only between an add that overflowed and the clamp that the same writer
// does before it returns. A carry beyond it needs 2^36/maxUnchecked = 2^28 writers
// between these two steps at the same time; their stacks alone would take half
// a tebibyte.
const (
	countBits = 36
	tagShift  = countBits + 1
	tagBits   = 64 - tagShift

	// MaxCount is the largest count of one slot. A larger one stays here.
	MaxCount = 1<<countBits - 1

	guard   = 1 << countBits
	lowMask = 1<<tagShift - 1

	// maxUnchecked is the largest add that is done before its word is looked at.
	maxUnchecked = 256

	// farTurns is how many turns a ring advances at most in one step, a quarter
	// of the distinct tags: so a tag is unambiguous within that distance,
	// either way, of a known slot.
	farTurns = 1 << (tagBits - 2)
)

// countOf returns the count in w.
func countOf(w uint64) uint64 { return min(w&lowMask, MaxCount) }

// stampOf returns the word of a slot with nothing counted in it, in a ring of
// 1<<shift words.
func stampOf(slot int64, shift uint8) uint64 {
	return uint64(slot>>shift) << tagShift
}

// slotOf returns the slot that w, found at the position of slot at, belongs to.
// The answer is right if that slot is less than 2^26 turns away from at.
func slotOf(w uint64, at int64, shift uint8) int64 {
	turns := int64(w&^lowMask-stampOf(at, shift)) >> tagShift
	return at + turns<<shift
}
