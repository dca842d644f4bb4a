package lately

import (
	"sync/atomic"
	"testing"
	"time"
)

// The rows to read the others by: an atomic add and the clocks.
//
//	go test -run '^$' -bench 'Floor|Counter' -cpu 1,2

func BenchmarkFloorAtomicAdd(b *testing.B) {
	var n atomic.Uint64
	inParallel(b, func() { n.Add(1) })
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
	now := c.now()
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

func BenchmarkCounterBoundsAt(b *testing.B) {
	c := benchCounter(b)
	t := time.Unix(1e9, 0)
	c.AddAt(t, 1)
	inParallel(b, func() { c.BoundsAt(t) })
}

// benchCounter has 10 slots of 100 ms, the window that peers are measured with.
func benchCounter(b *testing.B) *Counter {
	c, err := NewCounter(Window{Span: time.Second, Slot: 100 * time.Millisecond})
	if err != nil {
		b.Fatal(err)
	}
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
