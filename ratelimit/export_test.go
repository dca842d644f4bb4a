package ratelimit

import (
	"cmp"
	"context"
	"iter"
	"time"

	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/batch"
	"github.com/lately-go/lately/internal/store"
	"github.com/lately-go/lately/match"
)

// The memory store and the requests of a store. Its methods make it a shared store, for the tests that all stores must
// pass.
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

// NewMemory returns an empty memory store.
func NewMemory(s *Set, c Config) (*Memory, error) { return newMemory(s, c, 1) }

// Over returns a Limiter over a store.
func Over(s *Set, st Store) *Limiter {
	if m, ok := st.(*memory); ok {
		return newLimiter(s, nil, m)
	}
	return newLimiter(s, st, nil)
}

// UseLocal has l decide in m while its store is away.
func (l *Limiter) UseLocal(m *Memory) { l.local.Store(m) }

// Ban implements [store.Store]: the key is banned from b.Since on, where [BanList.Add] uses the present time. It is an
// error if there is no such rule, if the rule cannot have this key, or if there is no memory, which is ErrBansFull.
func (m *memory) Ban(_ context.Context, b BanRecord) error {
	b.Source = cmp.Or(b.Source, ban.SourceManual)
	if err := b.validate(); err != nil {
		return err
	}
	rs := m.rules.Load()
	r, err := rs.set.Named(b.Rule)
	if err != nil {
		return err
	}
	key, err := banKey(r.Key, b.Key)
	if err != nil {
		return err
	}
	now := rs.now()
	if !b.Since.IsZero() {
		now = nanos(b.Since)
	}
	return m.addBan(b, key, now)
}

// Unban implements [store.Store]. It reports whether a ban held at the newest time at which a
// key was added; [BanList.Remove] uses the present time.
func (m *memory) Unban(_ context.Context, rule string, key []byte) (bool, error) {
	rs := m.rules.Load()
	if _, err := rs.set.Named(rule); err != nil {
		return false, err
	}
	return m.removeBan(rule, key, rs.now()), nil
}

// Bans implements [store.Store]: the bans as of the newest time at which a key was added.
// [BanList.All] uses the present time.
func (m *memory) Bans() store.BanCopy[*Set] {
	return store.BanCopy[*Set](m.copyAt(m.rules.Load().now()))
}

// BanRecords yields the bans that [memory.Bans] returns.
func (m *memory) BanRecords() iter.Seq2[BanRecord, error] {
	c := banCopy(m.Bans())
	return c.all
}

// Decide implements [store.Store]. It decides the requests of a batch one after the other: there is nothing to wait for.
func (m *memory) Decide(_ context.Context, batch []*request) {
	for _, r := range batch {
		r.Err = m.decide(r)
	}
}

// DecideKnown implements [store.Store].
func (m *memory) DecideKnown(*request) bool { return false }

// Nodes implements [store.Store].
func (m *memory) Nodes() int { return 0 }

// Keys returns how many keys the i-th rule of the Set has.
func (m *memory) Keys(i int) int { return m.rules.Load().rules[i].records.table.Len() }

// Decided decides r.
func (m *memory) Decided(r *Request) error { return m.decide(r) }

// ReserveAt is Reserve at time t.
func (r *RuleLimiter) ReserveAt(t time.Time, n uint64, key ...string) *Reservation {
	res := new(Reservation)
	r.limiter.reserve(&batch.Query{Rule: r.name, Key: key, Cost: n}, nanos(t), res)
	return res
}

// Ticket returns a ticket of what r has charged.
func (r *Reservation) Ticket() (t batch.Ticket) {
	fillTicket(&t, &batch.Query{Cost: r.cost}, &r.scratch.request, &r.Decision)
	return t
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

// Stored returns what the tables of m store for a key.
func (m *memory) Stored(key []byte) []byte { return m.stored(key) }

// PeekN is Peek at time t, with a cost.
func (l *Limiter) PeekN(t time.Time, e *match.Event, n uint64) (d Decision) {
	l.decide(&d, &batch.Query{Event: e, Cost: n, Peek: true}, nanos(t))
	return d
}

// PeekN is Peek at time t, with a cost.
func (r *RuleLimiter) PeekN(t time.Time, n uint64, key ...string) (d Decision) {
	r.limiter.decide(&d, &batch.Query{Rule: r.name, Key: key, Cost: n, Peek: true}, nanos(t))
	return d
}

// Judge is TakeAt, and also returns the outcome of each rule.
func (l *Limiter) Judge(t time.Time, e *match.Event, n uint64, dst []Outcome) (Decision, []Outcome) {
	return l.Internal().JudgeAt(t, &batch.Query{Event: e, Cost: n}, dst)
}

// Open is what [internal.Reserve] returns.
func (r *Reservation) Open() bool { return r.open() }

// A BanPage is what [internal.BanPage] returns.
type BanPage struct {
	Bans  []BanRecord
	Total int
	Next  string
}

// Page is [internal.BanPage] at the time of b.
func (b BanList) Page(q ban.Query) (p BanPage, err error) {
	c := b.copy()
	p.Bans, p.Total, p.Next, err = c.page(q)
	return p, err
}

// Restore is [internal.RestoreBan] at the time of b.
func (b BanList) Restore(r BanRecord) error { return b.limiter.restoreBan(&r, b.now()) }

const MaxRules = maxRules

// Duration is [ban.Policy.Duration].
func (b *Ban) Duration(earlier int) time.Duration { return b.policy().Duration(earlier) }
