package window

import (
	"flag"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// Two goroutines in lockstep, and a new slot every round: both find the slot of
// the round before and both want to move on, which is when a window that stamps
// and clears in two steps loses counts. A wall clock turns a slot ten times a
// second and finds nothing; this turns it millions of times a second.
//
//	go test -run Rotation -rotations 100000000

var rotations = flag.Int64("rotations", 0, "rounds of the rotation tests; 0 does as many as fit in a few seconds")

// turner is a ring that counts in slots of an injected time.
type turner interface {
	add(slot int64)
	total(slot int64) uint64
}

// lockstep runs rounds in which two goroutines call add(0, round) and
// add(1, round) at the same moment, and then one calls check(round). It ends
// when check reports false, after that many rounds, or when time is up, and
// returns the number of rounds done.
func lockstep(rounds int64, until time.Time, add func(who int, round int64), check func(round int64) bool) int64 {
	var start, done padded
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for round := int64(1); ; round++ {
			if start.await(round) == math.MaxInt64 {
				return
			}
			add(1, round)
			done.Store(round)
		}
	})
	defer start.Store(math.MaxInt64)
	for round := int64(1); round <= rounds; round++ {
		start.Store(round)
		for range round % 32 { // lets the two meet at every offset
			start.Load()
		}
		add(0, round)
		done.await(round)
		if !check(round) || round%4096 == 0 && time.Now().After(until) {
			return round
		}
	}
	return rounds
}

// padded is an atomic on a cache line of its own.
type padded struct {
	_ [64]byte
	atomic.Int64
	_ [56]byte
}

// await spins until the value is at least round and returns it. It yields now
// and then, so that it ends on one core too.
func (p *padded) await(round int64) int64 {
	for i := 1; ; i++ {
		if v := p.Load(); v >= round {
			return v
		}
		if i%1024 == 0 {
			runtime.Gosched()
		}
	}
}

func needTwoCores(t *testing.T) {
	t.Helper()
	if runtime.GOMAXPROCS(0) < 2 || runtime.NumCPU() < 2 {
		t.Skip("SKIPPED: two goroutines must run at the same time, and there is one core")
	}
}

// budget returns how many rounds to do, and until when at most.
func budget(normal int64) (int64, time.Time) {
	switch {
	case *rotations > 0:
		return *rotations, time.Now().Add(24 * time.Hour)
	case testing.Short():
		return normal / 50, time.Now().Add(5 * time.Second)
	}
	return normal, time.Now().Add(10 * time.Second)
}

// wantExact runs x and wants every slot to hold what both have added.
func wantExact(t *testing.T, x turner, normal int64) {
	needTwoCores(t)
	rounds, until := budget(normal)
	var wrong, first int64
	done := lockstep(rounds, until, func(_ int, round int64) { x.add(round) }, func(round int64) bool {
		if got := x.total(round); got != 2 {
			if wrong++; wrong == 1 {
				first = round
			}
		}
		return true
	})
	t.Logf("%d wrong of %d rotations", wrong, done)
	if wrong > 0 {
		t.Errorf("%d of %d slots are wrong, the first in round %d", wrong, done, first)
	}
}

// wantCaught runs x until a slot has not what both have added. Two goroutines
// that have a loaded machine's cores by turns may never meet, so x gives way
// where being stopped does harm.
func wantCaught(t *testing.T, x turner) {
	const rounds = 1_000_000
	caught := false
	round := lockstep(rounds, time.Now().Add(time.Hour), func(_ int, round int64) { x.add(round) }, func(round int64) bool {
		caught = x.total(round) != 2
		return !caught
	})
	if !caught {
		t.Fatalf("a window that loses counts was not caught in %d rounds: the rotation test proves nothing", rounds)
	}
	t.Logf("caught in round %d", round)
}

const rotationSlots = 10

func TestConcurrentRotationAddAt(t *testing.T) {
	wantExact(t, counterTurner{newTurningCounter(t)}, 5_000_000)
}

func TestConcurrentRotationAddLive(t *testing.T) {
	wantExact(t, liveTurner{newTurningCounter(t)}, 5_000_000)
}

// Each of the two is in its own stripe, most of the time, and in others again and again.
func TestConcurrentRotationSpread(t *testing.T) {
	wantExact(t, spreadTurner{newTurningCounter(t)}, 5_000_000)
}

func TestConcurrentRotationControlClearsLate(t *testing.T) {
	wantCaught(t, new(clearsLate))
}

func TestConcurrentRotationControlStampsFirst(t *testing.T) {
	wantCaught(t, new(stampsFirst))
}

func newTurningCounter(t *testing.T) *Counter {
	return mustCounter(t, Window{Span: rotationSlots * time.Millisecond, Slot: time.Millisecond})
}

type counterTurner struct{ *Counter }

func (c counterTurner) add(slot int64) { c.AddAt(time.UnixMilli(slot), 1) }
func (c counterTurner) total(slot int64) uint64 {
	count, _ := c.SlotAt(time.UnixMilli(slot))
	return count
}

// liveTurner adds as Add does, with a clock that turns a slot every round.
type liveTurner struct{ *Counter }

func (c liveTurner) add(slot int64)          { c.ring.AddLive(slot*int64(time.Millisecond), 1) }
func (c liveTurner) total(slot int64) uint64 { return counterTurner(c).total(slot) }

type spreadTurner struct{ *Counter }

func (c spreadTurner) add(slot int64) {
	if slot%1000 == 0 {
		c.ring.Restripe()
	}
	liveTurner(c).add(slot)
}
func (c spreadTurner) total(slot int64) uint64 { return counterTurner(c).total(slot) }

// clearsLate is the lock-free pattern of a published access counter: a swap of the last written slot elects the writer that
// clears, and others count meanwhile.
type clearsLate struct {
	last   atomic.Int64
	counts [rotationSlots]atomic.Uint64
}

func (x *clearsLate) add(slot int64) {
	if last := x.last.Load(); last != slot && x.last.CompareAndSwap(last, slot) {
		runtime.Gosched()
		for s := last + 1; s <= slot; s++ {
			x.counts[s%rotationSlots].Store(0)
		}
	}
	x.counts[slot%rotationSlots].Add(1)
}

func (x *clearsLate) total(slot int64) uint64 { return x.counts[slot%rotationSlots].Load() }

// stampsFirst publishes the new stamp of a slot and then resets its count, as
// sentinel-golang orders the two; a model of it, not its code.
type stampsFirst struct {
	slots [rotationSlots]struct {
		stamp atomic.Int64
		count atomic.Uint64
	}
}

func (x *stampsFirst) add(slot int64) {
	p := &x.slots[slot%rotationSlots]
	if stamp := p.stamp.Load(); stamp != slot && p.stamp.CompareAndSwap(stamp, slot) {
		runtime.Gosched()
		p.count.Store(0)
	}
	p.count.Add(1)
}

func (x *stampsFirst) total(slot int64) uint64 { return x.slots[slot%rotationSlots].count.Load() }

// TestConcurrentRotationJumps is the same with steps of all lengths, up to those at which stamps recur, and with one of the
// two behind the other but in the window. Every slot of the window is checked after each round.
func TestConcurrentRotationJumps(t *testing.T) {
	needTwoCores(t)
	const slots, size = 3, 4
	rnd := rand.New(rand.NewPCG(randtest.Seed(t), 0))
	c := mustCounter(t, Window{Span: slots * time.Millisecond, Slot: time.Millisecond})
	rounds, until := budget(1_000_000)
	near := []int64{1, 1, 1, 2, 3, 4, 5, 7, 8, 9}
	far := []int64{1 << 25 * size, 1<<25*size + 1, 1<<25*size + 3, 1 << 26 * size, 1 << 27 * size}

	var counts [slots + 1]uint64 // of slots newest to newest-slots
	at := int64(-4e12)           // the slot of the one ahead, and how far the other is behind
	var behind int64
	plan := func() {
		step := near[rnd.IntN(len(near))]
		if rnd.IntN(200) == 0 && at < 4e12 {
			step = far[rnd.IntN(len(far))] - rnd.Int64N(2)
		}
		at += step
		behind = rnd.Int64N(slots + 1)
		var next [slots + 1]uint64
		for s := range next {
			if from := int64(s) - step; from >= 0 {
				next[s] = counts[from]
			}
		}
		next[0]++
		next[behind]++
		counts = next
	}
	plan()
	wrong := int64(0)
	done := lockstep(rounds, until, func(who int, _ int64) {
		slot := at - behind*int64(who)
		if !c.AddAt(time.UnixMilli(slot), 1) {
			t.Errorf("an add to slot %d, %d before the newest, was refused", slot, at-slot)
		}
	}, func(round int64) bool {
		for s := range counts {
			if got, ok := c.SlotAt(time.UnixMilli(at - int64(s))); got != counts[s] || !ok {
				wrong++
				t.Errorf("round %d: slot %d, %d before the newest: %d, %t; want %d", round, at-int64(s), s, got, ok, counts[s])
			}
		}
		plan()
		return wrong < 10
	})
	t.Logf("%d wrong of %d rotations", wrong, done)
}
