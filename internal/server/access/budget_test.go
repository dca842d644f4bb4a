package access_test

import (
	"sync"
	"testing"

	"github.com/lately-go/lately/internal/server/access"
)

func TestBudget(t *testing.T) {
	b := access.NewBudget(100)
	if b.Scarce() || !b.Take(50) || b.Scarce() || !b.Take(50) || !b.Scarce() {
		t.Error("100 bytes cannot be taken in two halves")
	}
	if b.Take(1) {
		t.Error("there were 101 bytes")
	}
	b.Give(10)
	if b.Take(11) || !b.Take(10) {
		t.Error("what was given back is not what can be taken")
	}
	if limit, used := b.Stats(); limit != 100 || used != 100 {
		t.Errorf("limit %d, used %d; want 100, 100", limit, used)
	}
	if limit, _ := access.NewBudget(0).Stats(); limit != access.DefaultBudget {
		t.Errorf("the default is %d", limit)
	}
}

// TestBudgetConcurrently takes and gives from many goroutines: together they never hold more than there is, and all comes
// back.
func TestBudgetConcurrently(t *testing.T) {
	b := access.NewBudget(1000)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20_000 {
				if b.Take(300) {
					b.Give(300)
				}
			}
		})
	}
	wg.Wait()
	if _, used := b.Stats(); used != 0 {
		t.Errorf("%d bytes are still taken", used)
	}
}
