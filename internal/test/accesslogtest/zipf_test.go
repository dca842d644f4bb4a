package accesslogtest

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

func TestZipfFollowsItsLaw(t *testing.T) {
	const n, shift, draws = 50, 3, 200_000
	z := newZipf(n, shift)
	rng := rand.New(rand.NewPCG(1, 2))
	var count [n]int
	for range draws {
		count[z.draw(rng)]++
	}
	sum := 0.0
	for i := range n {
		sum += 1 / float64(i+shift)
	}
	for i, got := range count {
		want := draws / float64(i+shift) / sum
		if d := float64(got) - want; d*d > 25*want { // five standard deviations
			t.Errorf("rank %d drawn %d times, want about %.0f", i, got, want)
		}
	}
}

func TestZipfOfOne(t *testing.T) {
	z := newZipf(1, 1<<24)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		if got := z.draw(rng); got != 0 {
			t.Fatalf("drew rank %d of one", got)
		}
	}
}

func TestScaleDoesNotOverflow(t *testing.T) {
	seed := randtest.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		c := 1 + rng.Int64N(1<<62)
		a, b := rng.Int64N(c+1), rng.Int64N(1<<62)
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		want.Div(want, big.NewInt(c))
		if got := scale(a, b, c); got != want.Int64() {
			t.Fatalf("scale(%d, %d, %d) = %d, want %v", a, b, c, got, want)
		}
	}
}
