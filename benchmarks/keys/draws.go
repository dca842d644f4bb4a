package keys

import (
	"math/rand/v2"
	"sync"
)

// Draws is how many draws a sequence has before it begins again; a power of two.
const Draws = 1 << 22

// zipf draws key numbers below n so that the k-th most frequent one comes in
// proportion to k^-1.1. Which keys are frequent has nothing to do with the
// order in which they were inserted.
func zipf(n int) []uint32 {
	rng := rand.New(rand.NewPCG(1, 1))
	z := rand.NewZipf(rng, 1.1, 1, uint64(n-1))
	perm := rng.Perm(n)
	seq := make([]uint32, Draws)
	for i := range seq {
		seq[i] = uint32(perm[z.Uint64()])
	}
	return seq
}

// uniform draws key numbers below n, each as likely as the other.
func uniform(n int) []uint32 {
	rng := rand.New(rand.NewPCG(1, 2))
	seq := make([]uint32, Draws)
	for i := range seq {
		seq[i] = rng.Uint32N(uint32(n))
	}
	return seq
}

// drawn keeps the sequences of one number of keys.
var drawn struct {
	sync.Mutex
	keys int
	m    map[string][]uint32
}

// Sequence returns Draws key numbers below n, "zipf" or else "uniform". They are
// the same in every process, and drawn once in a row of calls with one n.
func Sequence(distribution string, n int) []uint32 {
	drawn.Lock()
	defer drawn.Unlock()
	if drawn.keys != n {
		drawn.keys, drawn.m = n, map[string][]uint32{}
	}
	if drawn.m[distribution] == nil {
		draw := uniform
		if distribution == "zipf" {
			draw = zipf
		}
		drawn.m[distribution] = draw(n)
	}
	return drawn.m[distribution]
}
