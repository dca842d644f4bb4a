package sketch_test

import (
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/sketch"
	"github.com/lately-go/lately/internal/test/windowtest"
)

// One key alone is counted exactly while it comes, leaves after the span and an eighth of it at the latest, and receives
// that time.
func TestOneKeyAlone(t *testing.T) {
	for _, n := range []uint64{5, 1000, 1 << 30} {
		w := sketch.New(sketch.Config{N: n, Span: 80 * time.Second, Counters: 1 << 16})
		at := int64(1e18)
		for i := range uint64(5) {
			ok, used, wait := w.Take(7, at, n/5)
			if !ok || used != i*(n/5) || wait != 0 {
				t.Fatalf("n %d, event %d: %v, used %d, wait %v", n, i, ok, used, wait)
			}
			at += int64(time.Second)
		}
		ok, used, wait := w.Take(7, at, n/5)
		if ok || used != n/5*5 {
			t.Fatalf("n %d: %v above the limit, used %d", n, ok, used)
		}
		if low, high := 75*time.Second, 85*time.Second; wait < low || wait > high {
			t.Errorf("n %d: wait %v, want between %v and %v", n, wait, low, high)
		}
		if ok, _, _ := w.Take(7, at+int64(wait)-1, n/5); ok {
			t.Errorf("n %d: allowed before the wait was over", n)
		}
		if ok, _, wait := w.Take(7, at+int64(wait), n/5); !ok {
			t.Errorf("n %d: refused after the wait, for %v", n, wait)
		}
		h := w.Lock(7)
		reset := h.Reset(at)
		h.Unlock()
		if used := w.Used(7, at+int64(reset)); used != 0 {
			t.Errorf("n %d: %d used after the reset", n, used)
		}
		if used := w.Used(7, at+int64(reset)-1); used == 0 {
			t.Errorf("n %d: nothing used before the reset", n)
		}
	}
}

// A key alone, at times in order: its count is that of the span, or of a pane more, and nothing else.
func TestOneKeyOvercountIsSmall(t *testing.T) {
	rnd := newRand(t)
	for _, n := range []uint64{1, 254, 255, 256, 65_534, 65_535, 65_536, math.MaxUint32 - 1} {
		span := int64(80 * time.Second)
		w := sketch.New(sketch.Config{N: n, Span: time.Duration(span), Counters: 1})
		var charges windowtest.Charges
		at := int64(-1e12)
		for range 10_000 {
			at += rnd.Int64N(span / 20)
			if rnd.IntN(50) == 0 {
				at += rnd.Int64N(2 * span)
			}
			cost := 1 + rnd.Uint64N(n/20+1)
			least, most := since(charges, at-span), since(charges, at-span-span/8)
			if used := w.Used(1, at); used < least || used > most {
				t.Fatalf("n %d at %d: used %d, charged %d to %d", n, at, used, least, most)
			}
			if ok, _, _ := w.Take(1, at, cost); ok {
				charges.Add(at, cost)
			}
			charges.Drop(func(t int64) bool { return t < at-4*span })
		}
	}
}

// Counts, costs and limits at the ends of their ranges saturate: nothing wraps,
// and nothing is allowed for it.
func TestOverflow(t *testing.T) {
	edges := []uint64{0, 1, 1<<8 - 2, 1<<8 - 1, 1 << 8, 1<<16 - 2, 1<<16 - 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<32 - 2, 1<<32 - 1, 1 << 32, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64, 1 << 63, math.MaxUint64}
	far := math.MaxInt64 - 4*int64(sketch.MaxSpan)
	for _, n := range edges {
		for _, at := range []int64{-far, -1, 0, 1e18, 1 << 52, far} {
			for _, cost := range edges {
				w := sketch.New(sketch.Config{N: n, Span: sketch.MaxSpan, Counters: 1})
				ok, used, _ := w.Take(1, at, cost)
				if ok != (cost <= n) || used != 0 {
					t.Fatalf("n %d: cost %d: %v, used %d", n, cost, ok, used)
				}
				charged := uint64(0)
				if ok {
					charged = cost
				}
				for _, more := range edges {
					w.Charge(1, at, more)
					charged += min(more, math.MaxUint64-charged)
					if used := w.Used(1, at); used < charged {
						t.Fatalf("n %d: used %d of %d charged", n, used, charged)
					}
					if ok, _, _ := w.Take(1, at, cost); ok && (charged > n || cost > n-charged) {
						t.Fatalf("n %d: cost %d allowed above %d", n, cost, charged)
					} else if ok {
						charged += cost
					}
				}
			}
		}
	}
}

// A counter can hold N, distinct from endless.
func TestCounterHoldsTheLimit(t *testing.T) {
	for _, n := range []uint64{1, 254, 255, 65_534, 65_535, math.MaxUint32 - 1} {
		w := sketch.New(sketch.Config{N: n, Span: time.Second, Counters: 1})
		if ok, _, _ := w.Take(1, 0, n); !ok || w.Used(1, 0) != n {
			t.Errorf("n %d: %v, then used %d", n, ok, w.Used(1, 0))
		}
	}
}

func TestCostAboveTheLimitNeverFits(t *testing.T) {
	w := sketch.New(sketch.Config{N: 3, Span: time.Second, Counters: 1 << 16})
	if ok, _, wait := w.Take(1, 0, 4); ok || wait != sketch.Never {
		t.Errorf("cost 4 of 3: %v, wait %v", ok, wait)
	}
	h := w.Lock(1)
	defer h.Unlock()
	if wait := h.Wait(0, 3, 4); wait != sketch.Never {
		t.Errorf("wait %v", wait)
	}
	if wait := h.Wait(0, 3, 3); wait != 0 {
		t.Errorf("wait %v for what fits", wait)
	}
}

func TestUntil(t *testing.T) {
	w := sketch.New(sketch.Config{N: 3, Span: 80 * time.Second, Counters: 1 << 16})
	if until := w.Until(); until != math.MinInt64 {
		t.Errorf("a new window is empty from %d on", until)
	}
	at := int64(1e18)
	w.Charge(1, at, 1)
	w.Charge(2, at-int64(time.Hour), 1)
	until := w.Until()
	if d := time.Duration(until - at); d < 79*time.Second || d > 91*time.Second {
		t.Errorf("empty after %v", d)
	}
	if used := w.Used(1, until-1); used != 1 {
		t.Errorf("before: used %d", used)
	}
	if used := w.Used(1, until); used != 0 {
		t.Errorf("then: used %d", used)
	}
}

// A charged event of the concurrent test.
type allowedEvent struct {
	key uint64
	t   int64
}

// From many goroutines, no key is allowed more than N times in any window of
// the times that they came with. Each goroutine's clock goes forward; they are
// not in step.
func TestConcurrent(t *testing.T) {
	events := 20_000
	if os.Getenv("LATELY_LONG") != "" {
		events = 2_000_000
	}
	const n, keys, goroutines = 5, 50, 8
	span := int64(time.Minute)
	w := sketch.New(sketch.Config{N: n, Span: time.Duration(span), Counters: 256})
	var clock atomic.Int64
	allowed := make([][]allowedEvent, goroutines)
	var wg sync.WaitGroup
	for g := range goroutines {
		rnd := newRand(t)
		wg.Go(func() {
			for range events {
				a := allowedEvent{rnd.Uint64N(keys), clock.Add(span / 400)}
				if ok, _, _ := w.Take(a.key, a.t, 1); ok {
					allowed[g] = append(allowed[g], a)
				}
			}
		})
	}
	wg.Wait()
	byKey := map[uint64][]int64{}
	total := 0
	for _, list := range allowed {
		for _, a := range list {
			byKey[a.key] = append(byKey[a.key], a.t)
			total++
		}
	}
	for key, times := range byKey {
		if at := over(times, n, span); at != 0 {
			t.Errorf("key %d: more than %d in the minute to %d", key, n, at)
		}
	}
	t.Logf("%d of %d allowed", total, goroutines*events)
	if total < goroutines*events/100 {
		t.Errorf("only %d allowed: the test shows nothing", total)
	}
}

// Two windows charged together, with both locked in one order, never differ.
func TestConcurrentAllOrNothing(t *testing.T) {
	a := sketch.New(sketch.Config{N: 30, Span: time.Hour, Counters: 512})
	b := sketch.New(sketch.Config{N: 20, Span: time.Hour, Counters: 512})
	const keys, at = 10, int64(1e18)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				key := uint64(i % keys)
				ha, hb := a.Lock(key), b.Lock(key)
				ua, ub := ha.Used(at), hb.Used(at)
				if ua != ub {
					t.Errorf("key %d: %d in one, %d in the other", key, ua, ub)
				}
				if ha.Wait(at, 30, 1) == 0 && hb.Wait(at, 20, 1) == 0 {
					ha.Charge(at, 1)
					hb.Charge(at, 1)
				}
				hb.Unlock()
				ha.Unlock()
				if g == 0 {
					a.Used(key, at) // a reader for one connection
				}
			}
		})
	}
	wg.Wait()
	for key := range uint64(keys) {
		if used := a.Used(key, at); used != 20 {
			t.Errorf("key %d: %d of 20", key, used)
		}
	}
}

func TestTakeDoesNotAllocate(t *testing.T) {
	w := sketch.New(sketch.Config{N: 3, Span: time.Second, Counters: 1 << 16})
	at := int64(0)
	if allocs := testing.AllocsPerRun(1000, func() {
		at += 1000
		w.Take(uint64(at), at, 1)
	}); allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
