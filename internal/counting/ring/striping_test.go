package ring

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/lately-go/lately/internal/test/randtest"
)

// Stripes lie on cache lines of their own.
func TestGenerationSize(t *testing.T) {
	if got := unsafe.Sizeof(generation{}); got != 64 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("a generation has %d bytes, want 64", got)
	}
	if e := newGeneration(0, 1); len(e.words) != 2 || cap(e.words) != 2 {
		t.Errorf("a generation of 2 words has %d, capacity %d", len(e.words), cap(e.words))
	}
}

// A ring without contention stays small; one with contention grows, up to its limit
// and no further, and its stripes are assigned again ever more rarely.
func TestGrowsWhereContentionIs(t *testing.T) {
	r := newRing(10)
	for slot := range int64(100_000) {
		r.AddLive(slot*width, 1)
		if slot%10 == 0 {
			r.contend(slot) // now and then is not enough
		}
	}
	if r.striping.Load() != nil {
		t.Fatal("adders that never contend twice in a slot got stripes")
	}
	assignments, last := 0, uint64(0)
	for range 1_000_000 {
		r.contend(7)
		s := r.striping.Load()
		if s == nil {
			continue
		}
		if assignment := s.assignment.Load(); assignment != last {
			assignments, last = assignments+1, assignment
		}
		if s.used() > limit() || s.used() < 2 {
			t.Fatalf("%d stripes, want 2 to %d", s.used(), limit())
		}
	}
	s := r.striping.Load()
	if s == nil || s.used() != limit() {
		t.Fatal("adders that contend all the time did not get all stripes")
	}
	if assignments > 30 {
		t.Errorf("a million contended adds led to %d assignments, want fewer each time", assignments)
	}
}

func TestAssignment(t *testing.T) {
	for stripes := 2; stripes <= maxStripes; stripes *= 2 {
		s := new(striping)
		hit := map[*stripe]bool{}
		for range 100 * stripes {
			s.assignment.Store(newAssignment(stripes))
			if s.used() != stripes {
				t.Fatalf("an assignment to %d stripes is to %d", stripes, s.used())
			}
			hit[s.pick()] = true
		}
		if len(hit) < stripes*9/10 || len(hit) > stripes {
			t.Errorf("%d stripes: adders got %d of them", stripes, len(hit))
		}
	}
	if n := limit(); n < 2 || n > maxStripes || n&(n-1) != 0 || n < min(maxStripes, runtime.GOMAXPROCS(0)) {
		t.Errorf("limit %d for %d cores", n, runtime.GOMAXPROCS(0))
	}
}

// TestStripesFallBehind adds in stripes by turns; each has missed what the others did meanwhile: slots, turns of the ring,
// whole generations.
func TestStripesFallBehind(t *testing.T) {
	seed := randtest.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, slots := range []int{1, 2, 5, 10} {
		r := newRing(slots)
		r.mustAdd(t, 0, 0)
		want := map[int64]uint64{}
		slot := int64(0)
		far := append(steps(r), 1, 1, 1, 1, 2, 3, int64(slots))
		for range 20_000 {
			r.Restripe()
			switch rnd.IntN(4) {
			case 0:
				if step := far[rnd.IntN(len(far))]; step > 0 && slot < 1<<56 && rnd.IntN(8) == 0 {
					slot += step
				} else {
					slot++
				}
				r.AddLive(slot*width, 3)
				want[slot] += 3
			case 1: // behind, but in the window
				at := slot - rnd.Int64N(int64(slots)+1)
				r.mustAdd(t, at, 5)
				want[at] += 5
			case 2: // live, by a clock that is behind
				at := slot - rnd.Int64N(3*int64(slots)+3)
				r.AddLive(at*width, 7)
				if at <= slot-int64(slots) {
					at = slot
				}
				want[at] += 7
			case 3:
				if at := slot - int64(slots) - 1 - rnd.Int64N(100); r.AddAt(at*width, 9) {
					t.Fatalf("an add to slot %d was accepted, %d slots before the newest", at, slot-at)
				}
			}
			// Adds before slot 0 was reached are kept if they are in the window.
			for s := slot - int64(slots); s <= slot; s++ {
				r.wantSum(t, s, s, want[s])
			}
			if len(want) > 1000 {
				clear(want)
				slot += int64(slots) + 1
				r.mustAdd(t, slot, 0)
			}
		}
	}
}

// Adders that get stripes while they add lose nothing.
func TestConcurrentRestripeWhileAdding(t *testing.T) {
	const writers, adds = 4, 20_000
	for range 20 {
		r := newRing(5)
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for i := range adds {
					if i%16 == 0 {
						r.Restripe()
					}
					r.AddLive(int64(i/5000)*width, 1) // 4 slots, within the window
				}
			})
		}
		wg.Wait()
		r.wantSum(t, 0, 4, writers*adds)
	}
}
