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

// ParseBanFilter returns the filter of these texts; those that are empty are not set. Its error is an [*Error].
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

// unbanUnsynced is after how many bans UnbanAll waits for the disk, so that their records fit
// in memory.
const unbanUnsynced = 4096

// UnbanAll ends the bans that f selects, and returns how many it has ended, when that is in
// the journal, if there is one. A ban that begins while it runs may stay. With an error, n
// bans were ended nevertheless: a failing disk does not stop it. It scans all bans, without
// blocking decisions.
func (e *Engine) UnbanAll(f BanFilter) (n int, err error) {
	set := e.limiter.Set()
	if _, err := set.Named(f.Rule); err != nil && f.Rule != "" {
		return 0, ruleError(err)
	}
	if err := e.requireLive(); err != nil {
		return 0, err
	}
	var failed error         // the first of the journal
	var last journal.Pending // of the newest record: those before it are on disk when it is
	for r, err := range e.Bans() {
		if err != nil {
			return n, &Error{api.Failed, err.Error()}
		}
		if !f.selects(&r) {
			continue
		}
		ok, pending, err := e.unban(&r)
		if !ok {
			continue // it has ended meanwhile
		}
		if e.lines.Allow(slog.LevelInfo, banEnded) {
			e.log.Info(banEnded, "rule", r.Rule, "key", KeyText(r.Key))
		}
		if err == nil {
			last = pending
		}
		if n++; n%unbanUnsynced == 0 {
			err = cmp.Or(err, last.Wait())
		}
		failed = cmp.Or(failed, err)
	}
	if failed = cmp.Or(failed, last.Wait()); failed != nil {
		return n, errorf(api.Failed, "%d bans are ended, but that is not on disk and may not survive a restart: %v", n, failed)
	}
	return n, nil
}
