package meter_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/meter"
)

// TestNewSaysWhatIsWrong has the field, its value and what is allowed in each
// error.
func TestNewSaysWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		meter.Config
		words []string
	}{
		{meter.Config{Kind: 10, N: 1, Span: time.Second}, []string{"kind", "10", "0 (sliding) to 9 (in-flight)"}},
		{meter.Config{N: 1 << 32, Span: time.Second}, []string{"limit is 4294967296", "sliding", "at most 4294967295"}},
		{meter.Config{Kind: meter.Exact, N: 1 << 16, Span: time.Second}, []string{"limit is 65536", "exact", "at most 65535"}},
		{meter.Config{Kind: meter.InFlight, N: 1 << 16, Span: time.Second}, []string{"in-flight", "65535"}},
		{meter.Config{Kind: meter.Fixed, N: 1 << 63, Span: time.Second}, []string{"limit is 9223372036854775808", "fixed"}},
		{meter.Config{N: 1}, []string{"span is 0s", "from 1ms to 87600h0m0s"}},
		{meter.Config{N: 1, Span: -time.Second}, []string{"span is -1s", "1ms"}},
		{meter.Config{N: 1, Span: 1500 * time.Microsecond}, []string{"span is 1.5ms", "whole milliseconds"}},
		{meter.Config{N: 1, Span: meter.MaxSpan + time.Millisecond}, []string{"span is 87600h0m0.001s"}},
		{meter.Config{Kind: meter.Calendar, N: 1}, []string{"period is none", "second, minute, hour, day, week, month"}},
		{meter.Config{Kind: meter.Calendar, N: 1, Period: 7}, []string{"period is period?", "month"}},
		{meter.Config{N: 1, Span: time.Second, Period: meter.Day}, []string{"period is day", "only calendar", "sliding"}},
		{meter.Config{N: 1, Span: time.Second, Zone: time.UTC}, []string{"zone is UTC", "only calendar"}},
		{meter.Config{N: 1, Span: time.Second, Resolution: -1}, []string{"resolution is -1ns", "0 (nanoseconds)"}},
		{meter.Config{N: 1, Span: time.Second, Burst: 3}, []string{"burst is 3", "sliding has none", "gcra, token-bucket and leaky-bucket"}},
		{meter.Config{Kind: meter.GCRA, N: 1, Span: meter.MaxSpan, Burst: 2}, []string{"burst is 2", "1 in 87600h0m0s", "at most 1"}},
		{meter.Config{Kind: meter.GCRA, N: 1, Span: time.Second, Burst: math.MaxUint64}, []string{"burst is", "at most 315360000"}},
	} {
		_, err := meter.New(c.Config)
		if err == nil {
			t.Errorf("%+v is allowed", c.Config)
			continue
		}
		for _, word := range c.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%+v: %q does not say %q", c.Config, err, word)
			}
		}
	}
}

// TestWords is how much of a record each kind takes.
func TestWords(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		meter.Config
		words int
	}{
		{meter.Config{Kind: meter.Sliding, Span: minute}, 0},
		{meter.Config{Kind: meter.Sliding, N: 1, Span: minute}, 2},
		{meter.Config{Kind: meter.Sliding, N: 128, Span: minute}, 4},
		{meter.Config{Kind: meter.Sliding, N: 129, Span: minute}, 4},
		{meter.Config{Kind: meter.Sliding, N: 1000, Span: minute}, 4},
		{meter.Config{Kind: meter.Weighted, N: 254, Span: minute}, 12},
		{meter.Config{Kind: meter.Weighted, N: 65534, Span: minute}, 20},
		{meter.Config{Kind: meter.Weighted, N: 65535, Span: minute}, 35},
		{meter.Config{Kind: meter.Weighted, N: 1 << 31, Span: time.Millisecond}, 37},
		{meter.Config{Kind: meter.Exact, N: 65535, Span: minute}, 4},
		{meter.Config{Kind: meter.InFlight, N: 10, Span: minute}, 4},
		{meter.Config{Kind: meter.TwoBucket, N: 1000, Span: minute}, 2},
		{meter.Config{Kind: meter.GCRA, N: 60, Span: minute}, 1},
		{meter.Config{Kind: meter.TokenBucket, N: 7, Span: minute}, 2},
		{meter.Config{Kind: meter.LeakyBucket, N: 1000, Span: minute}, 1},
		{meter.Config{Kind: meter.Fixed, N: 1000, Span: minute}, 2},
		{meter.Config{Kind: meter.Calendar, N: 1000, Period: meter.Month}, 2},
	} {
		m, err := meter.New(c.Config)
		if err != nil || m.Words() != c.words {
			t.Errorf("%+v takes %d words (%v), want %d", c.Config, m.Words(), err, c.words)
		}
	}
}

func TestNames(t *testing.T) {
	if meter.Sliding.String() != "sliding" || meter.InFlight.String() != "in-flight" || meter.Kind(10).String() != "kind?" {
		t.Error("names of kinds")
	}
	if meter.Second.String() != "second" || meter.Month.String() != "month" || meter.Period(0).String() != "none" || meter.Period(7).String() != "period?" {
		t.Error("names of periods")
	}
}

// TestNoAllocations judges an event of each kind: only new blocks and new periods
// allocate.
func TestNoAllocations(t *testing.T) {
	for _, c := range allKinds(150, time.Second) {
		if c.Kind == meter.Calendar {
			c.Period = meter.Month
		}
		s, now := newSubject(t, c), int64(1e18)
		tick := func() {
			now += 3e6
			if s.take(now, 1) {
				s.charge(now, 1)
				s.refund(now, now, 1)
			}
			s.wait(now, 50)
			s.reset(now)
		}
		for range 1000 {
			tick()
		}
		if n := testing.AllocsPerRun(1000, tick); n != 0 {
			t.Errorf("%v: %v allocations an event", c.Kind, n)
		}
	}
}
