package heap_test

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/lately-go/lately/internal/counting/heap"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestTop compares the first n of random items with those of a sorted list.
func TestTop(t *testing.T) {
	rnd := randtest.New(t)
	for range 300 {
		n := []int{1, 1 + rnd.IntN(100), math.MaxInt}[rnd.IntN(3)]
		top := heap.NewTop(n, cmp.Compare[int])
		var all []int
		for range rnd.IntN(1000) {
			item := rnd.IntN(500)
			top.Add(item)
			all = append(all, item)
			slices.Sort(all)
			if last, ok := top.Last(); ok && last < all[n-1] {
				t.Fatalf("the item %d of %d is %d; after it, %d", n, len(all), all[n-1], last)
			}
		}
		if got, want := top.Items(), all[:min(n, len(all))]; !slices.Equal(got, want) {
			t.Fatalf("the first %d of %d are %v, want %v", n, len(all), got, want)
		}
		if _, ok := top.Last(); ok != (len(all) >= 2*n+64 && n < math.MaxInt) {
			t.Fatalf("of %d items, the last of the first %d is known: %t", len(all), n, ok)
		}
	}
}
