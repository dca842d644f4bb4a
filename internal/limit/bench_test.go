package limit_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// BenchmarkCounter is Advance, the judgement and Charge for one record, at 1.25
// times the limit: a fifth is refused.
//
//	go test -run '^$' -bench Counter -cpu 1 ./internal/limit
func BenchmarkCounter(b *testing.B) {
	for _, c := range []struct {
		name string
		limit.Config
	}{
		{"sliding/N=1", limit.Config{Algorithm: limit.Sliding, N: 1}},
		{"sliding/N=60", limit.Config{Algorithm: limit.Sliding, N: 60}},
		{"sliding/N=100", limit.Config{Algorithm: limit.Sliding, N: 100}},
		{"sliding/N=150", limit.Config{Algorithm: limit.Sliding, N: 150}},
		{"sliding/N=1000", limit.Config{Algorithm: limit.Sliding, N: 1000}},
		{"sliding/N=100000", limit.Config{Algorithm: limit.Sliding, N: 100_000}},
		{"exact/N=1000", limit.Config{Algorithm: limit.Exact, N: 1000}},
		{"two-bucket/N=1000", limit.Config{Algorithm: limit.TwoBucket, N: 1000}},
		{"gcra/N=60", limit.Config{Algorithm: limit.GCRA, N: 60}},
		{"gcra/N=7", limit.Config{Algorithm: limit.GCRA, N: 7}},
		{"leaky-bucket/N=1000", limit.Config{Algorithm: limit.LeakyBucket, N: 1000}},
		{"fixed/N=1000", limit.Config{Algorithm: limit.Fixed, N: 1000}},
		{"calendar/N=1000", limit.Config{Algorithm: limit.Calendar, N: 1000, Period: limit.Minute}},
		{"in-flight/N=60", limit.Config{Algorithm: limit.InFlight, N: 60}},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.Algorithm != limit.Calendar {
				c.Span = time.Minute
			}
			s := newSubject(b, c.Config)
			now, step := int64(1e18), int64(time.Minute)/int64(c.N)*4/5
			n, allowed := s.Most(), 0
			for b.Loop() {
				now += step
				if used := s.Advance(s.w, s.b, now); 1 <= n-min(used, n) && s.Reserve(s.w, s.b, 1) {
					s.Charge(s.w, s.b, now, 1)
					allowed++
				}
			}
			b.ReportMetric(float64(8*s.Words()), "B")
			b.ReportMetric(float64(allowed)/float64(b.N), "allowed")
		})
	}
}

// BenchmarkWait is the wait and the reset of a refusal.
func BenchmarkWait(b *testing.B) {
	for _, c := range allKinds(1000, time.Minute) {
		b.Run(c.Algorithm.String(), func(b *testing.B) {
			if c.Algorithm == limit.Calendar {
				c.Period = limit.Month
			}
			s, now := newSubject(b, c), int64(1e18)
			for s.take(now, 1) {
				now += int64(time.Minute) / 5000
			}
			sum := time.Duration(0)
			for b.Loop() {
				sum += s.Wait(s.w, s.b, now, 1000, 1) + s.Reset(s.w, s.b, now)
			}
		})
	}
}

// BenchmarkPeriod computes a period by the zone.
func BenchmarkPeriod(b *testing.B) {
	z := zone(b, "America/New_York")
	for _, p := range []limit.Period{limit.Minute, limit.Hour, limit.Day, limit.Month} {
		b.Run(p.String(), func(b *testing.B) {
			now := int64(1.7e18)
			for b.Loop() {
				now += 7e13
				p.Bounds(now, z)
			}
		})
	}
}
