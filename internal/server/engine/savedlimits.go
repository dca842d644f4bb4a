package engine

import (
	"context"
	"crypto/rand"
	"iter"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/ratelimit"
)

// savedLimits are limits and bans that a Restorer has restored, and that the store does not have yet.
// Snapshots have them, with the id of their import, until the store does: so it goes on after a restart,
// and no key is added twice.
type savedLimits struct {
	limiter *ratelimit.Limiter
	id      string
}

// keepLimits keeps what r has restored for Import, if limits are in a store.
func (e *Engine) keepLimits(r *Restorer) {
	if r.limits == e.limiter {
		return
	}
	stats := r.limits.Stats()
	n := int(stats.Remembered)
	for _, rule := range stats.Rules {
		n += rule.Keys
	}
	if n == 0 {
		e.saved.Store(nil)
		return
	}
	const idLength = 10 // it is a part of the names of keys
	if r.id == "" {
		r.id = rand.Text()[:idLength]
	}
	e.saved.Store(&savedLimits{r.limits, r.id})
}

// saveLimits adds the limits and bans that this process has.
func (e *Engine) saveLimits(s *saver, now time.Time) {
	limiter := e.limiter
	if saved := e.saved.Load(); saved != nil {
		limiter = saved.limiter
		s.record(recordImport, []byte(saved.id))
	}
	s.chunks(recordLimits, limiter.Export(now))
}

// Importing reports whether limits and bans were restored that the store does not have yet.
func (e *Engine) Importing() bool { return e.saved.Load() != nil }

// Import adds what was restored to the store, see [ratelimit.Limiter.CopyTo]. Save a snapshot before,
// since it has the id of the import, and afterwards, since that has the limits and bans no more.
func (e *Engine) Import(ctx context.Context) iter.Seq2[lately.Imported, error] {
	return func(yield func(lately.Imported, error) bool) {
		saved := e.saved.Load()
		if saved == nil {
			return
		}
		for done, err := range saved.limiter.CopyTo(ctx, e.limiter, saved.id) {
			if !yield(done, err) || err != nil {
				return
			}
		}
		e.saved.Store(nil)
	}
}
