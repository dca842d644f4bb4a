package ratelimit_test

import (
	"testing"

	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/ratelimit/storetest"
)

// TestMemoryConforms holds the memory store to what every store promises, with the
// budgets that it can have.
func TestMemoryConforms(t *testing.T) {
	rounds := 1
	if longForm() {
		rounds = 20
	}
	for name, c := range map[string]ratelimit.MemoryConfig{
		"default":   {},
		"little":    {Budget: 16 << 20, Bans: 2000},
		"no budget": {Budget: ratelimit.NoBudget},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t testing.TB, set *ratelimit.Set) ratelimit.Store {
				m, err := ratelimit.NewMemory(set, c)
				if err != nil {
					t.Fatal(err)
				}
				return m
			}, storetest.Config{Rounds: rounds})
		})
	}
}
