package sketch_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/counting/sketch"
)

// BenchmarkTake is a decision for one of a million keys, in windows of a size
// that fits them.
func BenchmarkTake(b *testing.B) {
	for _, n := range []uint64{1, 60, 1000, 100_000} {
		for _, counters := range []int{1 << 16, 1 << 20} {
			b.Run(fmt.Sprintf("n=%d/counters=%d", n, counters), func(b *testing.B) {
				w := sketch.New(sketch.Config{N: n, Span: time.Minute, Counters: counters})
				t, i := int64(1e18), uint32(0)
				b.ReportAllocs()
				for b.Loop() {
					i = i*1664525 + 1013904223
					t += 50_000
					w.Take(uint64(i>>12)*0x9e3779b97f4a7c15, t, 1)
				}
			})
		}
	}
}
