package keytable_test

import (
	"testing"

	"github.com/lately-go/lately/internal/keytable"
)

// TestBudgetKeeps takes with and without a part that is to be left: what those
// have taken for whom it is left is no longer left for them.
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
			t.Fatalf("step %d: %+v says %t, with %d used", i, c, ok, b.Used())
		}
	}
	b.GiveKept(20)
	if b.Used() != 80 || b.Take(1, 25) || !b.Take(1, 5+20-1) {
		t.Errorf("%d used after 20 of 25 kept were given back", b.Used())
	}
}

// What is taken from a budget before memory is allocated is never less than what
// the allocator then gives: else a full budget would be exceeded.
func TestBudgetIsAskedForEnough(t *testing.T) {
	for n := 1; n < 100_000; n += step(n) {
		if got, asked := keytable.Allocated(n); got < int64(n) || got > asked {
			t.Fatalf("%d bytes are made of %d, %d were taken", got, n, asked)
		}
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

// Sizes are chosen as the allocator makes them, so that nothing is asked for that
// cannot be used.
func TestBudgetKnowsTheAllocator(t *testing.T) {
	for n := 1; n < 100_000; n += step(n) {
		got, _ := keytable.Allocated(n)
		if most := keytable.AllocatedAtMost(n); got > most {
			t.Fatalf("%d bytes are made of %d, at most %d are expected", got, n, most)
		} else if n > 32<<10 && got != most {
			t.Fatalf("%d bytes are made of %d, %d are expected", got, n, most)
		}
		fits := keytable.Fitting(n)
		if got, _ := keytable.Allocated(fits); got > int64(n) {
			t.Fatalf("%d bytes are made of %d, which are to fit into %d", got, fits, n)
		} else if n >= 64 && fits < n*3/4 {
			t.Fatalf("only %d bytes are to fit into %d", fits, n)
		}
	}
}
