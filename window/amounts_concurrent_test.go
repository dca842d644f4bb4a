package window

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// The mutex of Sums and of a Rollup: concurrent adds are each counted once, and each concurrent read is a state between two
// adds. The models compare what a single goroutine sees.

// TestConcurrentSums has writers move money from one sum to the other, in slots that
// turn: the two always add up to nothing.
func TestConcurrentSums(t *testing.T) {
	s := mustSums(t, Window{Span: 10 * time.Millisecond, Slot: time.Millisecond}, 2)
	testTogether(t, func(rnd *rand.Rand, now int64) {
		n := rnd.Int64N(1 << (1 + rnd.IntN(40)))
		s.addLive(now, 0, n)
		if !s.AddAt(time.Unix(0, now), 0, -n) {
			s.addLive(now, 0, -n)
		}
		s.addLive(now, 1, 1)
	}, func(now int64) bool {
		lo, hi := s.bounds(moment{now, true}, 1)
		for range s.SlotsAt(time.Unix(0, now), 0) {
		}
		return lo <= hi && lo >= 0
	}, func(now int64, adds int64) {
		if got := s.appendSums(moment{now, true}, nil); got[0] != 0 || got[1] != adds || s.Stats().Saturated != 0 {
			t.Errorf("sums %d, want 0 and %d; %+v", got, adds, s.Stats())
		}
	})
}

// TestConcurrentRollup has each add count in all spans: a read sees it in none or in all.
func TestConcurrentRollup(t *testing.T) {
	r := mustRollup(t, RollupConfig{Spans: []time.Duration{60 * time.Millisecond, time.Second, time.Minute}})
	testTogether(t, func(rnd *rand.Rand, now int64) {
		if rnd.IntN(2) == 0 || !r.AddAt(time.Unix(0, now), 1) {
			r.addLive(now, 1)
		}
	}, func(now int64) bool {
		counts := r.appendCounts(moment{now, true}, nil)
		c, err := r.countOf(moment{now, true}, time.Second)
		return err == nil && c.Lo >= counts[1].Lo && counts[0].Hi == counts[2].Hi
	}, func(now int64, adds int64) {
		for _, c := range r.appendCounts(moment{now, true}, nil) {
			if c.Lo != uint64(adds) {
				t.Errorf("%+v, want %d", c, adds)
			}
		}
	})
}

// testTogether calls add from eight goroutines, at times of a clock that they push through the first ten milliseconds of a
// window, and concurrently read, which returns whether its values can be of one moment. whole gets the last time, and the
// number of adds.
func testTogether(t *testing.T, add func(rnd *rand.Rand, now int64), read func(now int64) bool, whole func(now, adds int64)) {
	const writers, span = 8, int64(9 * time.Millisecond)
	adds := 20_000
	if testing.Short() {
		adds = 2000
	}
	seed, start := randtest.Seed(t), int64(1_000_000*time.Second)
	var clock atomic.Int64
	clock.Store(start)
	var all, reader sync.WaitGroup
	var over atomic.Bool
	reader.Go(func() {
		for !over.Load() {
			if now := clock.Load(); !read(now) {
				t.Errorf("a read at %d mixes two moments", now)
				return
			}
		}
	})
	for writer := range writers {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(writer)))
			for range adds {
				now := clock.Load()
				clock.CompareAndSwap(now, min(now+rnd.Int64N(2*span/int64(writers*adds)+2), start+span))
				add(rnd, now)
			}
		})
	}
	all.Wait()
	over.Store(true)
	reader.Wait()
	whole(clock.Load(), int64(writers*adds))
}
