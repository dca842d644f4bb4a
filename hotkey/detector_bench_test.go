package hotkey_test

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/limit"
	"github.com/lately-go/lately/internal/test/must"
)

// BenchmarkDetector counts uniform keys, a microsecond apart, under 1,000 in 2 s:
// a key of 10,000 has 200 times in its log, one of 1,000,000 has two.
func BenchmarkDetector(b *testing.B) {
	for _, keys := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) { benchmarkDetector(b, keys) })
	}
}

func benchmarkDetector(b *testing.B, keys int) {
	r := goodRule(b)
	r.Threshold, r.Span = 1000, 2*time.Second
	d := must.Get(hotkey.NewDetector([]hotkey.Rule{r}, hotkey.DetectorConfig{Budget: hotkey.NoBudget}))(b)
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("key-%07d", i)
	}
	var clock atomic.Int64
	for _, name := range names {
		addKey(d, time.UnixMicro(clock.Add(1)), "r", name)
	}
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		rnd := rand.New(rand.NewPCG(uint64(clock.Load()), 1))
		now := clock.Load()
		for i := 0; pb.Next(); i++ {
			if i%64 == 0 {
				now = clock.Add(64)
			}
			addKey(d, time.UnixMicro(now+int64(i%64)), "r", names[rnd.IntN(keys)])
		}
	})
	b.StopTimer()
	stats := under(d, "r").Stats()
	b.ReportMetric(float64(stats.Bytes)/float64(stats.Keys), "B/key")
}

// BenchmarkDetectorInsert counts each key once.
func BenchmarkDetectorInsert(b *testing.B) {
	r := goodRule(b)
	r.Threshold, r.Span = 1000, 2*time.Second
	d := must.Get(hotkey.NewDetector([]hotkey.Rule{r}, hotkey.DetectorConfig{Budget: hotkey.NoBudget}))(b)
	key := []byte("key-0000000")
	now := time.UnixMicro(0)
	b.ReportAllocs()
	for i := range b.N {
		for j, n := len(key)-1, i; j >= 4; j, n = j-1, n/10 {
			key[j] = byte('0' + n%10)
		}
		under(d, "r").AddAt(now.Add(time.Duration(i)), string(key), 1)
	}
}

// BenchmarkDetectorWeight counts a hundred events of a key at once, where times are kept
// and where slots are.
func BenchmarkDetectorWeight(b *testing.B) {
	for _, threshold := range []uint64{limit.SlidingExact, 1000} {
		b.Run(fmt.Sprintf("threshold=%d", threshold), func(b *testing.B) {
			r := goodRule(b)
			r.Threshold, r.Span = threshold, 2*time.Second
			d := mustDetector(b, r)
			now := time.UnixMilli(0)
			b.ReportAllocs()
			for i := range b.N {
				addKeyN(d, now.Add(time.Duration(i)*time.Millisecond), "r", "key", 100)
			}
		})
	}
}
