package windows

import (
	"flag"
	"sync"
	"testing"
	"time"
)

var lostFor = flag.Duration("lost", time.Second, "how long BenchmarkLost adds to each row")

// How many of the adds of eight goroutines are lost when the slots change every
// 10 ms, in a window in which nothing may expire. Run it with -benchtime 1x.
func BenchmarkLost(b *testing.B) {
	const slot = 10 * time.Millisecond
	for _, s := range subjects() {
		if s.kind != sliding && s.kind != fixed || !readable(s) {
			continue
		}
		b.Run("subject="+s.name, func(b *testing.B) {
			w := s.make(1000, slot)
			defer release(w)
			adds, took := addByEight(w, *lostFor)
			if s.name == "O4-mutex" {
				time.Sleep(2 * slot) // its sum leaves the current slot out
				w.Add()
			}
			lost := float64(adds) - float64(w.(summer).Sum())
			b.ReportMetric(lost, "lost")
			b.ReportMetric(100*lost/float64(adds), "lost-%")
			b.ReportMetric(float64(adds), "adds")
			b.ReportMetric(float64(took/slot), "rotations")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// addByEight adds with eight goroutines for a while, and returns how often and
// for how long.
func addByEight(w adder, d time.Duration) (adds uint64, took time.Duration) {
	var all sync.WaitGroup
	var mu sync.Mutex
	began := time.Now()
	for range 8 {
		all.Go(func() {
			var n uint64
			for ; time.Since(began) < d; n += 100 {
				for range 100 {
					w.Add()
				}
			}
			mu.Lock()
			defer mu.Unlock()
			adds += n
		})
	}
	all.Wait()
	return adds, time.Since(began)
}
