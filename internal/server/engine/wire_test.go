package engine_test

import (
	"testing"
	"time"

	"github.com/lately-go/lately/internal/server/engine"
)

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
