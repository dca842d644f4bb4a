// Package randtest gives the random tests of all packages their seed.
package randtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// seedVariable holds the seed of every test of a run. Continuous integration sets it: a
// change there is judged by itself, and not by what a seed that nobody tried yet finds.
const seedVariable = "LATELY_SEED"

// New returns a source of random numbers with the seed of t.
func New(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}

// Seed returns the seed of a test: that of LATELY_SEED, or a random one. A test that
// fails says which it was, and how to run with it.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv(seedVariable); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("%s: %q: must be a whole number", seedVariable, s)
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the seed was %d: run with %s=%d", seed, seedVariable, seed)
		}
	})
	return seed
}
