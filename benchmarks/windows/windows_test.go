package windows

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/benchmarks/drive"
)

const (
	slotCount = 10
	width     = 100 * time.Millisecond
)

// sizes are the numbers of slots that reading and weighing is measured with.
var sizes = []int{10, 60, 600, 3600}

// measured reports whether s is measured with n slots: impossible combinations are not, and few windows are measured with
// many slots.
func measured(s subject, n int) bool {
	switch {
	case s.kind == fixed || s.kind == total || s.kind == bounded:
		return n == 10
	case n > 60:
		return slices.ContainsFunc([]string{"O3-", "O4-", "O5-", "cep21.", "sentinel.", "lately."}, func(p string) bool {
			return strings.HasPrefix(s.name, p)
		})
	}
	return true
}

func readable(s subject) bool {
	w := s.make(10, time.Minute)
	defer release(w)
	_, ok := w.(summer)
	return ok
}

// One goroutine for each core adds to one window.
func BenchmarkAdd(b *testing.B) { eachAdds(b, 1) }

// Eight goroutines for each core add to one window.
func BenchmarkAddByEight(b *testing.B) { eachAdds(b, 8) }

func eachAdds(b *testing.B, perCore int) {
	for _, s := range subjects() {
		b.Run("subject="+s.name, func(b *testing.B) { adds(b, s, perCore*runtime.GOMAXPROCS(0)) })
	}
}

func adds(b *testing.B, s subject, goroutines int) {
	w := s.make(slotCount, width)
	defer release(w)
	drive.Parallel(b, goroutines, func(i int) func(int) {
		part := w
		if p, ok := w.(split); ok {
			part = p.Part(i)
		}
		return func(n int) {
			for range n {
				part.Add()
			}
		}
	})
}

// One to sixteen goroutines on all cores, for a few rows.
func BenchmarkGoroutines(b *testing.B) {
	for _, goroutines := range []int{1, 2, 4, 8, 16} {
		for _, s := range subjects() {
			switch s.name {
			case "time.Since,atomic-add", "time.Since,striped-add", "sentinel.BucketLeapArray", "cep21.RollingCounter",
				"go-zero.RollingWindow", "O2-access-counter", "lately.Counter":
				b.Run(fmt.Sprintf("goroutines=%d/subject=%s", goroutines, s.name), func(b *testing.B) { adds(b, s, goroutines) })
			}
		}
	}
}

// The caller has the time of the event already: no clock is read.
func BenchmarkAddAt(b *testing.B) {
	for _, s := range subjects() {
		w := s.make(slotCount, width)
		do := func(int) func(int) { return func(n int) { repeat(n, w.Add) } }
		if t, ok := w.(timed); ok {
			now := time.Now()
			do = func(int) func(int) { return func(n int) { repeatAt(n, now, t) } }
		} else if s.name != "atomic-add" {
			continue
		}
		b.Run("subject="+s.name, func(b *testing.B) { drive.Parallel(b, runtime.GOMAXPROCS(0), do) })
	}
}

func repeat(n int, do func()) {
	for range n {
		do()
	}
}

func repeatAt(n int, t time.Time, w timed) {
	for range n {
		w.AddAt(t)
	}
}

// Reading the sum, without concurrent adds.
func BenchmarkSum(b *testing.B) {
	for _, n := range sizes {
		for _, s := range subjects() {
			if !readable(s) || !measured(s, n) {
				continue
			}
			b.Run(fmt.Sprintf("slots=%d/subject=%s", n, s.name), func(b *testing.B) {
				w := s.make(n, width)
				defer release(w)
				w.Add()
				sum := w.(summer)
				drive.Parallel(b, runtime.GOMAXPROCS(0), func(int) func(int) {
					return func(n int) {
						for range n {
							sum.Sum()
						}
					}
				})
			})
		}
	}
}

// The weight of a window after its first add. Goroutines that it keeps have a stack, which is not on the heap.
func BenchmarkBytes(b *testing.B) {
	for _, n := range sizes {
		many := 1024
		if n > 60 {
			many = 64
		}
		for _, s := range subjects() {
			if s.kind == scaffold || !measured(s, n) {
				continue
			}
			b.Run(fmt.Sprintf("slots=%d/subject=%s", n, s.name), func(b *testing.B) {
				before := runtime.NumGoroutine()
				all, heap := drive.Weigh(func() []adder {
					all := make([]adder, many)
					for i := range all {
						all[i] = s.make(n, time.Minute)
						all[i].Add()
					}
					return all
				})
				b.ReportMetric(float64(heap.Bytes)/float64(many)-16, "B/window")
				b.ReportMetric(float64(max(runtime.NumGoroutine()-before, 0))/float64(many), "goroutines/window")
				b.ReportMetric(0, "ns/op")
				for _, w := range all {
					release(w)
				}
			})
		}
	}
}
