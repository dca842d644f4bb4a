package window

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// The rows to read the others by: an atomic add and the clocks.
//
//	go test -run '^$' -bench 'Floor|Counter' -cpu 1,2

func BenchmarkFloorAtomicAdd(b *testing.B) {
	var n atomic.Uint64
	inParallel(b, func() { n.Add(1) })
}

// The loop that adds to a word only while it has the right stamp.
func BenchmarkFloorSwap(b *testing.B) {
	var n atomic.Uint64
	inParallel(b, func() {
		for v := n.Load(); !n.CompareAndSwap(v, v+1); v = n.Load() {
		}
	})
}

func BenchmarkFloorNow(b *testing.B) {
	inParallel(b, func() { _ = time.Now() })
}

func BenchmarkFloorMonotonic(b *testing.B) {
	base := time.Now()
	inParallel(b, func() { time.Since(base) })
}

func BenchmarkCounterAdd(b *testing.B) {
	c := benchCounter(b)
	inParallel(b, func() { c.Add(1) })
}

// Without the clock: what the window itself costs.
func BenchmarkCounterAddNoClock(b *testing.B) {
	c := benchCounter(b)
	now := c.clock.now()
	c.ring.AddLive(now, 1)
	inParallel(b, func() { c.ring.AddLive(now, 1) })
}

func BenchmarkCounterAddAt(b *testing.B) {
	c := benchCounter(b)
	t := time.Unix(1e9, 0)
	inParallel(b, func() { c.AddAt(t, 1) })
}

// With a time that carries a monotonic reading.
func BenchmarkCounterAddAtNow(b *testing.B) {
	c := benchCounter(b)
	t := time.Now()
	inParallel(b, func() { c.AddAt(t, 1) })
}

// Every add in a new slot.
func BenchmarkCounterAddAtNewSlot(b *testing.B) {
	c := benchCounter(b)
	t := time.Unix(1e9, 0)
	for b.Loop() {
		t = t.Add(100 * time.Millisecond)
		c.AddAt(t, 1)
	}
}

func BenchmarkCounterAddSum(b *testing.B) {
	c := benchCounter(b)
	inParallel(b, func() { c.AddSum(1) })
}

func BenchmarkCounterSum(b *testing.B) {
	c := benchCounter(b)
	c.Add(1)
	inParallel(b, func() { c.Sum() })
}

func BenchmarkCounterSumAt(b *testing.B) {
	c := benchCounter(b)
	t := time.Unix(1e9, 0)
	c.AddAt(t, 1)
	inParallel(b, func() { c.SumAt(t) })
}

// By the number of slots, and with lanes.
func BenchmarkCounterSumSlots(b *testing.B) {
	for _, slots := range []int{10, 60, 600} {
		for _, spread := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/spread=%t", slots, spread), func(b *testing.B) {
				c := must.Get(NewCounter(Window{Span: time.Duration(slots) * time.Second, Slot: time.Second}))(b)
				t := int64(1e18)
				for i := range 16 {
					if spread && i%2 == 0 {
						c.ring.Restripe()
					}
					c.ring.AddLive(t, 1)
				}
				for b.Loop() {
					c.sum(moment{t: t}, 0)
				}
			})
		}
	}
}

func BenchmarkCounterBoundsAt(b *testing.B) {
	c := benchCounter(b)
	t := time.Unix(1e9, 0)
	c.AddAt(t, 1)
	inParallel(b, func() { c.BoundsAt(t) })
}

// benchCounter has 10 slots of 100 ms, the window that peers are measured with.
func benchCounter(b *testing.B) *Counter {
	c := must.Get(NewCounter(Window{Span: time.Second, Slot: 100 * time.Millisecond}))(b)
	return c
}

func inParallel(b *testing.B, do func()) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			do()
		}
	})
}
