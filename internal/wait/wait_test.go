package wait

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		wait := func(ctx context.Context, wait func(context.Context, time.Duration) error, d, want time.Duration, wantErr error) {
			t.Helper()
			before := time.Since(start)
			if err := wait(ctx, d); err != wantErr || time.Since(start)-before != want {
				t.Errorf("%v: %v after %v, want %v after %v", d, err, time.Since(start)-before, wantErr, want)
			}
		}
		wait(t.Context(), For, time.Second, time.Second, nil)
		wait(t.Context(), Within, time.Second, time.Second, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		wait(ctx, Within, time.Second, time.Second, nil)
		wait(ctx, Within, time.Hour, 0, context.DeadlineExceeded)
		wait(ctx, For, time.Hour, 59*time.Second, context.DeadlineExceeded)
		cancel()
		wait(ctx, Within, time.Second, 0, context.DeadlineExceeded)
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		wait(ctx, Within, time.Minute, time.Second, context.Canceled)
	})
}

func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer cancel()
		var at []time.Duration
		for now := range Every(ctx, time.Second) {
			at = append(at, now.Sub(start))
		}
		if len(at) != 4 || at[3] != 4*time.Second || time.Since(start) != 4500*time.Millisecond {
			t.Errorf("%v until %v", at, time.Since(start))
		}
		for range Every(t.Context(), time.Second) {
			break
		}
		if d := time.Since(start); d != 5500*time.Millisecond {
			t.Errorf("left after %v", d)
		}
	})
}
