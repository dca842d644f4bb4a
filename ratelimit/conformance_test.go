package ratelimit_test

import (
	"fmt"
	"testing"

	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/ratelimit/storetest"
)

// TestMemoryConforms holds the memory store to what every store promises, without
// a budget; storetest's own tests do so with a small one. The long form also has
// the default budget, and random cases twenty times as long.
func TestMemoryConforms(t *testing.T) {
	budgets, rounds := []int64{ratelimit.NoBudget}, 1
	if longForm() {
		budgets, rounds = append(budgets, 0, 16<<20), 20
	}
	for _, budget := range budgets {
		open := func(t testing.TB, set *ratelimit.Set) ratelimit.Store {
			m, err := ratelimit.NewMemory(set, ratelimit.MemoryConfig{Budget: budget})
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		t.Run(fmt.Sprint("budget ", budget), func(t *testing.T) {
			storetest.Run(t, open, storetest.Config{Rounds: rounds})
		})
	}
}
