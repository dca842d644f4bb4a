package keytable_test

import (
	"testing"

	"github.com/lately-go/lately/internal/counting/keytable"
)

// TestBudgetKeeps takes with and without a reserved part: what the owners of the reserve have taken no longer counts as
// reserved.
func TestBudgetKeeps(t *testing.T) {
	b := keytable.NewBudget(100)
	for i, c := range []struct {
		kept bool
		n    int64
		ok   bool
	}{
		{false, 76, false}, {false, 60, true}, {true, 20, true}, // 5 more are kept
		{false, 16, false}, {false, 15, true}, {false, 1, false}, {true, 6, false}, {true, 5, true}, {true, 1, false},
	} {
		var ok bool
		if c.kept {
			ok = b.TakeKept(c.n)
		} else {
			ok = b.Take(c.n, 25)
		}
		if ok != c.ok {
			t.Fatalf("step %d: %+v returns %t, with %d used", i, c, ok, b.Used())
		}
	}
	b.GiveKept(20)
	if b.Used() != 80 || b.Take(1, 25) || !b.Take(1, 5+20-1) {
		t.Errorf("%d used after 20 of 25 kept were given back", b.Used())
	}
}

// step returns the distance to the next size: 1, or with -short so much that each of
// the allocator's sizes, which are an eighth apart, is tried several times.
func step(n int) int {
	if testing.Short() {
		return 1 + n/64
	}
	return 1
}

// What is taken from a budget is never less than what the allocator gives: otherwise a full budget would be exceeded. It is
// not much more either.
func TestBudgetIncludesAllocatorOverhead(t *testing.T) {
	for n := 1; n < 100_000; n += step(n) {
		got, taken := int64(cap(append([]byte(nil), make([]byte, n)...))), keytable.Allocated(int64(n))
		if got > taken || taken > max(got*5/4, 32) {
			t.Fatalf("%d bytes are made of %d, %d were taken", got, n, taken)
		} else if n > 32<<10 && got != taken {
			t.Fatalf("%d bytes are made of %d, %d are expected", got, n, taken)
		}
	}
}
