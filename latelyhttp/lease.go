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

// Done says that the request is over: what it held of an [ratelimit.InFlight]
// limit is free again. It must be called, also when the handler panics; a Lease
// that is not done holds its place until the limit's span is over. Calls after
// the first do nothing.
func (p Lease) Done() {
	if p.reservation != nil {
		// A store that cannot be told frees the place when its span is over.
		_ = p.reservation.Settle(p.cost)
	}
}

// cancel takes back what a request was charged that will not be served.
func (p Lease) cancel() { _ = p.reservation.Cancel() }

// giveUp makes v a refusal of a request that would not wait for its turn.
func (v *Verdict) giveUp() {
	v.Decision.Allowed, v.Decision.RetryAfter = false, v.Decision.Delay
	for i := range v.Outcomes {
		if o := &v.Outcomes[i]; o.Delay > 0 {
			o.Refused, o.RetryAfter = true, o.Delay
		}
	}
}

// sleep waits for d and reports true, or reports false as soon as ctx is over,
// and at once if it will be over before.
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
