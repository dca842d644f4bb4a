package lately

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The floor of sampling is a random number and, where it counts, an atomic add
// and a monotonic reading, in counter_bench_test.go:
//
//	go test -run '^$' -bench 'Floor|Sampled|Sampler' -cpu 1,2

func BenchmarkFloorRandom(b *testing.B) {
	inParallel(b, func() { rand.Uint64() })
}

func BenchmarkSampledAdd(b *testing.B) {
	s := mustSampled(b, 0.001)
	inParallel(b, func() { s.Add(1) })
}

func BenchmarkSamplerAdd(b *testing.B) {
	s := mustSampled(b, 0.001)
	b.RunParallel(func(pb *testing.PB) {
		r := s.Sampler()
		for pb.Next() {
			r.Add(1)
		}
	})
}

func BenchmarkSamplerAdd10Percent(b *testing.B) {
	s := mustSampled(b, 0.1)
	b.RunParallel(func(pb *testing.PB) {
		r := s.Sampler()
		for pb.Next() {
			r.Add(1)
		}
	})
}

func BenchmarkFloorLoop(b *testing.B) {
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
		}
	})
}

func BenchmarkSampledSumAt(b *testing.B) {
	s := mustSampled(b, 0.001)
	at := time.Unix(1000, 0)
	s.AddAt(at, 1_000_000)
	for b.Loop() {
		s.SumAt(at).Interval(1.96)
	}
}
