package drive

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Parallel runs b.N operations on that many goroutines. Each calls worker with
// its number, untimed, and then what that returns, with how many operations to
// do; the faster ones do more. It reports wait-%, how much of the time of all
// cores threads of this process were ready and had none: above a few per cent
// the figure is one of the neighbours', and to be taken again. Goroutines that
// wait for a lock make it rise, too. cpu-ns/op is the processor time of an operation,
// which says more than its time where neighbours use the cores.
func Parallel(b *testing.B, goroutines int, worker func(i int) func(n int)) {
	b.ReportAllocs()
	var left atomic.Int64
	left.Store(int64(b.N))
	chunk := min(max(int64(b.N/(64*goroutines)), 1), 1<<16)
	var ready, done sync.WaitGroup
	start := make(chan struct{})
	for i := range goroutines {
		ready.Add(1)
		done.Go(func() {
			do := worker(i)
			ready.Done()
			<-start
			for {
				rest := left.Add(-chunk)
				do(int(min(chunk, max(rest+chunk, 0))))
				if rest <= 0 {
					return
				}
			}
		})
	}
	ready.Wait()
	ran, waited, ok := threads()
	began := time.Now()
	b.ResetTimer()
	close(start)
	done.Wait()
	b.StopTimer()
	wall := time.Since(began) * time.Duration(runtime.GOMAXPROCS(0))
	if ok && wall > 0 {
		nowRan, nowWaited, _ := threads()
		b.ReportMetric(100*float64(nowWaited-waited)/float64(wall), "wait-%")
		b.ReportMetric(float64(nowRan-ran)/float64(b.N), "cpu-ns/op")
	}
}
