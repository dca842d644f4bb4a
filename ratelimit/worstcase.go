package ratelimit

import "time"

// MaxAdmitted returns the largest total cost that algorithm a can admit for one
// key under l in any window (t-span, t], whatever arrives at whatever times: the
// worst case, which tests reach and never see exceeded.
//
//	Sliding, Exact                   N
//	InFlight                         N under way at any moment
//	Weighted, TwoBucket, Fixed       2N - 1
//	GCRA, LeakyBucket                N + Burst - 1
//	Calendar                         2N, in a window no longer than the shortest of its periods
//
// A LeakyBucket admits that many into its queue; no more than N have their turn
// in any window. For a rule with an [Adapt], N is the largest that it comes to.
//
// It holds while the store keeps the key. A memory store whose budget is spent may
// evict one that has used less than half of its limit, which then begins at 0:
// with every such eviction within the window, up to (N+1)/2 - 1 more are admitted
// (of a bucket half the Burst; of any limit up to 2 nothing). What [RuleLimiter.Refund]
// and a [Reservation] give back can be admitted once more. A settlement may charge
// more than a limit has left, for it is about what has already been used.
func (l Limit) MaxAdmitted(a Algorithm) uint64 {
	c := l.config(a, nil)
	return c.MaxAdmitted()
}

// MaxLate returns by how much longer algorithm a may count an event under l than
// its span: so much longer than Exact it may refuse, and so much longer than
// needed [Decision.RetryAfter] may be. It is a slot, a sixtieth of the span or a
// 64th, for Weighted, and for Sliding with N above 128; a span for TwoBucket; and
// 0 for all others.
//
// When the memory store has no budget left for the slots of a key, Sliding with N above
// 128 counts it in two slots of a whole span.
func (l Limit) MaxLate(a Algorithm) time.Duration {
	c := l.config(a, nil)
	return c.MaxLate()
}
