package wait

import (
	"math"
	"testing"
	"time"
)

// TestBackoff doubles the wait up to the longest, however many failures there are.
func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: 250 * time.Millisecond, 2: 500 * time.Millisecond, 6: 8 * time.Second, 7: 15 * time.Second, 1000: 15 * time.Second, math.MaxInt: 15 * time.Second,
	} {
		if got := Backoff(250*time.Millisecond, 15*time.Second, failures); got != want {
			t.Errorf("after %d failures: %v, want %v", failures, got, want)
		}
	}
}
