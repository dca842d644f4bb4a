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
