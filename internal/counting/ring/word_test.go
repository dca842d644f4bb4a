package ring

import (
	"math/rand/v2"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// A word names its slot for every distance that a ring can produce.
func TestSlotOf(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 100_000 {
		shift := uint8(1 + rnd.IntN(17))
		at := int64(rnd.Uint64()) >> 6
		turns := rnd.Int64N(1<<tagBits) - 1<<(tagBits-1)
		slot := at + turns<<shift
		w := stampOf(slot, shift) | rnd.Uint64()&lowMask
		if got := slotOf(w, at, shift); got != slot {
			t.Fatalf("shift %d: word of slot %d seen from %d: got slot %d", shift, slot, at, got)
		}
	}
}

// The alias that generations exist for: 2^27 turns on, the stamp is the same.
func TestStampComesBack(t *testing.T) {
	for shift := uint8(1); shift < 18; shift++ {
		turn := int64(1) << shift
		if stampOf(5, shift) != stampOf(5+turn<<tagBits, shift) {
			t.Errorf("shift %d: stamp after 2^%d turns differs", shift, tagBits)
		}
		if stampOf(5, shift) == stampOf(5+turn, shift) {
			t.Errorf("shift %d: stamp after one turn is the same", shift)
		}
	}
}

func TestWordLayout(t *testing.T) {
	w := stampOf(-1, 4) | MaxCount
	if countOf(w) != MaxCount || countOf(w+1) != MaxCount || countOf(w+guard-1) != MaxCount {
		t.Error("a count beyond MaxCount must read as MaxCount")
	}
	if (w+1)>>tagShift != w>>tagShift || (w+guard)>>tagShift != w>>tagShift {
		t.Error("an add of up to 2^36 to a full slot must not reach the tag")
	}
	if MaxCount < 1<<36-1 {
		t.Error("a slot must hold at least 36 bits")
	}
}
