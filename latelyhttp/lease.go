package latelyhttp

import "github.com/lately-go/lately/internal/middleware"

// A Lease is an admitted request. The zero Lease holds nothing.
type Lease struct {
	lease middleware.Lease
}

// Done ends the request: its place under an [ratelimit.InFlight] limit is free again.
// It must be called, also if the handler panics; otherwise the request counts until the
// limit's span is over. Calls after the first do nothing.
func (l Lease) Done() { l.lease.Done() }

// giveUp makes v a refusal of a request that cannot wait for its turn.
func (v *Verdict) giveUp() {
	v.Decision.Allowed, v.Decision.RetryAfter = false, v.Decision.Delay
	for i := range v.Outcomes {
		if o := &v.Outcomes[i]; o.Delay > 0 {
			o.Refused, o.RetryAfter = true, o.Delay
		}
	}
}
