package ratelimit_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// TestConcurrentRemoveMeanwhile removes bans while hits extend them: a refused caller receives an end in the future.
func TestConcurrentRemoveMeanwhile(t *testing.T) {
	r := ban(t, "r", ratelimit.Ban{Span: time.Second, For: time.Minute, Extend: true})
	l := mustLimiter(t, mustSet(t, r), ratelimit.Config{})
	hits := 100_000
	if testing.Short() {
		hits /= 10
	}
	var done atomic.Bool
	var unbanned atomic.Uint64
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			if held, err := l.Bans().Remove("r", "k"); err != nil {
				t.Error(err)
			} else if held {
				unbanned.Add(1)
			}
		}
	})
	defer wg.Wait()
	defer done.Store(true)
	for range hits {
		before := time.Now()
		if d := takeKey(l, "k"); d.Allowed || !d.BannedUntil.After(before) {
			t.Fatalf("after %d were unbanned: %+v", unbanned.Load(), d)
		}
	}
	if unbanned.Load() == 0 {
		t.Error("nothing was unbanned: the test has no teeth")
	}
}
