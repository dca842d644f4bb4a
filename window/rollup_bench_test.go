package window

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/test/must"
)

// The floor of a Rollup is an atomic add and a monotonic reading, in
// counter_bench_test.go; the other way to have eight spans is eight Counters:
//
//	go test -run '^$' -bench 'Floor|Rollup|EightCounters' -cpu 1,2

func BenchmarkEightCountersAdd(b *testing.B) {
	var counters []*Counter
	for _, span := range defaultRollupSpans() {
		c := must.Get(NewCounter(Last(span)))(b)
		counters = append(counters, c)
	}
	inParallel(b, func() {
		for _, c := range counters {
			c.Add(1)
		}
	})
}

func BenchmarkRollupAdd(b *testing.B) {
	r := mustRollup(b, RollupConfig{})
	inParallel(b, func() { r.Add(1) })
}

func BenchmarkRollupAddNoClock(b *testing.B) {
	r := mustRollup(b, RollupConfig{})
	now := r.clock.now()
	inParallel(b, func() { r.addLive(now, 1) })
}

func BenchmarkRollupAddAt(b *testing.B) {
	r := mustRollup(b, RollupConfig{})
	t := time.Unix(1e9, 0)
	inParallel(b, func() { r.AddAt(t, 1) })
}

// Every add in a new slot of the shortest span.
func BenchmarkRollupAddAtNewSlot(b *testing.B) {
	r := mustRollup(b, RollupConfig{})
	t := time.Unix(1e9, 0)
	for b.Loop() {
		t = t.Add(5 * time.Second)
		r.AddAt(t, 1)
	}
}

// Every add an hour late, which changes some 150 marks.
func BenchmarkRollupAddAtHourLate(b *testing.B) {
	r := mustRollup(b, RollupConfig{})
	t := time.Unix(1e9, 0)
	r.AddAt(t, 1)
	for b.Loop() {
		r.AddAt(t.Add(-time.Hour), 1)
	}
}

func BenchmarkRollupCount(b *testing.B) {
	r := mustRollup(b, RollupConfig{})
	r.Add(1)
	inParallel(b, func() { _, _ = r.Count(24 * time.Hour) })
}

func BenchmarkRollupCountAt(b *testing.B) {
	r := mustRollup(b, RollupConfig{})
	t := time.Unix(1e9, 0)
	r.AddAt(t, 1)
	inParallel(b, func() { _, _ = r.CountAt(t, 24*time.Hour) })
}

func BenchmarkRollupAppendCountsAt(b *testing.B) {
	r := mustRollup(b, RollupConfig{})
	t := time.Unix(1e9, 0)
	r.AddAt(t, 1)
	counts := make([]Count, 0, 8)
	for b.Loop() {
		r.AppendCountsAt(t, counts)
	}
}
