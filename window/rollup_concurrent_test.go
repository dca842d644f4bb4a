package window

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// Writers that fill a slot at the same time leave it full.
func TestConcurrentRollupOverflow(t *testing.T) {
	r := mustRollup(t, RollupConfig{Spans: []time.Duration{time.Second, time.Minute}})
	start := int64(1_000_000 * time.Second)
	r.addLive(start, maxSlotSum-1000)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 2000 {
				r.addLive(start, 512)
				if c, _ := r.countOf(moment{start, true}, time.Second); c.Hi > maxSlotSum || c.Lo > c.Hi {
					t.Errorf("count %+v", c)
					return
				}
			}
		})
	}
	wg.Wait()
	if c, _ := r.countOf(moment{start, true}, time.Minute); c.Lo != maxSlotSum || c.Hi != maxSlotSum || r.Stats().Saturated != 7999 {
		t.Errorf("count %+v, saturated %d", c, r.Stats().Saturated)
	}
}

// A writer that has read the clock and stops: it counts when it goes on, in the
// slot that the windows have reached meanwhile, and once.
func TestRollupStoppedWriter(t *testing.T) {
	r := mustRollup(t, RollupConfig{Spans: []time.Duration{time.Second, time.Minute}})
	at := int64(1_000_000 * time.Second)
	r.addLive(at, 1)
	later := at + int64(10*time.Second)
	r.addLive(later, 1)
	r.addLive(at, 1) // the writer, that saw the time of before
	if c, _ := r.countOf(moment{later, true}, time.Second); c.Lo != 2 || c.Hi != 2 {
		t.Errorf("count of the second %+v, want 2", c)
	}
	if c, _ := r.countOf(moment{later, true}, time.Minute); c.Lo != 3 || c.Hi != 3 {
		t.Errorf("count of the minute %+v, want 3", c)
	}
}

// TestConcurrentRollupConservation wants each span to hold what its part of a phase has
// added, with writers that bring now, a recent time, or one long ago.
func TestConcurrentRollupConservation(t *testing.T) {
	const writers, adds = 8, 300
	seed := randtest.Seed(t)
	short, long := 60*time.Millisecond, 60*time.Second
	r := mustRollup(t, RollupConfig{Spans: []time.Duration{short, time.Second, long}})
	rnd := rand.New(rand.NewPCG(seed, 0))
	var clock padded
	for phase := range phases() {
		// The phase begins with a slot of all spans, and far enough on.
		from := floorDiv(clock.Load()+int64(2*long)+rnd.Int64N(int64(3*long)), int64(time.Second))*int64(time.Second) + int64(time.Second)
		stop := from + int64(short) - int64(time.Millisecond)
		clock.Store(from)
		var recent, old [writers]uint64
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(phase*writers+writer+1)))
				for range adds {
					now := clock.Load()
					if next := now + rnd.Int64N(int64(short)/600); next < stop {
						clock.CompareAndSwap(now, next)
					}
					n := []uint64{1, 2, 300, 1<<32 + 1}[rnd.IntN(4)]
					switch rnd.IntN(4) {
					case 0:
						r.addAt(now, n)
						recent[writer] += n
					case 1:
						r.addAt(now-int64(10*time.Second), n)
						old[writer] += n
					default:
						r.addLive(now, n)
						recent[writer] += n
					}
				}
			})
		}
		wg.Wait()
		var wantRecent, wantOld uint64
		for writer := range writers {
			wantRecent += recent[writer]
			wantOld += old[writer]
		}
		counts := r.appendCounts(moment{clock.Load(), true}, nil)
		if counts[0].Lo != wantRecent || counts[1].Lo != wantRecent || counts[2].Lo != wantRecent+wantOld {
			t.Fatalf("phase %d: %+v; added were %d now and %d before", phase, counts, wantRecent, wantOld)
		}
	}
	if r.Stats().Late != 0 || r.Stats().Saturated != 0 {
		t.Errorf("late %d, saturated %d, want 0", r.Stats().Late, r.Stats().Saturated)
	}
}

// TestConcurrentRollupReadInterval wants a read beside writers, some of them late, to be
// at least what was added before it began and at most what was begun before it
// ended; a late event never shows in a span that it is too old for.
func TestConcurrentRollupReadInterval(t *testing.T) {
	const reads = 20_000
	seed := randtest.Seed(t)
	short, long := 60*time.Millisecond, 60*time.Second
	r := mustRollup(t, RollupConfig{Spans: []time.Duration{short, long}})
	rnd := rand.New(rand.NewPCG(seed, 0))
	var clock, begun, done, begunLate, doneLate padded
	for phase := range phases() / 10 {
		from := floorDiv(clock.Load()+int64(2*long)+rnd.Int64N(int64(3*long)), int64(time.Second))*int64(time.Second) + int64(time.Second)
		stop := from + int64(short) - int64(time.Millisecond)
		begun.Store(0)
		done.Store(0)
		begunLate.Store(0)
		doneLate.Store(0)
		clock.Store(from)
		var over padded
		var wg sync.WaitGroup
		for writer := range 2 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(2*phase+writer+1)))
				for over.Load() == 0 {
					now := clock.Load()
					if next := now + rnd.Int64N(int64(short)/6000); next < stop {
						clock.CompareAndSwap(now, next)
					}
					if rnd.IntN(3) == 0 {
						begunLate.Add(5)
						r.addAt(now-int64(50*time.Second), 5)
						doneLate.Add(5)
						continue
					}
					begun.Add(3)
					r.addLive(now, 3)
					done.Add(3)
				}
			})
		}
		var counts []Count
		for i := 0; i < reads || done.Load() == 0; i++ {
			before, lateBefore := uint64(done.Load()), uint64(doneLate.Load())
			if now := clock.Load(); i%2 == 0 {
				counts = r.appendCounts(moment{now, true}, counts[:0])
			} else {
				a, _ := r.countOf(moment{now, true}, short)
				b, _ := r.countOf(moment{now, true}, long)
				counts = append(counts[:0], a, b)
			}
			after, lateAfter := uint64(begun.Load()), uint64(begunLate.Load())
			a, b := counts[0], counts[1]
			if a.Lo < before || a.Hi > after || b.Lo < before+lateBefore || b.Hi > after+lateAfter {
				t.Errorf("phase %d: %+v, but %d and late %d had been added before, %d and late %d were begun after",
					phase, counts, before, lateBefore, after, lateAfter)
				break
			}
		}
		over.Store(1)
		wg.Wait()
	}
}

// Two goroutines in lockstep, a new slot every round; the controls are those of
// the Counter's rotation tests.
func TestConcurrentRollupRotation(t *testing.T) {
	config := RollupConfig{Spans: []time.Duration{60 * time.Millisecond, 180 * time.Millisecond}}
	turns := int64(100_000)
	if testing.Short() {
		turns = 10_000
	}
	t.Run("live", func(t *testing.T) { wantExact(t, rollupTurner{mustRollup(t, config), true}, turns) })
	t.Run("at", func(t *testing.T) { wantExact(t, rollupTurner{mustRollup(t, config), false}, turns/2) })
}

type rollupTurner struct {
	*Rollup
	live bool
}

func (r rollupTurner) add(slot int64) {
	if r.live {
		r.addLive(slot*int64(time.Millisecond), 1)
		return
	}
	r.addAt(slot*int64(time.Millisecond), 1)
}

func (r rollupTurner) total(slot int64) uint64 {
	c, _ := r.countOf(moment{slot * int64(time.Millisecond), false}, time.Millisecond)
	return c.Lo
}
