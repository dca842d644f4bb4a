package window

import (
	"sync"
	"testing"
	"time"
)

// The floor of Sums is an atomic add and a monotonic reading, in
// counter_bench_test.go, and what a mutex would cost:
//
//	go test -run '^$' -bench 'Floor|Sums' -cpu 1,2

func BenchmarkFloorMutexAdd(b *testing.B) {
	var mu sync.Mutex
	n := 0
	inParallel(b, func() { mu.Lock(); n++; mu.Unlock() })
}

// benchSums has 10 slots of 100 ms, the window that peers are measured with.
func benchSums(b *testing.B) *Sums {
	return mustSums(b, Window{Span: time.Second, Slot: 100 * time.Millisecond}, 2)
}

func BenchmarkSumsAdd(b *testing.B) {
	s := benchSums(b)
	inParallel(b, func() { s.Add(1, 1999) })
}

func BenchmarkSumsAddNoClock(b *testing.B) {
	s := benchSums(b)
	now := s.clock.now()
	inParallel(b, func() { s.addLive(now, 1, 1999) })
}

func BenchmarkSumsAddAt(b *testing.B) {
	s := benchSums(b)
	t := time.Unix(1e9, 0)
	inParallel(b, func() { s.AddAt(t, 1, 1999) })
}

// Every add in a new slot.
func BenchmarkSumsAddAtNewSlot(b *testing.B) {
	s := benchSums(b)
	t := time.Unix(1e9, 0)
	for b.Loop() {
		t = t.Add(100 * time.Millisecond)
		s.AddAt(t, 1, 1999)
	}
}

func BenchmarkSumsSumAt(b *testing.B) {
	s := benchSums(b)
	t := time.Unix(1e9, 0)
	s.AddAt(t, 1, 1999)
	inParallel(b, func() { s.SumAt(t, 1) })
}

func BenchmarkSumsSumAt60(b *testing.B) {
	s := mustSums(b, Last(time.Minute), 2)
	t := time.Unix(1e9, 0)
	s.AddAt(t, 1, 1999)
	inParallel(b, func() { s.SumAt(t, 1) })
}
