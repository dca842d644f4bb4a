package window

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/randtest"
)

// Clocks that are set while events arrive: how a window must treat times that step and flicker. Every event is in the slot
// of its own time, or refused and counted as refused; none is lost, doubled or moved.

// steppedClock is the wall clock of a caller that stamps events: true time and an offset that others change.
type steppedClock struct{ true, offset int64 }

func (c *steppedClock) now() int64 { return c.true + c.offset }

// stepsWindow is what the test needs of a window.
type stepsWindow interface {
	AddAt(t time.Time, n uint64) bool
	SumAt(t time.Time) uint64
}

// missed runs events by a clock through x and through a list of all events, and returns how often the sums differed, and
// how many events x refused.
func missed(x stepsWindow, events int, w Window, clock func(i int) int64) (differ, refused int) {
	m := newExactLog(w)
	for i := range events {
		ns := clock(i)
		ok := x.AddAt(time.Unix(0, ns), 1)
		if want := m.addAt(ns, 0, 1); ok != want {
			differ++
		}
		if !ok {
			refused++
		}
		if want, _ := m.bounds(0, ns, int64(w.Span)); x.SumAt(time.Unix(0, ns)) != uint64(want) {
			differ++
		}
	}
	return differ, refused
}

var stepsWindowUsed = Window{Span: time.Second, Slot: 100 * time.Millisecond}

// bumps is 1,000 random steps of up to 10 years, back and forth, among 20,000
// events a millisecond apart.
func bumps(rnd *rand.Rand) func(i int) int64 {
	c := &steppedClock{true: 1_700_000_000e9}
	sizes := []time.Duration{time.Second, time.Minute, time.Hour, 10 * 365 * 24 * time.Hour}
	return func(i int) int64 {
		c.true += int64(time.Millisecond)
		if i > 0 && i%20 == 0 {
			c.offset = 0
			if rnd.IntN(2) == 0 {
				c.offset = int64(sizes[rnd.IntN(len(sizes))]) * int64(1-2*rnd.IntN(2))
			}
		}
		return c.now()
	}
}

// strobe goes 200 ms back and forth every 10 ms.
func strobe() func(i int) int64 {
	c := &steppedClock{true: 1_700_000_000e9}
	return func(i int) int64 {
		c.true += int64(time.Millisecond)
		c.offset = int64(200*time.Millisecond) * int64(i/10%2*2-1)
		return c.now()
	}
}

func TestClockBumps(t *testing.T) {
	seed := randtest.Seed(t)
	differ, refused := missed(mustCounter(t, stepsWindowUsed), 20_000, stepsWindowUsed, bumps(rand.New(rand.NewPCG(seed, 0))))
	if differ > 0 || refused == 0 {
		t.Errorf("%d answers differ from those of a list of all events; %d refused", differ, refused)
	}
}

// A window longer than the steps refuses nothing and misses nothing.
func TestClockStrobe(t *testing.T) {
	differ, refused := missed(mustCounter(t, stepsWindowUsed), 20_000, stepsWindowUsed, strobe())
	if differ > 0 || refused > 0 {
		t.Errorf("%d answers differ from those of a list of all events; %d refused", differ, refused)
	}
}

// With Ahead, steps forward are refused until confirmed.
func TestClockBumpsAhead(t *testing.T) {
	seed := randtest.Seed(t)
	w := stepsWindowUsed
	w.Ahead = time.Minute
	c := mustCounter(t, w)
	if differ, _ := missed(c, 20_000, w, bumps(rand.New(rand.NewPCG(seed, 0)))); differ > 0 || c.Stats().Future == 0 {
		t.Errorf("%d answers differ from those of a list of all events; %d refused as future", differ, c.Stats().Future)
	}
}

// ignoresSteps is a window that counts nothing while time is behind, as one
// published repair has it.
type ignoresSteps struct {
	*Counter
	newest time.Time
}

func (x *ignoresSteps) AddAt(t time.Time, n uint64) bool {
	if t.Before(x.newest) {
		return true
	}
	x.newest = t
	return x.Counter.AddAt(t, n)
}

func TestClockStepsControl(t *testing.T) {
	for name, clock := range map[string]func(i int) int64{"bumps": bumps(rand.New(rand.NewPCG(1, 0))), "strobe": strobe()} {
		if differ, _ := missed(&ignoresSteps{Counter: mustCounter(t, stepsWindowUsed)}, 20_000, stepsWindowUsed, clock); differ == 0 {
			t.Errorf("%s: a window that stops counting when time goes back was not caught", name)
		}
	}
}

// The comparison with a list of all events, in these tests and in TestModel, catches a window that is a slot too long or
// too short.
func TestModelControl(t *testing.T) {
	for _, slots := range []time.Duration{9, 11} {
		w := stepsWindowUsed
		w.Span = slots * w.Slot
		clock := &steppedClock{}
		differ, _ := missed(mustCounter(t, w), 1000, stepsWindowUsed, func(int) int64 { clock.true += 3e7; return clock.now() })
		if differ == 0 {
			t.Errorf("a window of %d slots passes for one of 10", slots)
		}
	}
}
