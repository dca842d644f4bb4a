package ratelimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// BenchmarkExport and BenchmarkImport move a million keys: with three times of a
// log each, or with a ring of slots in which three are used. pause is the longest
// time between two chunks, which is more than a lock is held for.
func BenchmarkExport(b *testing.B) {
	for _, n := range []uint64{60, 1000} {
		b.Run(fmt.Sprint("limit ", n), func(b *testing.B) {
			m, _, _ := millionKeys(b, n)
			bytes, chunks, pause := 0, 0, time.Duration(0)
			for b.Loop() {
				bytes, chunks = 0, 0
				last := time.Now()
				for chunk := range m.ExportAt(second(3)) {
					bytes, chunks = bytes+len(chunk), chunks+1
					now := time.Now()
					pause, last = max(pause, now.Sub(last)), now
				}
			}
			b.ReportMetric(float64(bytes)/1e6, "B/key")
			b.ReportMetric(float64(chunks), "chunks")
			b.ReportMetric(float64(pause.Microseconds()), "pause-us")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/key")
		})
	}
}

func BenchmarkImport(b *testing.B) {
	for _, n := range []uint64{60, 1000} {
		b.Run(fmt.Sprint("limit ", n), func(b *testing.B) {
			m, set, config := millionKeys(b, n)
			chunks := exported(m, second(3))
			keys := 0
			for b.Loop() {
				again, _ := mustMemory(b, set, config)
				keys = mustImport(b, again, second(3), chunks).Keys
			}
			b.ReportMetric(float64(keys), "keys")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/key")
		})
	}
}

func millionKeys(b *testing.B, n uint64) (*ratelimit.Memory, *ratelimit.Set, ratelimit.Config) {
	set, config := mustSet(b, limitRule(b, "r", per(n, time.Minute))), ratelimit.Config{Budget: 1 << 30}
	m, l := mustMemory(b, set, config)
	for i := range 3_000_000 {
		takeKeyN(l, second(int64(i)/1e6), fmt.Sprint("203.0.", i%1_000_000), 1)
	}
	return m, set, config
}
