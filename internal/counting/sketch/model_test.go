package sketch_test

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/sketch"
	"github.com/lately-go/lately/internal/test/randtest"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// newRand returns a random source whose seed is in the log of a failed test.
func newRand(t testing.TB) *rand.Rand {
	seed := randtest.Seed(t)
	return rand.New(rand.NewPCG(seed, 0))
}

// counter is what the model is compared with: a Window, or a broken one.
type counter interface {
	Take(hash uint64, t int64, cost uint64) (ok bool, used uint64, wait time.Duration)
	Used(hash uint64, t int64) uint64
	Charge(hash uint64, t int64, cost uint64)
	HandOn(hash uint64, t int64) iter.Seq2[int64, uint64]
}

// whole is a Window with HandOn for a caller without a lock.
type whole struct{ *sketch.Window }

func (w whole) HandOn(hash uint64, t int64) iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		h := w.Lock(hash)
		defer h.Unlock()
		h.HandOn(t)(yield)
	}
}

// early is a Window whose panes leave one pane early.
type early struct {
	whole
	width int64
}

func (w early) Used(hash uint64, t int64) uint64 { return w.whole.Used(hash, t+w.width) }

// amnesiac is a Window that takes unknown charges for 0.
type amnesiac struct{ whole }

func (w amnesiac) Used(hash uint64, t int64) uint64 {
	if used := w.whole.Used(hash, t); used != math.MaxUint64 {
		return used
	}
	return 0
}

// late is a Window that hands keys on as if all had come at the first time of
// their panes.
type late struct {
	whole
	width int64
}

func (w late) HandOn(hash uint64, t int64) iter.Seq2[int64, uint64] {
	return func(yield func(int64, uint64) bool) {
		for at, n := range w.whole.HandOn(hash, t) {
			if !yield(at-w.width, n) {
				return
			}
		}
	}
}

// since returns how much was charged after t.
func since(charges windowtest.Charges, t int64) uint64 {
	return charges.Sum(func(at int64) bool { return at > t })
}

// A world is a window, its settings, and the model of its charges.
type world struct {
	c       counter
	n       uint64
	span    int64
	charges windowtest.Keys[uint64]
	keys    uint64
	rnd     *rand.Rand
	now     int64

	allowed, refused, unknown int
}

// step moves the time: mostly a little, sometimes far, sometimes back.
func (w *world) step() {
	span := w.span
	switch w.rnd.IntN(64) {
	case 0:
		w.now += w.rnd.Int64N(4 * span)
	case 1:
		w.now -= w.rnd.Int64N(span / 4)
	case 2:
		if w.rnd.IntN(8) == 0 {
			w.now -= w.rnd.Int64N(2 * span)
		}
	case 3:
		// Exactly at an edge.
		w.now += span - w.now%(span/8)
	default:
		w.now += w.rnd.Int64N(span/64 + 1)
	}
}

// cost returns mostly 1.
func (w *world) cost() uint64 {
	switch w.rnd.IntN(16) {
	case 0:
		return w.rnd.Uint64N(w.n + 2)
	case 1:
		return 0
	case 2:
		return w.rnd.Uint64() >> w.rnd.UintN(64)
	}
	return 1 + w.n/32
}

// act does something random and returns an error about the answer, or nil.
func (w *world) act() error {
	w.step()
	key := w.rnd.Uint64N(w.keys) * 0x9e3779b97f4a7c15
	switch w.rnd.IntN(32) {
	case 0:
		cost := w.cost()
		w.c.Charge(key, w.now, cost)
		w.charges.Of(key).Add(w.now, cost)
		return nil
	case 1:
		return w.handOn(key)
	}
	return w.take(key, w.cost())
}

func (w *world) take(key, cost uint64) error {
	truth := since(*w.charges.Of(key), w.now-w.span)
	before := w.c.Used(key, w.now)
	if before < truth {
		return fmt.Errorf("at %d: used %d, but %d were charged", w.now, before, truth)
	}
	ok, used, wait := w.c.Take(key, w.now, cost)
	fits := truth <= w.n && cost <= w.n-truth
	switch {
	case used != before:
		return fmt.Errorf("at %d: used %d, then %d", w.now, before, used)
	case ok && !fits:
		return fmt.Errorf("at %d: cost %d allowed above %d of %d", w.now, cost, truth, w.n)
	case ok && wait != 0, !ok && wait == 0, (wait == sketch.Never) != (cost > w.n):
		return fmt.Errorf("at %d: cost %d of %d: allowed %v, wait %v", w.now, cost, w.n, ok, wait)
	}
	if used == math.MaxUint64 {
		w.unknown++
	}
	if ok {
		w.allowed++
		w.charges.Of(key).Add(w.now, cost)
		return nil
	}
	w.refused++
	return w.waited(key, cost, wait)
}

// waited takes again after the wait, and one nanosecond before.
func (w *world) waited(key, cost uint64, wait time.Duration) error {
	if wait == sketch.Never {
		return nil
	}
	at := w.now + int64(wait)
	if used := w.c.Used(key, at); used > w.n-cost {
		return fmt.Errorf("at %d: cost %d was to wait %v, and then %d of %d are used", w.now, cost, wait, used, w.n)
	}
	if used := w.c.Used(key, at-1); used <= w.n-cost {
		return fmt.Errorf("at %d: cost %d was to wait %v, and before only %d of %d are used", w.now, cost, wait, used, w.n)
	}
	return nil
}

// handOn checks that the charges that HandOn returns for a key are no less than
// the true ones, in any window from now on.
func (w *world) handOn(key uint64) error {
	var moved windowtest.Charges
	last := int64(math.MinInt64)
	for t, n := range w.c.HandOn(key, w.now) {
		if t < last || n == 0 {
			return fmt.Errorf("at %d: hands on %d at %d after %d", w.now, n, t, last)
		}
		moved.Add(t, n)
		last = t
	}
	for range 20 {
		gone := w.now - w.span + w.rnd.Int64N(2*w.span)
		if have, want := since(moved, gone), since(*w.charges.Of(key), gone); have < want {
			return fmt.Errorf("at %d: hands on %d after %d, but %d were charged: %v", w.now, have, gone, want, moved)
		}
	}
	return nil
}

// run performs that many actions, and stops at the first error. The model drops charges far in the past.
func (w *world) run(steps int) error {
	for i := range steps {
		if err := w.act(); err != nil {
			return err
		}
		if i%4096 == 4095 {
			for _, charges := range w.charges {
				charges.Drop(func(at int64) bool { return at <= w.now-8*w.span })
			}
		}
	}
	return nil
}

// modelSteps is how much each world acts.
const modelSteps = 10_000

// modelRounds is the number of worlds for each configuration.
func modelRounds() int {
	switch {
	case os.Getenv("LATELY_LONG") != "":
		return 100
	case testing.Short():
		return 1
	}
	return 5
}

// starts are times at which worlds begin.
var starts = []int64{0, 1e18, -1e18, math.MaxInt64 - 4*int64(sketch.MaxSpan), -(math.MaxInt64 - 4*int64(sketch.MaxSpan))}

// A window is never below the model: with keys that share counters, times out of order, silence, jumps, costs of all sizes,
// charges beyond the limit. A lone client that waits for RetryAfter is allowed, and not before.
func TestNeverTooLittle(t *testing.T) {
	rnd := newRand(t)
	for _, n := range []uint64{0, 1, 2, 60, 254, 255, 1000, 65_534, 65_535, 1 << 20, 1<<32 - 1, 1 << 40, math.MaxUint64} {
		for _, counters := range []int{1, 8, 1000} {
			for range modelRounds() {
				testWorld(t, rnd, n, counters)
			}
		}
	}
}

func testWorld(t *testing.T, rnd *rand.Rand, n uint64, counters int) {
	span := []time.Duration{sketch.MinSpan, 1_000_003, time.Minute, 25 * time.Hour}[rnd.IntN(4)]
	c := sketch.Config{N: n, Span: span, Counters: counters}
	w := &world{c: whole{sketch.New(c)}, n: n, span: int64(span), charges: windowtest.Keys[uint64]{}, keys: 1 + rnd.Uint64N(40), rnd: rnd}
	w.now = starts[rnd.IntN(len(starts))]
	if w.now > 1e18 {
		w.now -= modelSteps * int64(span) / 4 // where it may arrive
	}
	if err := w.run(modelSteps); err != nil {
		t.Errorf("%+v: %v", c, err)
	}
	if (w.allowed == 0 && n > 0) || w.refused == 0 {
		t.Errorf("%+v: %d allowed, %d refused: the test shows nothing", c, w.allowed, w.refused)
	}
}

// The model must find planted errors.
func TestModelFindsBrokenWindows(t *testing.T) {
	rnd := newRand(t)
	c := sketch.Config{N: 20, Span: time.Minute, Counters: 1000}
	for name, broken := range map[string]func(whole) counter{
		"a pane that leaves one pane early":      func(w whole) counter { return early{w, int64(time.Minute) / 8} },
		"unknown taken for nothing":              func(w whole) counter { return amnesiac{w} },
		"handed on with the pane's first time":   func(w whole) counter { return late{w, int64(time.Minute) / 8} },
		"nothing (this one must not be noticed)": nil,
	} {
		sw := sketch.New(c)
		w := &world{c: whole{sw}, n: c.N, span: int64(c.Span), charges: windowtest.Keys[uint64]{}, keys: 10, rnd: rnd}
		if broken != nil {
			w.c = broken(whole{sw})
		}
		err := w.run(modelSteps)
		if (err != nil) != (broken != nil) {
			t.Errorf("%s: the model returns %v", name, err)
		}
		if broken == nil && w.unknown == 0 {
			t.Error("nothing was ever unknown: times must go back further")
		}
	}
}
