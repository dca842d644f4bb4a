package engine_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
	"github.com/lately-go/lately/ratelimit"
)

func TestRoundUp(t *testing.T) {
	for _, c := range []struct {
		d, unit time.Duration
		want    int64
	}{
		{0, time.Millisecond, 0},
		{1, time.Millisecond, 1},
		{time.Millisecond, time.Millisecond, 1},
		{time.Millisecond + 1, time.Millisecond, 2},
		{time.Hour, time.Millisecond, 3_600_000},
		{ratelimit.Never, time.Millisecond, -1},
		{time.Second + 1, time.Second, 2},
	} {
		if got := engine.RoundUp(c.d, c.unit); got != c.want {
			t.Errorf("%v is %d times %v; want %d", c.d, got, c.unit, c.want)
		}
	}
}

func TestEpochMillis(t *testing.T) {
	for ns, want := range map[int64]int64{1: 1, 1e6: 1, 1e6 + 1: 2} {
		if got := engine.EpochMillis(time.Unix(0, ns)); got != want {
			t.Errorf("%d ns is %d; want %d", ns, got, want)
		}
	}
	if got := engine.EpochMillis(time.Time{}); got != 0 {
		t.Errorf("no time is %d", got)
	}
}
