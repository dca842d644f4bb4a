package storetest_test

import (
	"testing"

	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/ratelimit/storetest"
)

// memory opens an empty memory store.
func memory(t testing.TB, set *ratelimit.Set) ratelimit.Store {
	m, err := ratelimit.NewMemory(set, ratelimit.MemoryConfig{Budget: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMemory(t *testing.T) { storetest.Run(t, memory, storetest.Config{}) }
