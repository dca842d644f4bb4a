package engine

import (
	"iter"

	"github.com/lately-go/lately/ratelimit"
)

// Bans yields the bans that hold as of [Engine.Now].
func (e *Engine) Bans() iter.Seq2[ratelimit.BanRecord, error] {
	if e.clock.Load() != eventTime {
		return e.limiter.Load().Bans()
	}
	now, bans := e.now(), e.memory.Load().Bans()
	return func(yield func(ratelimit.BanRecord, error) bool) {
		for r, err := range bans {
			if (err != nil || r.Until.After(now)) && !yield(r, err) {
				return
			}
		}
	}
}

// NewestBans returns a page of the bans that hold, as of [Engine.Now]; see
// [ratelimit.Memory.NewestBans]. Errors are of *Error.
func (e *Engine) NewestBans(q ratelimit.BanQuery) (page ratelimit.BanPage, err error) {
	if err := e.scans.begin(); err != nil {
		return page, err
	}
	defer e.scans.end()
	if page, err = e.memory.Load().NewestBans(e.now(), q); err != nil {
		return page, &Error{BadArg, err.Error()}
	}
	return page, nil
}
