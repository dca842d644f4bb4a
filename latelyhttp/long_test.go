package latelyhttp

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// longTests reports whether the tests that have a long form are to run it:
//
//	LATELY_LONG=1 go test ./latelyhttp -timeout 1h
func longTests() bool { return os.Getenv("LATELY_LONG") != "" }

// seeded returns a source of random numbers whose seed is logged; LATELY_SEED
// sets it.
func seeded(t testing.TB) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	if s, err := strconv.ParseUint(os.Getenv("LATELY_SEED"), 10, 64); err == nil {
		seed = s
	}
	t.Logf("LATELY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
