package engine

import (
	"iter"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/ratelimit"
)

// bans returns the list of bans as of [Engine.Now].
func (e *Engine) bans() ratelimit.BanList { return e.limiter.Bans().At(e.Now()) }

// Bans yields the bans that hold as of [Engine.Now].
func (e *Engine) Bans() iter.Seq2[ratelimit.BanRecord, error] { return e.bans().All() }

// BanPage returns a page of the bans that hold as of [Engine.Now]; see
// [ratelimit.BanList.Page]. Errors are of *Error.
func (e *Engine) BanPage(q ratelimit.BanQuery) (page ratelimit.BanPage, err error) {
	if err := e.scans.begin(); err != nil {
		return page, err
	}
	defer e.scans.end()
	if page, err = e.bans().Page(q); err != nil {
		return page, &Error{api.BadArg, err.Error()}
	}
	return page, nil
}
