package window

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// TestConcurrentSumsConservation wants the window to hold what was added, after phases of
// writers that push a shared clock through it; at the start of each phase the
// clock jumps so far that nothing of before is left.
func TestConcurrentSumsConservation(t *testing.T) {
	const writers, adds, slots = 8, 400, 10
	seed := randtest.Seed(t)
	w := Window{Span: slots * time.Millisecond, Slot: time.Millisecond}
	s := mustSums(t, w, 2)
	rnd := rand.New(rand.NewPCG(seed, 0))
	var clock padded
	for phase := range phases() {
		from := clock.Load() + (slots+1+rnd.Int64N(3*slots))*int64(w.Slot)
		from -= from % int64(w.Slot)
		stop := from + (slots-1)*int64(w.Slot)
		clock.Store(from)
		var in, out [writers]int64
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(phase*writers+writer+1)))
				for range adds {
					now := clock.Load()
					if next := now + rnd.Int64N(int64(w.Slot)/10); next < stop {
						clock.CompareAndSwap(now, next)
					}
					n := rnd.Int64N(1 << (1 + rnd.IntN(40)))
					in[writer] += n
					out[writer] -= n / 2
					if rnd.IntN(4) == 0 {
						s.AddAt(time.Unix(0, now), 0, n)
					} else {
						s.addLive(now, 0, n)
					}
					s.addLive(now, 1, -n/2)
				}
			})
		}
		wg.Wait()
		var want [2]int64
		for writer := range writers {
			want[0] += in[writer]
			want[1] += out[writer]
		}
		got := s.appendSums(moment{clock.Load(), true}, nil)
		for i := range 2 {
			if got[i] != want[i] {
				t.Fatalf("phase %d, sum %d: %d, added were %d", phase, i, got[i], want[i])
			}
		}
	}
	if s.Stats().Late != 0 {
		t.Errorf("%d adds were refused, all were in the window", s.Stats().Late)
	}
}

// TestConcurrentSumsReadInterval wants a read beside writers to lie between what was added
// before it began and what was begun before it ended, while the window turns.
func TestConcurrentSumsReadInterval(t *testing.T) {
	const slots, reads = 10, 20_000
	seed := randtest.Seed(t)
	w := Window{Span: slots * time.Millisecond, Slot: time.Millisecond}
	s := mustSums(t, w, 2)
	var clock, begun, done padded
	rnd := rand.New(rand.NewPCG(seed, 0))
	for phase := range phases() / 10 {
		from := clock.Load() + (slots+1+rnd.Int64N(3*slots))*int64(w.Slot)
		from -= from % int64(w.Slot)
		stop := from + (slots-1)*int64(w.Slot)
		begun.Store(0)
		done.Store(0)
		clock.Store(from)
		var over padded
		var wg sync.WaitGroup
		for writer := range 2 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(2*phase+writer+1)))
				for over.Load() == 0 {
					now := clock.Load()
					if next := now + rnd.Int64N(int64(w.Slot)/10); next < stop {
						clock.CompareAndSwap(now, next)
					}
					begun.Add(3)
					s.addLive(now, 0, 3)
					done.Add(3)
				}
			})
		}
		for i := 0; i < reads || done.Load() == 0 || clock.Load() < from+5*int64(w.Slot); i++ {
			before := done.Load()
			lo, hi := s.bounds(moment{clock.Load(), true}, 0)
			if after := begun.Load(); lo < before || hi > after {
				t.Errorf("phase %d: read %d to %d, but %d was added before and %d begun after", phase, lo, hi, before, after)
				break
			}
		}
		over.Store(1)
		wg.Wait()
	}
}

// A read beside a window that moves on sees it before or after, never half of
// the slots cleared.
func TestConcurrentSumsReadBesideJump(t *testing.T) {
	needTwoCores(t)
	const slots, jump = 1000, 600
	s := mustSums(t, Window{Span: slots * time.Millisecond, Slot: time.Millisecond}, 1)
	var filled, jumped padded // rounds begun
	var wg sync.WaitGroup
	defer wg.Wait()
	defer filled.Store(math.MaxInt64)
	wg.Go(func() {
		for round := int64(1); ; round++ {
			if filled.await(round) == math.MaxInt64 {
				return
			}
			s.AddAt(time.UnixMilli(round*2*slots+jump), 0, 0)
			jumped.Store(round)
		}
	})
	rounds, until := budget(500)
	for round := int64(1); round <= rounds && time.Now().Before(until); round++ {
		at := round * 2 * slots
		for slot := at - slots + 1; slot <= at; slot++ {
			s.AddAt(time.UnixMilli(slot), 0, 1)
		}
		filled.Store(round)
		for over := false; !over; {
			over = jumped.Load() == round
			if sum := s.sum(moment{at * int64(s.window.Slot), true}, 0); sum != slots && sum != slots-jump {
				t.Fatalf("round %d: sum %d, want %d before the jump or %d after", round, sum, slots, slots-jump)
			}
		}
	}
}

// Two goroutines in lockstep, a new slot every round; the controls are those of
// the Counter's rotation tests.
func TestConcurrentSumsRotation(t *testing.T) {
	w := Window{Span: rotationSlots * time.Millisecond, Slot: time.Millisecond}
	turns := int64(200_000)
	if testing.Short() {
		turns = 20_000
	}
	t.Run("live", func(t *testing.T) { wantExact(t, sumsTurner{mustSums(t, w, 1), true}, turns) })
	t.Run("at", func(t *testing.T) { wantExact(t, sumsTurner{mustSums(t, w, 1), false}, turns/4) })
}

type sumsTurner struct {
	*Sums
	live bool
}

func (s sumsTurner) add(slot int64) {
	if s.live {
		s.addLive(slot*int64(s.window.Slot), 0, 1)
		return
	}
	s.AddAt(time.Unix(0, slot*int64(s.window.Slot)), 0, 1)
}

func (s sumsTurner) total(slot int64) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uint64(s.amounts.sum(0, slotRange{first: slot, last: slot}))
}

// Many writers that overflow a slot at the same time leave it full.
func TestSumsOverflowConcurrent(t *testing.T) {
	s := mustSums(t, Last(time.Minute), 2)
	at := int64(time.Second)
	s.addLive(at, 0, math.MaxInt64)
	s.addLive(at, 1, math.MinInt64)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				s.addLive(at, 0, 1<<32)
				s.addLive(at, 1, -1<<32)
				if s.sum(moment{at, true}, 0) != maxSlotSum {
					t.Error("a full slot does not read as full")
					return
				}
			}
		})
	}
	wg.Wait()
	if got := s.appendSums(moment{at, true}, nil); got[0] != maxSlotSum || got[1] != -maxSlotSum || s.Stats().Saturated != 16002 {
		t.Errorf("sums %d, saturated %d", got, s.Stats().Saturated)
	}
}
