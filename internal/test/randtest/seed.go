// Package randtest gives the random tests of all packages their seed.
package randtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// seedVariable holds the seed for every test of a run. Continuous integration sets it: a change is judged by itself, and
// not by a new seed that fails in old code. Its name does not begin with LATELY_: a server that a test starts would take it
// for a setting.
const seedVariable = "TEST_SEED"

// New returns a source of random numbers with a seed of t.
func New(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}

// tests has the drawn seeds of the tests that run, by their testing.TB.
var tests sync.Map

// drawn is the seeds that a test has drawn: from first on, each another.
type drawn struct {
	first uint64
	calls atomic.Uint64
}

// Seed returns a seed for a test: each call another, the first from TEST_SEED or random, and the next ones derived from it.
// A test that fails prints how to run with them.
func Seed(t testing.TB) uint64 {
	t.Helper()
	const step = 0x9e3779b97f4a7c15 // odd, so that no seed comes twice
	d, known := tests.LoadOrStore(t, &drawn{first: first(t)})
	of := d.(*drawn)
	if !known {
		t.Cleanup(func() {
			tests.Delete(t)
			if t.Failed() {
				t.Logf("the seed was %d: run with %s=%d", of.first, seedVariable, of.first)
			}
		})
	}
	return of.first + step*(of.calls.Add(1)-1)
}

func first(t testing.TB) uint64 {
	t.Helper()
	s := os.Getenv(seedVariable)
	if s == "" {
		return rand.Uint64()
	}
	seed, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %q: must be a whole number", seedVariable, s)
	}
	return seed
}
