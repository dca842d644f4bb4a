package drive

import (
	"runtime"
	"time"
)

// A Heap is what something keeps on the Go heap.
type Heap struct{ Bytes, Objects int64 }

// Weigh returns what keep holds on to, and what it returned.
func Weigh[T any](keep func() T) (T, Heap) {
	before := live()
	v := keep()
	after := live()
	runtime.KeepAlive(v)
	return v, Heap{after.Bytes - before.Bytes, after.Objects - before.Objects}
}

func live() Heap {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return Heap{int64(m.HeapAlloc), int64(m.HeapObjects)}
}

// GC returns how long a full collection takes, the shortest of five, or of as
// many as begin in half a second.
func GC() time.Duration {
	least, first := time.Hour, time.Now()
	for i := 0; i < 5 && time.Since(first) < time.Second/2; i++ {
		began := time.Now()
		runtime.GC()
		least = min(least, time.Since(began))
	}
	return least
}
