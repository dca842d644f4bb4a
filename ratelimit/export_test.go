package ratelimit

import (
	"time"

	"github.com/lately-go/lately/internal/store"
)

// The memory store and what is asked of a store, for tests of other packages.
type (
	Memory       = memory
	Store        = shared
	Request      = request
	Subject      = subject
	StoreOutcome = outcome
	Settlement   = settlement
	Adjustment   = adjustment
	CostError    = costError
)

var ErrStale = store.ErrStale

const (
	Refund = store.Refund
	Reset  = store.Reset
)

const MaxBanLine = maxBanLine

var ReadBans = readBans

// NewMemory returns an empty memory store.
func NewMemory(s *Set, c Config) (*Memory, error) { return newMemory(s, c) }

// Over returns a Limiter over a store.
func Over(s *Set, st Store) *Limiter {
	if m, ok := st.(*memory); ok {
		return newLimiter(s, m, m)
	}
	return newLimiter(s, st, nil)
}

// Keys returns how many keys the i-th rule of the Set has.
func (m *memory) Keys(i int) int { return m.rules.Load().rules[i].records.table.Len() }

// Decided decides r.
func (m *memory) Decided(r *Request) error { return m.decide(r) }

// ReserveAt is Reserve at time t.
func (r *RuleLimiter) ReserveAt(t time.Time, n uint64, key ...string) *Reservation {
	res := new(Reservation)
	r.limiter.reserve(&query{now: nanos(t), rule: r.name, key: key, cost: n}, res)
	return res
}

// ChargeAt is Charge at time t.
func (r *RuleLimiter) ChargeAt(t time.Time, n uint64, key ...string) error {
	_, err := r.adjust(store.Charge, nanos(t), n, key)
	return err
}

// RefundAt is Refund at time t.
func (r *RuleLimiter) RefundAt(t time.Time, n uint64, key ...string) (uint64, error) {
	return r.adjust(store.Refund, nanos(t), n, key)
}

// SettleAt is Settle at time t.
func (r *Reservation) SettleAt(t time.Time, actual uint64) error { return r.settle(nanos(t), actual) }

// TakeAt is Take at time t. For a key, times should not go back.
func (t *Throttle) TakeAt(at time.Time, key string, burst, count uint64, period time.Duration, quantity uint64) (Decision, error) {
	return t.take(nanos(at), key, burst, count, period, quantity)
}

// Stored returns what the tables of m keep of a key.
func (m *memory) Stored(key []byte) []byte { return m.stored(key) }
