package window

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lately-go/lately/internal/test/randtest"
)

// TestConcurrentConservation requires the window to have exactly what was added after each phase of 8 to 64 writers.
func TestConcurrentConservation(t *testing.T) {
	s := newStage(t)
	if wrong := s.conserve(randtest.Seed(t), phases()); wrong != "" {
		t.Fatal(wrong)
	}
	if s.c.Stats().Late != 0 {
		t.Errorf("%d adds were refused, all were in the window", s.c.Stats().Late)
	}
}

// conserve runs a number of phases and returns what was wrong, "" if nothing.
func (s *stage) conserve(seed uint64, phases int) string {
	rnd := rand.New(rand.NewPCG(seed, 0))
	for phase := range phases {
		s.nextPhase(rnd)
		writers := 8 << (phase % 4)
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(phase*64+writer+1)))
				for range 4096 / writers {
					s.add(rnd)
				}
			})
		}
		wg.Wait()
		if got, want := s.counts.sum(s.clock.Load()), s.done.Load(); got != want {
			return fmt.Sprintf("phase %d: the window holds %d, added were %d", phase, got, want)
		}
	}
	return ""
}

// TestConcurrentConservationControl has the same stage find out three windows that do not
// conserve, and pass one that does. Each of the three is exact but when the clock
// has jumped, and gives way where being stopped does harm, so that one core is
// enough to catch it.
func TestConcurrentConservationControl(t *testing.T) {
	seed := randtest.Seed(t)
	for _, c := range []struct {
		name  string
		is    counts
		exact bool
	}{
		{"two find an old slot and both reset it", new(resetsTwice), false},
		{"stamped first and reset a moment later", new(resetsLate), false},
		{"counted again when the window has moved on", new(countsAgain), false},
		{"under a lock", new(locked), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.counts = c.is
			switch wrong := s.conserve(seed, 50); {
			case wrong == "" && !c.exact:
				t.Fatal("was not caught: the conservation test proves nothing")
			case wrong != "" && c.exact:
				t.Fatalf("was caught, and is right: %s", wrong)
			case wrong != "":
				t.Log(wrong)
			}
		})
	}
}

// apart is a window whose slots have stamp and count in two words.
type apart [stageSlots + 1]struct {
	stamp atomic.Int64
	count atomic.Uint64
}

const stageWidth = 1_000_000

func (x *apart) sum(now int64) (sum uint64) {
	for slot := now/stageWidth - stageSlots + 1; slot <= now/stageWidth; slot++ {
		if p := &x[slot%int64(len(x))]; p.stamp.Load() == slot {
			sum += p.count.Load()
		}
	}
	return sum
}

// resetsTwice reads the stamp and then acts: the second of two writers deletes what the first has counted.
type resetsTwice struct{ apart }

func (x *resetsTwice) add(now int64, n uint64, _ *rand.Rand) {
	slot := now / stageWidth
	p := &x.apart[slot%int64(len(x.apart))]
	if p.stamp.Load() != slot {
		runtime.Gosched()
		p.count.Store(0)
		p.stamp.Store(slot)
	}
	p.count.Add(n)
}

// resetsLate elects the writer that resets, and deletes what is counted between its two steps.
type resetsLate struct{ apart }

func (x *resetsLate) add(now int64, n uint64, _ *rand.Rand) {
	slot := now / stageWidth
	p := &x.apart[slot%int64(len(x.apart))]
	if stamp := p.stamp.Load(); stamp != slot && p.stamp.CompareAndSwap(stamp, slot) {
		runtime.Gosched()
		p.count.Store(0)
	}
	p.count.Add(n)
}

// locked does both steps under a lock.
type locked struct {
	apart
	mu     sync.Mutex
	newest atomic.Int64
}

func (x *locked) add(now int64, n uint64, _ *rand.Rand) { x.put(now/stageWidth, n) }

func (x *locked) put(slot int64, n uint64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := &x.apart[slot%int64(len(x.apart))]
	if p.stamp.Load() != slot {
		p.stamp.Store(slot)
		p.count.Store(0)
	}
	p.count.Add(n)
	x.newest.Store(max(slot, x.newest.Load()))
}

// countsAgain has a lock, but takes what it has counted for deleted if the window has moved on meanwhile, and counts it
// again.
type countsAgain struct{ locked }

func (x *countsAgain) add(now int64, n uint64, _ *rand.Rand) {
	slot, before := now/stageWidth, x.newest.Load()
	x.put(slot, n)
	runtime.Gosched()
	if after := x.newest.Load(); after > max(before, slot) {
		x.put(after, n)
	}
}
