package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/lately-go/lately/internal/store"
)

// What the limiter asks of a store.
type (
	shared     = store.Store[*Set, BanRecord]
	request    = store.Request[*Set]
	subject    = store.Subject[*Set]
	outcome    = store.Outcome[*Set]
	settlement = store.Settlement[*Set]
	adjustment = store.Adjustment[*Set]
)

// storeTimeout bounds each call of a store other than memory.
const storeTimeout = 20 * time.Millisecond

// ErrKeyTooLong is the error of a key that a store does not take. With the memory
// store that is a key of 1 MiB or more.
var ErrKeyTooLong = errors.New("ratelimit: key too long")

// decideIn has the store decide r.
func (l *Limiter) decideIn(r *request) error {
	if l.memory != nil {
		return l.memory.decide(r)
	}
	ctx, cancel := l.bounded()
	defer cancel()
	l.store.Decide(ctx, []*request{r})
	return r.Err
}

// bounded returns the context of one call of the store.
func (l *Limiter) bounded() (context.Context, context.CancelFunc) {
	if l.memory != nil {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), storeTimeout)
}

// Decide implements [store.Store]. A batch is decided one request after the other:
// there is nothing to wait for.
func (m *memory) Decide(_ context.Context, batch []*request) {
	for _, r := range batch {
		r.Err = m.decide(r)
	}
}
