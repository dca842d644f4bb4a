package ratelimit_test

import (
	"fmt"
	"testing"

	"github.com/lately-go/lately/internal/store/storetest"
	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// TestMemoryConforms runs the conformance tests of stores against the memory store, without a budget and with a small one.
// The long form also has the default budget, and random cases twenty times as long.
func TestMemoryConforms(t *testing.T) {
	budgets, steps := []int64{-1, 8 << 20}, 150
	switch {
	case testing.Short():
		budgets = budgets[1:]
	case longForm():
		budgets, steps = append(budgets, 0, 16<<20), 3000
	}
	for _, budget := range budgets {
		open := func(t testing.TB, set *ratelimit.Set) ratelimit.Store {
			m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Budget: budget}))(t)
			return m
		}
		t.Run(fmt.Sprint("budget ", budget), func(t *testing.T) {
			storetest.Run(t, open, storetest.Config{Steps: steps})
		})
	}
}

// memoryStore opens an empty memory store with a small budget.
func memoryStore(t testing.TB, set *ratelimit.Set) ratelimit.Store {
	m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Budget: 8 << 20}))(t)
	return m
}
