package baseline

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

type window interface{ Sum() uint64 }

const (
	slots = 5
	width = 100 * time.Millisecond
)

var windows = []struct {
	name   string
	make   func() (window, func())
	finish bool // Sum leaves the current slot out, and moves only on an add
	exact  bool // expires event by event
}{
	{name: "Ring", make: func() (window, func()) { w := NewRing(slots, width); return w, func() { w.Add() } }},
	{name: "Access", make: func() (window, func()) { w := NewAccess(slots, width); return w, w.Add }},
	{name: "Wheel", make: func() (window, func()) { w := NewWheel(slots, width); return w, w.Add }},
	{name: "RepairedWheel", make: func() (window, func()) { w := NewRepairedWheel(slots, width); return w, w.Add }},
	{name: "PaddedWheel", make: func() (window, func()) { w := NewPaddedWheel(slots, width); return w, w.Add }},
	{name: "SegmentWheel", make: func() (window, func()) { w := NewSegmentWheel(slots, width); return w, w.Add }},
	{name: "FreeWheel", make: func() (window, func()) { w := NewFreeWheel(slots, width); return w, w.Add }},
	{name: "Queue", make: func() (window, func()) { w := NewQueue(slots, width); return w, w.Add }, exact: true},
	{name: "Cells", make: func() (window, func()) { w := NewCells(slots, width); return w, w.Add }, finish: true},
	{name: "Ticks", make: func() (window, func()) { w := NewTicks(slots, width); return w, w.Add }},
}

// One goroutine: every design agrees with the definition, through idle times
// shorter and longer than the window.
func TestAgainstTheDefinition(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, tt := range windows {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 0))
				w, add := tt.make()
				var times []int64
				for range 3000 {
					time.Sleep(step(rng))
					if tt.finish || rng.IntN(3) > 0 {
						add()
						times = append(times, time.Now().UnixNano())
					}
					if got, want := w.Sum(), define(times, time.Now().UnixNano(), tt.exact, tt.finish); got != want {
						t.Fatalf("after %d adds: sum %d, want %d", len(times), got, want)
					}
				}
			})
		})
	}
}

func step(rng *rand.Rand) time.Duration {
	if rng.IntN(50) == 0 {
		return time.Duration(rng.Int64N(int64(3 * slots * width)))
	}
	return time.Duration(rng.Int64N(int64(width / 4)))
}

func define(times []int64, now int64, exact, finish bool) (sum uint64) {
	slot := now / int64(width)
	for _, t := range times {
		age := slot - t/int64(width)
		in := age < slots
		if exact {
			in = t > now-int64(slots*width)
		}
		if finish {
			in = age >= 1 && age <= slots
		}
		if in {
			sum++
		}
	}
	return sum
}

// The test vectors of O4 itself: period 2, length 20.
func TestCellsVectors(t *testing.T) {
	c := NewCells(10, 2)
	add := func(at, n, want int64) {
		t.Helper()
		if got := c.AddAt(at, n); got != want {
			t.Errorf("add(%d, %d): %d, want %d", at, n, got, want)
		}
	}
	add(0, 1, 0)
	add(1, 1, 0)
	add(2, 1, 2)
	for i := int64(3); i < 20; i++ {
		c.AddAt(i, 1)
	}
	add(20, 3, 20)
	add(21, 3, 20)
	add(22, 3, 24)
	if c.cells[0] != 6 {
		t.Errorf("cell 0 is %d, want 6", c.cells[0])
	}
	add(26, 3, 23)
	add(43, 3, 6)
}

// Sampling is correct on average: within six standard deviations.
func TestSampling(t *testing.T) {
	const n = 1 << 20
	w := NewSamplingWheel(10, time.Hour)
	for range n {
		w.Add()
	}
	// The variance of a sum of n events counted as 16 once in 16 times is 15n.
	if got := int64(w.Sum()); (got-n)*(got-n) > 36*15*n {
		t.Errorf("%d events are sampled as %d", n, got)
	}
}

func TestPadding(t *testing.T) {
	if n := unsafe.Sizeof(paddedCell{}); n != 128 {
		t.Errorf("a padded cell has %d bytes, want 128", n)
	}
}
