package drive

import (
	"flag"
	"runtime"
	"sync/atomic"
	"testing"
)

// Every operation is done once, whatever the number of goroutines.
func TestParallelDoesAll(t *testing.T) {
	if err := flag.Set("test.benchtime", "20000x"); err != nil {
		t.Fatal(err)
	}
	for _, goroutines := range []int{1, 2, 3, 16} {
		var done atomic.Int64
		var n int
		testing.Benchmark(func(b *testing.B) {
			n = b.N
			done.Store(0)
			Parallel(b, goroutines, func(int) func(int) {
				return func(n int) { done.Add(int64(n)) }
			})
		})
		if done.Load() != int64(n) || n == 0 {
			t.Errorf("%d goroutines did %d operations of %d", goroutines, done.Load(), n)
		}
	}
}

func TestWeigh(t *testing.T) {
	// Objects of 4 KiB, so that what the runtime allocates by itself does not
	// matter.
	kept, heap := Weigh(func() [][]byte {
		all := make([][]byte, 1000)
		for i := range all {
			all[i] = make([]byte, 4096)
		}
		return all
	})
	if heap.Bytes < 4096*1000 || heap.Bytes > 4096*1100 || heap.Objects < 1000 || heap.Objects > 1100 {
		t.Errorf("1000 slices of 4096 bytes weigh %d bytes in %d objects", heap.Bytes, heap.Objects)
	}
	runtime.KeepAlive(kept)
}

func TestThreadsRun(t *testing.T) {
	ran, waited, ok := threads()
	if !ok {
		t.Skip("this system does not say how long threads run and wait for a core")
	}
	runtime.GC()
	if nowRan, nowWaited, _ := threads(); nowRan < ran || nowWaited < waited {
		t.Errorf("ran for %v and waited for %v, later %v and %v", ran, waited, nowRan, nowWaited)
	}
}
