package keytable

import (
	"math/rand/v2"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// A log to which Add adds n times at once equals one to which Add adds n times in turn, also when it is full, when times
// leave it, and when there is no memory for all.
func TestAddSeveral(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	lost, short := 0, 0
	for range 100 {
		bound := 1 + rnd.IntN(300)
		limit := int64(1 << 30)
		if rnd.IntN(3) == 0 {
			limit = rnd.Int64N(16 << 10)
		}
		many, single := NewBlocks(bound, leastTimes, NewBudget(limit)), NewBlocks(bound, leastTimes, NewBudget(limit))
		l, k := make([]uint64, 1+leastTimes), make([]uint64, 1+leastTimes)
		for now := int64(0); now < 200; now++ {
			n := rnd.IntN(1 + rnd.IntN(bound+10))
			gone := now - rnd.Int64N(20)
			many.Expire(l, gone)
			single.Expire(k, gone)
			if many.Reserve(l, n) != single.Reserve(k, n) {
				t.Fatalf("seed %d: bound %d: Reserve of %d differs", seed, bound, n)
			}
			many.Add(l, now, n)
			for range n {
				single.Add(k, now, 1)
			}
			if many.Len(l) != single.Len(k) || many.Len(l) > 0 && (many.Lost(l) != single.Lost(k) || many.Newest(l) != single.Newest(k)) {
				t.Fatalf("seed %d: bound %d, %d at %d: %d times, want %d", seed, bound, n, now, many.Len(l), single.Len(k))
			}
			for i := range many.Len(l) {
				if many.At(l, i) != single.At(k, i) {
					t.Fatalf("seed %d: bound %d, %d at %d: time %d is %d, want %d", seed, bound, n, now, i, many.At(l, i), single.At(k, i))
				}
			}
			if many.Len(l) > 0 && many.Lost(l) {
				lost++
			}
			if many.Len(l) < min(n, bound) {
				short++
			}
		}
	}
	if lost == 0 || short == 0 {
		t.Errorf("%d logs had dropped times, and %d had no memory for all: the test has tested little", lost, short)
	}
}
