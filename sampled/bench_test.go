package sampled

import (
	"math/rand/v2"
	"testing"
	"time"
)

// The lower bound of sampling is a random number and, where an event is
// counted, an atomic add and a reading of the monotonic clock; the root package
// measures these.
//
//	go test -run '^$' -bench 'Baseline|Counter|Sampler' -cpu 1,2

func BenchmarkBaselineRandom(b *testing.B) {
	inParallel(b, func() { rand.Uint64() })
}

func BenchmarkCounterAdd(b *testing.B) {
	s := mustCounter(b, 0.001)
	inParallel(b, func() { s.Add(1) })
}

func BenchmarkSamplerAdd(b *testing.B) {
	s := mustCounter(b, 0.001)
	b.RunParallel(func(pb *testing.PB) {
		r := s.Sampler()
		for pb.Next() {
			r.Add(1)
		}
	})
}

func BenchmarkSamplerAdd10Percent(b *testing.B) {
	s := mustCounter(b, 0.1)
	b.RunParallel(func(pb *testing.PB) {
		r := s.Sampler()
		for pb.Next() {
			r.Add(1)
		}
	})
}

func BenchmarkBaselineLoop(b *testing.B) {
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
		}
	})
}

func BenchmarkCounterSumAt(b *testing.B) {
	s := mustCounter(b, 0.001)
	at := time.Unix(1000, 0)
	s.AddAt(at, 1_000_000)
	for b.Loop() {
		s.SumAt(at).Interval(1.96)
	}
}

// inParallel calls do from as many goroutines as there are CPUs.
func inParallel(b *testing.B, do func()) {
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			do()
		}
	})
}
