package meter_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/meter"
)

// BenchmarkMeter is Advance, the judgement and Charge for one record, at 1.25
// times the limit: a fifth is refused.
//
//	go test -run '^$' -bench Meter -cpu 1 ./internal/meter
func BenchmarkMeter(b *testing.B) {
	for _, c := range []struct {
		name string
		meter.Config
	}{
		{"sliding/N=1", meter.Config{Kind: meter.Sliding, N: 1}},
		{"sliding/N=60", meter.Config{Kind: meter.Sliding, N: 60}},
		{"sliding/N=100", meter.Config{Kind: meter.Sliding, N: 100}},
		{"sliding/N=150", meter.Config{Kind: meter.Sliding, N: 150}},
		{"sliding/N=1000", meter.Config{Kind: meter.Sliding, N: 1000}},
		{"sliding/N=100000", meter.Config{Kind: meter.Sliding, N: 100_000}},
		{"exact/N=1000", meter.Config{Kind: meter.Exact, N: 1000}},
		{"weighted/N=1000", meter.Config{Kind: meter.Weighted, N: 1000}},
		{"two-bucket/N=1000", meter.Config{Kind: meter.TwoBucket, N: 1000}},
		{"gcra/N=60", meter.Config{Kind: meter.GCRA, N: 60}},
		{"gcra/N=7", meter.Config{Kind: meter.GCRA, N: 7}},
		{"token-bucket/N=1000", meter.Config{Kind: meter.TokenBucket, N: 1000}},
		{"leaky-bucket/N=1000", meter.Config{Kind: meter.LeakyBucket, N: 1000}},
		{"fixed/N=1000", meter.Config{Kind: meter.Fixed, N: 1000}},
		{"calendar/N=1000", meter.Config{Kind: meter.Calendar, N: 1000, Period: meter.Minute}},
		{"in-flight/N=60", meter.Config{Kind: meter.InFlight, N: 60}},
	} {
		b.Run(c.name, func(b *testing.B) {
			if c.Kind != meter.Calendar {
				c.Span = time.Minute
			}
			s := newSubject(b, c.Config)
			now, step := int64(1e18), int64(time.Minute)/int64(c.N)*4/5
			n, admitted := s.Most(), 0
			for b.Loop() {
				now += step
				if used := s.Advance(s.w, s.b, now); 1 <= n-min(used, n) && s.Room(s.w, s.b, 1) {
					s.Charge(s.w, s.b, now, 1)
					admitted++
				}
			}
			b.ReportMetric(float64(8*s.Words()), "B")
			b.ReportMetric(float64(admitted)/float64(b.N), "admitted")
		})
	}
}

// BenchmarkWait is the wait and the reset of a refusal.
func BenchmarkWait(b *testing.B) {
	for _, c := range allKinds(1000, time.Minute) {
		b.Run(c.Kind.String(), func(b *testing.B) {
			if c.Kind == meter.Calendar {
				c.Period = meter.Month
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

// BenchmarkPeriod asks the zone for a period.
func BenchmarkPeriod(b *testing.B) {
	z := zone(b, "America/New_York")
	for _, p := range []meter.Period{meter.Minute, meter.Hour, meter.Day, meter.Month} {
		b.Run(p.String(), func(b *testing.B) {
			now := int64(1.7e18)
			for b.Loop() {
				now += 7e13
				p.Bounds(now, z)
			}
		})
	}
}
