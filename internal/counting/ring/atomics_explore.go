//go:build explore

package ring

import "sync/atomic"

// In this build every atomic first hands over to the explorer, which decides who
// goes on; see explorer_test.go. It is for tests only.
type (
	atomicUint64 struct{ v atomic.Uint64 }
	atomicInt64  struct{ v atomic.Int64 }

	atomicPointer[T any] struct{ v atomic.Pointer[T] }
)

// step is called before each atomic: at is what it is about. The explorer sets it.
var step = func(at any, does kind) {}

// A kind is what an actor learns by a step.
type kind int

const (
	looks kind = iota // what was there, and changes nothing
	adds              // what was there, and changes it
	swaps             // whether it was as expected, and so was changed
	notes             // nothing
)

// tokenNow is the token of whoever runs. The explorer sets it.
var tokenNow uint64

func token() uint64 { return tokenNow }

// randomAssignment is not random here, so that an order of steps can be repeated.
func randomAssignment() uint64 { return 0x9e3779b97f4a7c15 }

// Stores are not steps: they are to memory that nobody else has seen yet, or to a
// stripe's speed, which no count depends on.

func (a *atomicUint64) Load() uint64   { step(a, looks); return a.v.Load() }
func (a *atomicUint64) Store(x uint64) { a.v.Store(x) }

func (a *atomicUint64) Add(x uint64) uint64 { step(a, adds); return a.v.Add(x) }

func (a *atomicUint64) CompareAndSwap(x, y uint64) bool {
	step(a, swaps)
	return a.v.CompareAndSwap(x, y)
}

func (a *atomicInt64) Load() int64   { step(a, looks); return a.v.Load() }
func (a *atomicInt64) Store(x int64) { a.v.Store(x) }

func (a *atomicInt64) CompareAndSwap(x, y int64) bool {
	step(a, swaps)
	return a.v.CompareAndSwap(x, y)
}

func (a *atomicPointer[T]) Load() *T { step(a, looks); return a.v.Load() }

func (a *atomicPointer[T]) CompareAndSwap(x, y *T) bool {
	step(a, swaps)
	return a.v.CompareAndSwap(x, y)
}
