package windows

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/benchmarks/drive"
)

// Rows for what the time wheel's article (O3) weighs beside its locks, which
// BenchmarkAdd, BenchmarkSum and BenchmarkBytes have.

// Two counters on one cache line, and on lines of their own: where padding
// pays. The slots of a window are not like that: all writers are in one slot.
func BenchmarkFalseSharing(b *testing.B) {
	for _, apart := range []int{8, 128} {
		b.Run(fmt.Sprintf("apart=%d", apart), func(b *testing.B) {
			cells := make([]atomic.Int64, 64)
			drive.Parallel(b, 2, func(i int) func(int) {
				c := &cells[16+i*apart/8]
				return func(n int) {
					for range n {
						c.Add(1)
					}
				}
			})
		})
	}
}

// The weight of a window that has counted a number of events.
func BenchmarkEvents(b *testing.B) {
	for _, events := range []int{1000, 100_000} {
		for _, s := range subjects() {
			switch s.name {
			case "O3-queue", "asecurityteam.TimePolicy", "O3-wheel-slot-locks", "lately.Counter":
			default:
				continue
			}
			b.Run(fmt.Sprintf("events=%d/subject=%s", events, s.name), func(b *testing.B) {
				w, heap := drive.Weigh(func() adder {
					w := s.make(60, time.Minute)
					for range events {
						w.Add()
					}
					return w
				})
				release(w)
				b.ReportMetric(float64(heap.Bytes), "B/window")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// How far sampling is off: the root of the mean squared error of many windows.
func BenchmarkSamplingError(b *testing.B) {
	const windows = 200
	for _, events := range []int{100, 10_000} {
		for _, s := range subjects() {
			if s.kind != inexact {
				continue
			}
			b.Run(fmt.Sprintf("events=%d/subject=%s", events, s.name), func(b *testing.B) {
				var squares float64
				for range windows {
					w := s.make(60, time.Minute)
					for range events {
						w.Add()
					}
					off := float64(w.(summer).Sum()) - float64(events)
					squares += off * off
					release(w)
				}
				b.ReportMetric(100*math.Sqrt(squares/windows)/float64(events), "error-%")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// Time alone passes: the cost of the first add after an idle time of one window, by number of slots, for a caller that has
// the time.
func BenchmarkIdle(b *testing.B) {
	for _, n := range sizes {
		for _, s := range subjects() {
			w, ok := s.make(n, time.Millisecond).(timed)
			if !ok {
				continue
			}
			b.Run(fmt.Sprintf("slots=%d/subject=%s", n, s.name), func(b *testing.B) {
				t := time.Now()
				span := time.Duration(n) * time.Millisecond
				for b.Loop() {
					t = t.Add(span)
					w.AddAt(t)
				}
			})
			runtime.KeepAlive(w)
		}
	}
}
