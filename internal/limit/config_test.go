package limit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/lately-go/lately/internal/limit"
)

// TestNewNamesBadField checks that each error has the field, its value and what
// it must be.
func TestNewNamesBadField(t *testing.T) {
	for _, c := range []struct {
		limit.Config
		words []string
	}{
		{limit.Config{Algorithm: 10, N: 1, Span: time.Second}, []string{"algorithm: number is 10", "0 (sliding) to 7 (in-flight)"}},
		{limit.Config{N: 1 << 32, Span: time.Second}, []string{"limit: 4294967296", "sliding", "at most 4294967295"}},
		{limit.Config{Algorithm: limit.Exact, N: 1 << 16, Span: time.Second}, []string{"limit: 65536", "exact", "at most 65535"}},
		{limit.Config{Algorithm: limit.InFlight, N: 1 << 16, Span: time.Second}, []string{"in-flight", "65535"}},
		{limit.Config{Algorithm: limit.Fixed, N: 1 << 63, Span: time.Second}, []string{"limit: 9223372036854775808", "fixed"}},
		{limit.Config{N: 1}, []string{"span: 0s", "from 1ms to 87600h"}},
		{limit.Config{N: 1, Span: -time.Second}, []string{"span: -1s", "1ms"}},
		{limit.Config{N: 1, Span: 1500 * time.Microsecond}, []string{"span: 1.5ms", "whole milliseconds"}},
		{limit.Config{N: 1, Span: limit.MaxSpan + time.Millisecond}, []string{"span: 87600h0m0.001s"}},
		{limit.Config{Algorithm: limit.Calendar, N: 1}, []string{"period: none", "second, minute, hour, day, week or month"}},
		{limit.Config{Algorithm: limit.Calendar, N: 1, Period: 7}, []string{"period: period?", "month"}},
		{limit.Config{N: 1, Span: time.Second, Period: limit.Day}, []string{"period: day", "must be none with sliding"}},
		{limit.Config{N: 1, Span: time.Second, Zone: time.UTC}, []string{"zone: UTC", "must be none with sliding"}},
		{limit.Config{N: 1, Span: time.Second, Resolution: -1}, []string{"resolution: -1ns", "0 (nanoseconds)"}},
		{limit.Config{N: 1, Span: time.Second, Burst: 3}, []string{"burst: 3", "must be 0 with sliding"}},
		{limit.Config{Algorithm: limit.GCRA, N: 1, Span: limit.MaxSpan, Burst: 2}, []string{"burst: 2", "1 in 87600h0m0s", "at most 1"}},
		{limit.Config{Algorithm: limit.GCRA, N: 1, Span: time.Second, Burst: math.MaxUint64}, []string{"burst: ", "at most 315360000"}},
	} {
		_, err := limit.New(c.Config)
		if err == nil {
			t.Errorf("%+v is allowed", c.Config)
			continue
		}
		for _, word := range c.words {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%+v: %q does not contain %q", c.Config, err, word)
			}
		}
	}
}

// TestWords checks the words that each algorithm takes in a record.
func TestWords(t *testing.T) {
	const minute = time.Minute
	for _, c := range []struct {
		limit.Config
		words int
	}{
		{limit.Config{Algorithm: limit.Sliding, Span: minute}, 0},
		{limit.Config{Algorithm: limit.Sliding, N: 1, Span: minute}, 2},
		{limit.Config{Algorithm: limit.Sliding, N: 128, Span: minute}, 4},
		{limit.Config{Algorithm: limit.Sliding, N: 129, Span: minute}, 4},
		{limit.Config{Algorithm: limit.Sliding, N: 1000, Span: minute}, 4},
		{limit.Config{Algorithm: limit.Exact, N: 65535, Span: minute}, 4},
		{limit.Config{Algorithm: limit.InFlight, N: 10, Span: minute}, 4},
		{limit.Config{Algorithm: limit.TwoBucket, N: 1000, Span: minute}, 2},
		{limit.Config{Algorithm: limit.GCRA, N: 60, Span: minute}, 1},
		{limit.Config{Algorithm: limit.GCRA, N: 7, Span: minute}, 2},
		{limit.Config{Algorithm: limit.LeakyBucket, N: 1000, Span: minute}, 1},
		{limit.Config{Algorithm: limit.Fixed, N: 1000, Span: minute}, 2},
		{limit.Config{Algorithm: limit.Calendar, N: 1000, Period: limit.Month}, 2},
	} {
		m, err := limit.New(c.Config)
		if err != nil || m.Words() != c.words {
			t.Errorf("%+v takes %d words (%v), want %d", c.Config, m.Words(), err, c.words)
		}
	}
}

func TestNames(t *testing.T) {
	if limit.Sliding.String() != "sliding" || limit.InFlight.String() != "in-flight" || limit.Algorithm(9).String() != "algorithm?" {
		t.Error("names of algorithms")
	}
	if limit.Second.String() != "second" || limit.Month.String() != "month" || limit.Period(0).String() != "" || limit.Period(7).String() != "period?" {
		t.Error("names of periods")
	}
}

// TestNoAllocations judges an event of each kind: only new blocks and new periods
// allocate.
func TestNoAllocations(t *testing.T) {
	for _, c := range allKinds(150, time.Second) {
		if c.Algorithm == limit.Calendar {
			c.Period = limit.Month
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
			t.Errorf("%v: %v allocations an event", c.Algorithm, n)
		}
	}
}
