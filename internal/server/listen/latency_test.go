package listen_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/listen"
	"github.com/lately-go/lately/internal/test/randtest"
)

// TestLatency compares with a list of all durations, which goroutines observe at once.
func TestLatency(t *testing.T) {
	seed := randtest.Seed(t)
	var l listen.Latency
	var observers sync.WaitGroup
	lists := make([][]time.Duration, 40)
	for i := range lists {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		part := l.Part()
		observers.Go(func() {
			for range 500 {
				d := time.Duration(rng.Int64N(int64(2 * time.Second)))
				if rng.IntN(2) == 0 { // a bound itself, or near it
					d = listen.LatencyBounds[rng.IntN(len(listen.LatencyBounds))] + time.Duration(rng.IntN(3)-1)
				}
				n := 1 + rng.IntN(3)
				part.Observe(d, uint64(n))
				lists[i] = append(lists[i], slices.Repeat([]time.Duration{d}, n)...)
			}
		})
	}
	observers.Wait()
	var count uint64
	var sum time.Duration
	want := map[float64]uint64{}
	for _, d := range slices.Concat(lists...) {
		sum += d
		count++
		for _, bound := range listen.LatencyBounds {
			if d <= bound {
				want[bound.Seconds()]++
			}
		}
	}
	if n, s, got := l.Count(); n != count || s != sum || !maps.Equal(got, want) {
		t.Errorf("got %d in %v, %v; want %d in %v, %v", n, s, got, count, sum, want)
	}
	part := l.Part()
	if n := testing.AllocsPerRun(100, func() { part.Observe(time.Millisecond, 1) }); n != 0 {
		t.Errorf("an observation allocates %v times", n)
	}
}
