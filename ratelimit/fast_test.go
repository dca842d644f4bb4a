package ratelimit_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// TestConcurrentEarlierEventMeanwhile takes two events at once: one too costly for the limit, at a time when the window is
// empty, and one a millisecond before. The second is judged at its own time, with the window still full, or at the time of
// the first; but never at its own time in a window that the first has emptied.
func TestConcurrentEarlierEventMeanwhile(t *testing.T) {
	l := with(t, ratelimit.Exact, per(1, time.Second))
	rounds := int64(100_000)
	if testing.Short() {
		rounds /= 10
	}
	var round, done atomic.Int64
	await := func(n *atomic.Int64, i int64) {
		for n.Load() < i {
			runtime.Gosched()
		}
	}
	const apart = 10_000 // ms between two rounds
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range rounds {
			await(&round, i+1)
			takeKeyN(l, at(i*apart+1000), "k", 2)
			done.Add(1)
		}
	})
	defer wg.Wait()
	for i := range rounds {
		takeKeyN(l, at(i*apart), "k", 1)
		round.Store(i + 1)
		d := takeKeyN(l, at(i*apart+999), "k", 1)
		await(&done, i+1)
		if after := peekKeyN(l, at(i*apart+1000), "k", 1); d.Allowed && after.RetryAfter != time.Second {
			round.Store(rounds)
			t.Fatalf("allowed 999 ms after another under 1 per second; then %+v", after)
		}
	}
}
