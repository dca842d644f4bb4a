package engine

import (
	"cmp"
	"log/slog"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/journal"
	"github.com/lately-go/lately/ratelimit"
)

// A BanFilter selects bans. A ban is selected if it satisfies every field that is
// set; at least one must be.
type BanFilter struct {
	// Rule is the name of the rule.
	Rule string

	KeyFilter
}

// ParseBanFilter returns the filter of these texts, of which those that are empty
// are not set. Its error is an [*Error].
func ParseBanFilter(rule, pattern, network string) (BanFilter, error) {
	if rule == "" && pattern == "" && network == "" {
		return BanFilter{}, errorf(api.BadArg, "filter: missing: must be a rule, a pattern or a network; the pattern * selects every ban")
	}
	keys, err := ParseKeyFilter(pattern, network)
	return BanFilter{rule, keys}, err
}

// selects reports whether f selects r.
func (f *BanFilter) selects(r *ratelimit.BanRecord) bool {
	return (f.Rule == "" || f.Rule == r.Rule) && f.KeyFilter.selects(r.Key)
}

const (
	// unbanBatch is how many bans are ended under one hold of the lock under which
	// bans change.
	unbanBatch = 256

	// unbanUnsynced is after how many of them UnbanAll waits for the disk, so that
	// their records do not fill the journal's queue.
	unbanUnsynced = 4096
)

// UnbanAll ends the bans that f selects, and returns how many it has ended. It
// returns when that is in the journal, if there is one. A ban that begins while it
// runs may stay. If there is an error, n bans were ended nevertheless.
//
// The cost is a scan of all bans. Decisions go on meanwhile; one that begins a ban
// waits for a batch of a few hundred.
func (e *Engine) UnbanAll(f BanFilter) (n int, err error) {
	set := e.limiter.Set()
	if _, err := set.Named(f.Rule); err != nil && f.Rule != "" {
		return 0, noSuchRule(err)
	}
	if err := e.requireLive(); err != nil {
		return 0, err
	}
	u := unbanning{e: e}
	for r, err := range e.Bans() {
		if err != nil {
			return u.n, &Error{api.Failed, err.Error()}
		}
		if !f.selects(&r) {
			continue
		}
		if u.batch = append(u.batch, r); len(u.batch) == unbanBatch {
			u.end()
			if u.unsynced >= unbanUnsynced {
				u.sync()
			}
		}
	}
	u.end()
	u.sync()
	if u.err != nil {
		return u.n, errorf(api.Failed, "%d bans are ended, but that is not on disk and may not survive a restart: %v", u.n, u.err)
	}
	return u.n, nil
}

// An unbanning ends bans in batches. A disk that fails does not stop it: the bans end
// in memory, which is what decides.
type unbanning struct {
	e        *Engine
	batch    []ratelimit.BanRecord
	last     journal.Pending // of the newest record: those before it are on disk when it is
	unsynced int
	n        int
	err      error // the first of the journal
}

// end ends the bans of the batch.
func (u *unbanning) end() {
	var logged []*ratelimit.BanRecord
	defer func() { // after the lock
		for _, r := range logged {
			u.e.log.Info(banEnded, "rule", r.Rule, "key", keyText(r.Key))
		}
		u.batch = u.batch[:0]
	}()
	u.e.banMu.Lock()
	defer u.e.banMu.Unlock()
	for i := range u.batch {
		ok, pending, err := u.e.unbanLocked(&u.batch[i])
		if !ok {
			continue // it has ended meanwhile
		}
		u.n++
		u.unsynced++
		if u.e.lines.Allow(slog.LevelInfo, banEnded) {
			logged = append(logged, &u.batch[i])
		}
		if err != nil {
			u.err = cmp.Or(u.err, err)
		} else {
			u.last = pending
		}
	}
}

// sync waits until the records are on disk.
func (u *unbanning) sync() {
	if err := u.last.Wait(); err != nil {
		u.err = cmp.Or(u.err, err)
	}
	u.unsynced = 0
}
