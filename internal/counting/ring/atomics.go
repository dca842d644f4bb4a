//go:build !explore

package ring

import (
	"math/rand/v2"
	"sync/atomic"
	"unsafe"
)

// The atomics that the proof is about. With the build tag explore they stop
// before each step, so that a test can go through every order of the steps.
type (
	atomicUint64         = atomic.Uint64
	atomicInt64          = atomic.Int64
	atomicPointer[T any] = atomic.Pointer[T]
)

// token distinguishes goroutines by where their stacks are, 2 KiB being the
// smallest one. It costs nothing and need not be right: a goroutine may have
// several, and two may have the same.
func token() uint64 {
	var here byte
	return uint64(uintptr(unsafe.Pointer(&here)) >> 11)
}

func randomAssignment() uint64 { return rand.Uint64() }
