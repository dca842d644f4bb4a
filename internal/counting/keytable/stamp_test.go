package keytable

import (
	"math"
	"testing"
	"time"
)

func TestStamp(t *testing.T) {
	times := []int64{math.MinInt64, -1, 0, 1, math.MaxInt64}
	if Stamp(math.MinInt64) != 0 {
		t.Errorf("the earliest time is the word %x, want 0", Stamp(math.MinInt64))
	}
	for i, ns := range times {
		if got := Time(Stamp(ns)); got != ns {
			t.Errorf("%d comes back as %d", ns, got)
		}
		if i > 0 && Stamp(ns) <= Stamp(times[i-1]) {
			t.Errorf("the words of %d and %d are not in order", times[i-1], ns)
		}
	}
}

func TestNanos(t *testing.T) {
	const span = 365 * 24 * time.Hour
	const most = math.MaxInt64 - 4*int64(span)
	for _, c := range []struct {
		t    time.Time
		want int64
	}{
		{time.Unix(0, 0), 0},
		{time.Unix(-1, 5), -999_999_995},
		{time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC), 1_772_409_600e9},
		{time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), -most},
		{time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), most},
		{time.Unix(math.MaxInt64, 0), most},
		{time.Unix(math.MinInt64, 0), -most},
	} {
		if got := Nanos(c.t, span); got != c.want {
			t.Errorf("Nanos(%v) = %d, want %d", c.t, got, c.want)
		}
	}
}
