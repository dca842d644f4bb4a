package ratelimit

import "time"

// ReserveAt is Reserve at time t.
func (r *RuleLimiter) ReserveAt(t time.Time, n uint64, key ...string) *Reservation {
	return r.reserve(nanos(t), n, key)
}

// RefundAt is Refund at time t.
func (r *RuleLimiter) RefundAt(t time.Time, n uint64, key ...string) (uint64, error) {
	return r.refund(nanos(t), n, key)
}
