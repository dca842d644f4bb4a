package windows

import (
	"sync"
	"sync/atomic"
	"time"
)

// Limits of the machine. Each floor is one step that a window can hardly do without; no row below can be faster than its
// steps.
var floors = []subject{
	{"noop", func(int, time.Duration) adder { return new(noop) }, scaffold},
	{"atomic-add", func(int, time.Duration) adder { return new(atomicAdd) }, scaffold},
	{"cas-loop", func(int, time.Duration) adder { return new(casLoop) }, scaffold},
	{"striped-add", func(int, time.Duration) adder { return newStriped() }, scaffold},
	{"mutex", func(int, time.Duration) adder { return new(locked) }, scaffold},
	{"time.Now", func(int, time.Duration) adder { return new(wallClock) }, scaffold},
	{"time.Since", func(int, time.Duration) adder { return &monotonic{base: time.Now()} }, scaffold},
	{"coarse-load", func(int, time.Duration) adder { return new(coarse) }, scaffold},
	{"time.Since,atomic-add", func(int, time.Duration) adder { return &clockAdd{base: time.Now()} }, scaffold},
	{"time.Since,striped-add", func(int, time.Duration) adder { return newStripedClock() }, scaffold},
}

type noop struct{ _ byte }

//go:noinline
func (*noop) Add() {}

type atomicAdd struct{ n atomic.Int64 }

func (w *atomicAdd) Add() { w.n.Add(1) }

type casLoop struct{ n atomic.Int64 }

func (w *casLoop) Add() {
	for n := w.n.Load(); !w.n.CompareAndSwap(n, n+1); n = w.n.Load() {
	}
}

// striped is the bound of striping: each goroutine has a cache line of its own and pays nothing to find it. The cells are
// reached through a slice: indexing through a pointer to an array makes the compiler load the first one on every operation.
type striped struct {
	atomicAdd
	cells []paddedAdd
}

type paddedAdd struct {
	atomicAdd
	_ [128 - 8]byte
}

func newStriped() *striped { return &striped{cells: make([]paddedAdd, 64)} }

func (w *striped) Part(i int) adder { return &w.cells[i%len(w.cells)].atomicAdd }

type locked struct {
	mu sync.Mutex
	n  int64
}

func (w *locked) Add() {
	w.mu.Lock()
	w.n++
	w.mu.Unlock()
}

type wallClock struct{ _ byte }

//go:noinline
func (*wallClock) Add() { _ = time.Now() }

type monotonic struct{ base time.Time }

//go:noinline
func (w *monotonic) Add() { time.Since(w.base) }

// coarse is a clock that another goroutine sets.
type coarse struct{ now atomic.Int64 }

//go:noinline
func (w *coarse) Add() { w.now.Load() }

// clockAdd is the least that an exact window with a precise clock does.
type clockAdd struct {
	base time.Time
	n    atomic.Int64
}

func (w *clockAdd) Add() {
	if time.Since(w.base) >= 0 {
		w.n.Add(1)
	}
}

// stripedClock is the same with a line for each goroutine.
type stripedClock struct {
	clockAdd
	cells []paddedClock
}

type paddedClock struct {
	clockAdd
	_ [128 - 32]byte
}

func newStripedClock() *stripedClock {
	w := &stripedClock{cells: make([]paddedClock, 64)}
	for i := range w.cells {
		w.cells[i].base = time.Now()
	}
	return w
}

func (w *stripedClock) Part(i int) adder { return &w.cells[i%len(w.cells)].clockAdd }
