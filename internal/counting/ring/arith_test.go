package ring

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

func TestFloor(t *testing.T) {
	for _, c := range []struct{ a, b, want int64 }{
		{0, 10, 0},
		{9, 10, 0},
		{10, 10, 1},
		{-1, 10, -1},
		{-10, 10, -1},
		{-11, 10, -2},
		{math.MaxInt64, 1, math.MaxInt64},
		{math.MinInt64, 1, math.MinInt64},
		{math.MinInt64, math.MaxInt64, -2},
		{math.MaxInt64, math.MaxInt64, 1},
	} {
		if got := FloorDiv(c.a, c.b); got != c.want {
			t.Errorf("FloorDiv(%d, %d) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		a, b := int64(rnd.Uint64()), int64(rnd.Uint64()>>1>>rnd.IntN(62))|1
		// Euclidean division rounds down where the divisor is positive.
		want := new(big.Int).Div(big.NewInt(a), big.NewInt(b)).Int64()
		if got := FloorDiv(a, b); got != want {
			t.Fatalf("FloorDiv(%d, %d) = %d, want %d", a, b, got, want)
		}
	}
}

// TestOldest holds Oldest against the definition, one time after the other.
func TestOldest(t *testing.T) {
	for _, width := range []int64{1, 2, 3, 7} {
		for span := int64(1); span <= 4*width+1; span++ {
			for now := -3 * width; now <= 3*width; now++ {
				first, partly := oldestByHand(now, span, width)
				gotFirst, gotPartly := Oldest(now, span, width)
				if gotFirst != first || gotPartly != partly {
					t.Fatalf("Oldest(%d, %d, %d) = %d, %t, want %d, %t", now, span, width, gotFirst, gotPartly, first, partly)
				}
			}
		}
	}
}

func oldestByHand(now, span, width int64) (first int64, partly bool) {
	slot := int64(-100)
	for ; slot*width <= now-span; slot++ {
	}
	last := slot*width - 1 // of the slot before
	return slot, last > now-span
}

func TestSize(t *testing.T) {
	for slots := 1; slots < 5000; slots++ {
		size := Size(slots)
		if size <= slots || size > 2*slots || size&(size-1) != 0 {
			t.Fatalf("Size(%d) = %d: must be the smallest power of two above", slots, size)
		}
	}
}
