package ring

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"unsafe"
)

// Lanes lie on cache lines of their own.
func TestEraSize(t *testing.T) {
	if got := unsafe.Sizeof(era{}); got != 64 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("an era has %d bytes, want 64", got)
	}
	if e := newEra(0, 1); len(e.words) != 2 || cap(e.words) != 2 {
		t.Errorf("an era of 2 words has %d, capacity %d", len(e.words), cap(e.words))
	}
}

// A ring that nobody meets at stays small; one that is fought over grows, up to
// its limit and no further, and is dealt out anew ever more rarely.
func TestGrowsWhereContentionIs(t *testing.T) {
	r := newRing(10)
	for slot := range int64(100_000) {
		r.AddLive(slot*width, 1)
		if slot%10 == 0 {
			r.meet(slot) // now and then is not enough
		}
	}
	if r.spread.Load() != nil {
		t.Fatal("adders who never meet twice in a slot were spread")
	}
	deals, last := 0, uint64(0)
	for range 1_000_000 {
		r.meet(7)
		s := r.spread.Load()
		if s == nil {
			continue
		}
		if deal := s.deal.Load(); deal != last {
			deals, last = deals+1, deal
		}
		if s.used() > limit() || s.used() < 2 {
			t.Fatalf("%d lanes, want 2 to %d", s.used(), limit())
		}
	}
	s := r.spread.Load()
	if s == nil || s.used() != limit() {
		t.Fatal("adders who meet all the time were not spread as far as possible")
	}
	if deals > 30 {
		t.Errorf("a million meetings led to %d deals, want fewer each time", deals)
	}
}

func TestDeal(t *testing.T) {
	for lanes := 2; lanes <= maxLanes; lanes *= 2 {
		s := new(spread)
		hit := map[*lane]bool{}
		for range 100 * lanes {
			s.deal.Store(newDeal(lanes))
			if s.used() != lanes {
				t.Fatalf("a deal to %d lanes is to %d", lanes, s.used())
			}
			hit[s.pick()] = true
		}
		if len(hit) < lanes*9/10 || len(hit) > lanes {
			t.Errorf("%d lanes: adders got %d of them", lanes, len(hit))
		}
	}
	if n := limit(); n < 2 || n > maxLanes || n&(n-1) != 0 || n < min(maxLanes, runtime.GOMAXPROCS(0)) {
		t.Errorf("limit %d for %d cores", n, runtime.GOMAXPROCS(0))
	}
}

// TestLanesFallBehind adds in lanes by turns, each of which has missed what the
// others did meanwhile: slots, turns of the ring, whole eras.
func TestLanesFallBehind(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, slots := range []int{1, 2, 5, 10} {
		r := newRing(slots)
		r.mustAdd(t, 0, 0)
		want := map[int64]uint64{}
		slot := int64(0)
		far := append(steps(r), 1, 1, 1, 1, 2, 3, int64(slots))
		for range 20_000 {
			r.Spread()
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
			// What was added before slot 0 was reached is kept if it is in the window.
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

// Adders that are spread while they add lose nothing.
func TestSpreadWhileAdding(t *testing.T) {
	const writers, adds = 4, 20_000
	for range 20 {
		r := newRing(5)
		var wg sync.WaitGroup
		for range writers {
			wg.Go(func() {
				for i := range adds {
					if i%16 == 0 {
						r.Spread()
					}
					r.AddLive(int64(i/5000)*width, 1) // 4 slots, within the window
				}
			})
		}
		wg.Wait()
		r.wantSum(t, 0, 4, writers*adds)
	}
}
