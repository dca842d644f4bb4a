// Package wait waits for a time, or for the end of a context.
package wait

import (
	"context"
	"iter"
	"time"
)

// Every yields the time each d, until ctx is done. A time that comes before the last one was
// dealt with is left out, as by a [time.Ticker].
func Every(ctx context.Context, d time.Duration) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-ticker.C:
				if !yield(now) {
					return
				}
			}
		}
	}
}

// For waits for d. If ctx ends before, it returns its error then.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Within is For, but does not wait at all if the deadline of ctx is before the end.
func Within(ctx context.Context, d time.Duration) error {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return context.DeadlineExceeded
	}
	return For(ctx, d)
}
