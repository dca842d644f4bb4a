package accesslogtest

import (
	"math/bits"
	"math/rand/v2"
	"slices"
)

// A zipf draws ranks 0..n-1 with probability proportional to 1/(rank+shift),
// the Zipf-Mandelbrot law with exponent 1. It is a table of cumulative integer
// weights, so that every platform draws the same ranks; math/rand/v2 has a
// Zipf, but in floating point. A draw costs one search of O(log n).
type zipf struct {
	cumulative []uint64
}

func newZipf(n, shift int) zipf {
	z := zipf{cumulative: make([]uint64, n)}
	var sum uint64
	for i := range z.cumulative {
		sum += 1 << 36 / uint64(i+shift) // n and shift < 2^25: never 0
		z.cumulative[i] = sum
	}
	return z
}

func (z zipf) draw(rng *rand.Rand) int {
	x := rng.Uint64N(z.cumulative[len(z.cumulative)-1])
	i, found := slices.BinarySearch(z.cumulative, x)
	if found {
		i++ // rank i covers [cumulative[i-1], cumulative[i])
	}
	return i
}

// scale returns a*b/c, rounded down, without overflow in between. The result
// must fit, which a <= c ensures.
func scale(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}
