package window

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestRate(t *testing.T) {
	c := mustCounter(t, Window{Span: 10 * time.Second, Slot: time.Second})
	start := time.Unix(500, 0)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	for s := range 10 {
		c.AddAt(at(float64(s)), uint64(10*(s+1))) // 10 to 100
	}
	for _, x := range []struct {
		at   float64
		span time.Duration
		want float64
	}{
		{9.999999999, 10 * time.Second, 55},
		{9.999999999, time.Second, 100},
		{9.5, time.Second, 100 + 45}, // the whole current slot, and half of the previous one
		{9.999999999, 4 * time.Second, 85},
		{9.25, 4 * time.Second, (100 + 90 + 80 + 70 + 0.75*60) / 4},
		{10.5, 10 * time.Second, (550 - 5) / 10.0},
		{25, 10 * time.Second, 0},
	} {
		got, err := c.RateAt(at(x.at), x.span)
		if err != nil || math.Abs(got-x.want) > 1e-6 {
			t.Errorf("at %v s, last %v: %v, %v; want %v", x.at, x.span, got, err, x.want)
		}
	}
	if got := c.PeakRateAt(at(9)); got != 100 {
		t.Errorf("peak rate %v, want 100", got)
	}
	if got := c.PeakRateAt(at(30)); got != 0 {
		t.Errorf("peak rate of an empty window %v, want 0", got)
	}
	for _, span := range []time.Duration{0, -1, 10*time.Second + 1} {
		if rate, err := c.RateAt(start, span); rate != 0 || err == nil {
			t.Errorf("RateAt over %v: %v, %v; want an error", span, rate, err)
		}
		if rate, err := c.Rate(span); rate != 0 || err == nil {
			t.Errorf("Rate over %v: %v, %v; want an error", span, rate, err)
		}
	}
}

func TestRateLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mustCounter(t, Window{Span: time.Second, Slot: 100 * time.Millisecond})
		for i := range 10 {
			c.Add(uint64(i))
			time.Sleep(100 * time.Millisecond)
		}
		// Slot 0, which is empty, is cut.
		if got, err := c.Rate(time.Second); got != 45 || err != nil {
			t.Errorf("rate %v, want 45", got)
		}
		if got, err := c.Rate(200 * time.Millisecond); math.Abs(got-85) > 1e-3 || err != nil {
			t.Errorf("rate of the last 200 ms %v, %v; want 85", got, err)
		}
		if got := c.PeakRate(); got != 90 {
			t.Errorf("peak rate %v, want 90", got)
		}
	})
}
