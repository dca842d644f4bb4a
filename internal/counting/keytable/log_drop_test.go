package keytable_test

import (
	"math"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestDrop adds, expires and drops times at random, and holds the log against a
// slice.
func TestDrop(t *testing.T) {
	rnd := randtest.New(t)
	for range 200 {
		bound := 1 + rnd.IntN(200)
		b := keytable.NewBlocks(bound, 3+rnd.IntN(3), keytable.NewBudget(math.MaxInt64/2))
		l := make([]uint64, b.Words())
		var want []int64
		now := int64(0)
		for range 300 {
			switch rnd.IntN(6) {
			case 0:
				n := rnd.IntN(len(want) + 3)
				if got := b.Drop(l, n); got != min(n, len(want)) {
					t.Fatalf("bound %d: Drop(%d) of %d returns %d", bound, n, len(want), got)
				}
				want = want[min(n, len(want)):]
			case 1:
				gone := now - rnd.Int64N(40)
				b.Expire(l, gone)
				want = slices.DeleteFunc(want, func(t int64) bool { return t <= gone })
			default:
				if now += rnd.Int64N(2); len(want) < bound && b.Push(l, now) {
					want = append(want, now)
				}
			}
			var got []int64
			for i := range b.Len(l) {
				got = append(got, b.At(l, i))
			}
			if !slices.Equal(got, want) {
				t.Fatalf("bound %d: the log is %v, want %v", bound, got, want)
			}
			if n := len(want); n > 0 && (b.Newest(l) != want[n-1] || int64(l[1]) != want[0]) {
				t.Fatalf("bound %d: newest %d, oldest %d of %v", bound, b.Newest(l), l[1], want)
			}
		}
	}
}
