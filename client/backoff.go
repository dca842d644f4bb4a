package client

import (
	"context"
	"math/rand/v2"
	"time"
)

// A backoff is the wait before another attempt: a random time up to a bound that doubles
// with each failure, so that the clients of a server do not all return at once.
type backoff struct{ first, most time.Duration }

var defaultBackoff = backoff{250 * time.Millisecond, 15 * time.Second}

// bound returns the longest wait after this many failures in a row.
func (b backoff) bound(failures int) time.Duration {
	return min(b.most, b.first<<min(failures-1, 20))
}

// wait waits after this many failures in a row, and at least for least. It reports whether
// ctx is not done.
func (b backoff) wait(ctx context.Context, failures int, least time.Duration) bool {
	timer := time.NewTimer(least + rand.N(b.bound(failures)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
