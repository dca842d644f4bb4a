package engine_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
)

// TestLatency compares with a list of all durations, which goroutines observe at once.
func TestLatency(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	var l engine.Latency
	var observers sync.WaitGroup
	lists := make([][]time.Duration, 40)
	for i := range lists {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		part := l.Part()
		observers.Go(func() {
			for range 500 {
				d := time.Duration(rng.Int64N(int64(2 * time.Second)))
				if rng.IntN(2) == 0 { // a bound itself, or near it
					d = engine.LatencyBounds()[rng.IntN(len(engine.LatencyBounds()))] + time.Duration(rng.IntN(3)-1)
				}
				n := 1 + rng.IntN(3)
				part.Observe(d, uint64(n))
				lists[i] = append(lists[i], slices.Repeat([]time.Duration{d}, n)...)
			}
		})
	}
	observers.Wait()
	var want engine.LatencyCount
	for _, d := range slices.Concat(lists...) {
		want.Sum += d
		want.Count++
		for i, bound := range engine.LatencyBounds() {
			if d <= bound {
				want.Buckets[i]++
			}
		}
	}
	if got := l.Count(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	part := l.Part()
	if n := testing.AllocsPerRun(100, func() { part.Observe(time.Millisecond, 1) }); n != 0 {
		t.Errorf("an observation allocates %v times", n)
	}
}
