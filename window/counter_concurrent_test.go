package window

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// stage is a Counter and a clock that writers and readers share and push on. It runs in phases: at the start of each the
// clock jumps so far that earlier events are out of the window, and within a phase it stays in the window. So the window
// has exactly the adds of the phase, while writers replace slots all the time.
type stage struct {
	c           *Counter
	counts      counts // c, or a control in its place
	width       int64
	clock, stop atomic.Int64 // nanoseconds; clock never passes stop

	begun, done atomic.Uint64 // adds of this phase
}

// The ring has one word more than the window has slots, so that a slot is replaced as soon as it has left the window.
const stageSlots = 15

func newStage(t *testing.T) *stage {
	w := Window{Span: stageSlots * time.Millisecond, Slot: time.Millisecond}
	c := mustCounter(t, w)
	return &stage{c: c, counts: exact{c}, width: int64(w.Slot)}
}

// nextPhase jumps 1 to 4 windows on, and sometimes beyond all tags. The phase ends one slot before the end of the window.
func (s *stage) nextPhase(rnd *rand.Rand) {
	from := s.stop.Load() + (stageSlots+1+rnd.Int64N(3*stageSlots))*s.width
	if rnd.IntN(8) == 0 && from < 4e18 {
		from += 1<<25*16*s.width + rnd.Int64N(32)*s.width
	}
	s.begun.Store(0)
	s.done.Store(0)
	s.stop.Store(from + (stageSlots-1)*s.width)
	s.clock.Store(from / s.width * s.width)
}

// push moves the clock on by up to step, and returns a time that may be behind
// it by the time it is used.
func (s *stage) push(rnd *rand.Rand, step int64) int64 {
	now := s.clock.Load()
	if next := now + rnd.Int64N(step); next < s.stop.Load() {
		s.clock.CompareAndSwap(now, next)
	}
	return now
}

func (s *stage) add(rnd *rand.Rand) {
	n := []uint64{1, 2, 256, 257, 10_000}[rnd.IntN(5)]
	now := s.push(rnd, s.width/10)
	if rnd.IntN(8) == 0 {
		runtime.Gosched()
	}
	s.begun.Add(n)
	s.counts.add(now, n, rnd)
	s.done.Add(n)
}

// counts is what a stage adds to.
type counts interface {
	add(now int64, n uint64, rnd *rand.Rand)
	sum(now int64) uint64
}

// exact is a Counter that is added to in all ways, and that assigns its stripes
// again now and then.
type exact struct{ *Counter }

func (c exact) add(now int64, n uint64, rnd *rand.Rand) {
	if rnd.IntN(500) == 0 {
		c.ring.Restripe()
	}
	if rnd.IntN(4) == 0 {
		c.addAt(now, n)
	} else {
		c.ring.AddLive(now, n)
	}
}

func (c exact) sum(now int64) uint64 {
	return c.Counter.sum(moment{now, true}, 0)
}

// phases is 500, and in the long form 25,000: 1e8 adds of TestConcurrentConservation, and
// 1e7 reads of TestConcurrentReadInterval.
func phases() int {
	switch {
	case longTests():
		return 25_000
	case testing.Short():
		return 50
	}
	return 500
}

// TestConcurrentReadInterval requires a read beside 2 writers to return at least the adds that finished before it began and
// at most those that began before it ended.
func TestConcurrentReadInterval(t *testing.T) {
	seed := randtest.Seed(t)
	s := newStage(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for phase := range phases() / 50 {
		s.nextPhase(rnd)
		if wrong := s.readPhase(seed, phase, 20_000, s.read); wrong != "" {
			t.Fatalf("phase %d: %s", phase, wrong)
		}
	}
}

// TestConcurrentReadIntervalControl reads in two broken ways, which must be caught: a sum
// kept from an earlier read, and a slot counted twice.
func TestConcurrentReadIntervalControl(t *testing.T) {
	seed := randtest.Seed(t)
	s := newStage(t)
	rnd := rand.New(rand.NewPCG(seed, 0))
	reads := 0
	var kept uint64
	for name, read := range map[string]func(*rand.Rand) (lo, hi uint64){
		"kept": func(rnd *rand.Rand) (uint64, uint64) {
			if reads++; reads%100 == 1 {
				_, kept = s.read(rnd)
				for s.done.Load() <= kept { // so that the next read is surely too low
					runtime.Gosched()
				}
			}
			return kept, kept
		},
		"twice": func(rnd *rand.Rand) (uint64, uint64) {
			lo, hi := s.read(rnd)
			return lo, hi + hi/2 + 1
		},
	} {
		caught := false
		for phase := 0; phase < 20 && !caught; phase++ {
			s.nextPhase(rnd)
			reads, kept = 0, 0
			caught = s.readPhase(seed, phase, 20_000, read) != ""
		}
		if !caught {
			t.Errorf("the broken read %q was not caught", name)
		}
	}
}

// readPhase reads beside 2 writers and returns what was wrong, "" if nothing.
func (s *stage) readPhase(seed uint64, phase, reads int, read func(*rand.Rand) (lo, hi uint64)) string {
	const writers = 2
	var wg sync.WaitGroup
	var over atomic.Bool
	for writer := range writers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, uint64(phase*writers+writer+1)))
			for !over.Load() {
				s.add(rnd)
			}
		})
	}
	defer func() { over.Store(true); wg.Wait() }()
	rnd := rand.New(rand.NewPCG(seed, uint64(phase)))
	for i := 0; i < reads || s.done.Load() == 0; i++ {
		before := s.done.Load()
		lo, hi := read(rnd)
		after := s.begun.Load()
		if lo < before || hi > after || lo > hi {
			return fmt.Sprintf("read %d to %d, but %d adds had finished before and %d begun after", lo, hi, before, after)
		}
	}
	return ""
}

// read returns a live read as the bounds it gives: lo and hi, or twice a sum.
func (s *stage) read(rnd *rand.Rand) (lo, hi uint64) {
	now := s.push(rnd, s.width/10)
	if rnd.IntN(2) == 0 {
		sum := s.c.sum(moment{now, true}, 0)
		return sum, sum
	}
	lo, hi, _ = s.c.bounds(moment{now, true}, int64(s.c.window.Span))
	return lo, hi
}

// turning has the adds in TestConcurrentReadWhileTurning: the slot in which each began and the slot in which it ended. An
// add counts in one of these slots, or in one between.
type turning struct {
	begun   atomic.Uint64
	beganIn [turningSlots]atomic.Uint64 // recorded when the add has finished
	endedIn [turningSlots]atomic.Uint64
}

const turningSlots = 4000

// TestConcurrentReadWhileTurning is TestConcurrentReadInterval with slots that expire all the time: a sum must contain the
// adds that finished before it began, in slots that stayed in the window, and may contain the adds that had not ended
// before the window began.
func TestConcurrentReadWhileTurning(t *testing.T) {
	seed := randtest.Seed(t)
	reads := 0
	for run := range phases() {
		s := newStage(t)
		s.stop.Store((turningSlots - 1) * s.width)
		x := new(turning)
		var wg sync.WaitGroup
		for writer := range 2 {
			wg.Go(func() {
				rnd := rand.New(rand.NewPCG(seed, uint64(run*2+writer)))
				for s.clock.Load() < s.stop.Load()-s.width {
					now := s.push(rnd, 8*s.width)
					x.begun.Add(1)
					s.c.ring.AddLive(now, 1)
					x.beganIn[now/s.width].Add(1)
					x.endedIn[s.clock.Load()/s.width].Add(1)
				}
			})
		}
		for s.clock.Load() < s.stop.Load()-s.width {
			reads++
			x.checkRead(t, s)
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
	t.Logf("%d reads", reads)
}

func (x *turning) checkRead(t *testing.T, s *stage) {
	t.Helper()
	now := s.clock.Load()
	from := now / s.width
	first := max(0, from-stageSlots+1)
	var finished [stageSlots]uint64
	for i := first; i <= from; i++ {
		finished[i-first] = x.beganIn[i].Load()
	}
	sum := s.c.sum(moment{now, true}, 0)
	to := s.clock.Load() / s.width
	most := x.begun.Load()
	for i := range first {
		most -= x.endedIn[i].Load()
	}
	least := uint64(0)
	for i := max(first, to-stageSlots+1); i <= from; i++ {
		least += finished[i-first]
	}
	if sum < least || sum > most {
		t.Errorf("read between slots %d and %d: %d, must be from %d to %d", from, to, sum, least, most)
	}
}

// If two adds to the same far future come at the same moment, one is refused,
// and the other confirms it.
func TestFutureConcurrent(t *testing.T) {
	needTwoCores(t)
	rounds, until := budget(100_000)
	c := mustCounter(t, Window{Span: time.Second, Slot: 100 * time.Millisecond, Ahead: time.Minute})
	c.AddAt(time.Unix(0, 0), 1)
	at := func(round int64) time.Time { return time.Unix(3600*round, 0) }
	lockstep(min(rounds, 999_999), until, func(_ int, round int64) { c.AddAt(at(round), 1) }, func(round int64) bool {
		if got := c.SumAt(at(round)); got != 1 || c.Stats().Future != uint64(round) {
			t.Errorf("round %d: %d counted and %d refused in all, want 1 and %d", round, got, c.Stats().Future, round)
			return false
		}
		return true
	})
}
