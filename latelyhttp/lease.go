package latelyhttp

import (
	"context"
	"time"

	"github.com/lately-go/lately/ratelimit"
)

// A Lease is an admitted request. The zero Lease holds nothing.
type Lease struct {
	reservation *ratelimit.Reservation
	cost        uint64
}

// Done ends the request: its place under an [ratelimit.InFlight] limit is free again.
// It must be called, also if the handler panics; otherwise the request counts until the
// limit's span is over. Calls after the first do nothing.
func (p Lease) Done() {
	if p.reservation != nil {
		// A store that cannot be told frees the place when its span is over.
		_ = p.reservation.Settle(p.cost)
	}
}

// cancel takes back the charge of a request that will not be served.
func (p Lease) cancel() { _ = p.reservation.Cancel() }

// giveUp makes v a refusal of a request that cannot wait for its turn.
func (v *Verdict) giveUp() {
	v.Decision.Allowed, v.Decision.RetryAfter = false, v.Decision.Delay
	for i := range v.Outcomes {
		if o := &v.Outcomes[i]; o.Delay > 0 {
			o.Refused, o.RetryAfter = true, o.Delay
		}
	}
}

// sleep waits for d. It reports false as soon as ctx is done, and at once if its
// deadline is earlier.
func sleep(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
