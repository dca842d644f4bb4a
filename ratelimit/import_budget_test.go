package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
	"github.com/lately-go/lately/ratelimit"
)

// TestImportHasTheSameBudget restores a store that has nearly used its budget for keys and blocks of slots into one with
// the same budget: memory is requested in another order, and nothing is evicted.
func TestImportHasTheSameBudget(t *testing.T) {
	budget, least := int64(16<<20), 10_000
	if testing.Short() {
		budget, least = 2<<20, 1250
	}
	set := mustSet(t, limitRule(t, "r", per(1000, time.Hour)))
	open := func() (*ratelimit.Memory, *ratelimit.Limiter) {
		m := must.Get(ratelimit.NewMemory(set, ratelimit.Config{Budget: budget}))(t)
		return m, ratelimit.Over(set, m)
	}
	m, l := open()
	keys := 0
	for ; l.Stats().Bytes+l.Stats().Reserved < budget*9/10 && keys < 100_000; keys++ {
		for range 5 {
			takeKey(l, fmt.Sprint("key ", keys))
		}
	}
	if s := l.Stats().Rules[0]; s.Evicted != 0 || keys < least {
		t.Fatalf("%d of %d keys evicted while there was memory", s.Evicted, keys)
	}
	again, restored := open()
	mustImport(t, again, l.Now(), exported(m, l.Now()))
	if s := restored.Stats().Rules[0]; s.Evicted+s.Sketched+s.Full != 0 || int(s.Keys) != keys {
		t.Errorf("%d of %d keys are there, %d evicted", s.Keys, keys, s.Evicted)
	}
	for i := range keys {
		if d := peekKey(restored, fmt.Sprint("key ", i)); d.Remaining != 995-1 {
			t.Fatalf("key %d has %d left", i, d.Remaining)
		}
	}
}
