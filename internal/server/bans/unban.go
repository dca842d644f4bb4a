package bans

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/history"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/ratelimit"
)

// Unban ends the ban of a key under a rule, and returns how many it has ended: 0, 1, or 2 if key
// has the address of a trusted proxy, which may also be banned for requests that it sent without
// their client. The key may be as bans are listed, or as in an event.
func (l *List) Unban(rule string, key []string) (n int, err error) {
	if of, err := l.config.Rule(rule); err == nil {
		values, err := valuesOf(of, key)
		if _, listed, _ := l.bans().Get(rule, key...); listed || err != nil {
			values = slices.Clone(key) // one value may be the digest of a long key, which can contain a separator
		}
		key = values
		if err := l.config.Digest(&of.Key, key); err != nil {
			return 0, err
		}
	}
	for _, key := range [][]string{key, l.proxied(rule, key)} {
		if key == nil {
			continue
		}
		ok, err := l.unbanKey(rule, key)
		if ok {
			n++
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// ProxyPrefix begins the client of a request whose trusted proxy did not name one; the proxy's address follows.
const ProxyPrefix = "proxy:"

// proxied returns the key under a rule of requests that a proxy with the address in key has sent without
// their client, or nil if key has no address.
func (l *List) proxied(name string, key []string) []string {
	rule, err := l.limiter.Set().Named(name)
	if err != nil {
		return nil
	}
	i := keyvalue.ClientIndex(rule.Key)
	if i < 0 || len(key) != len(rule.Key.Fields()) {
		return nil
	}
	client := string(keyvalue.Client(rule.Key.Fields()[i], []byte(key[i])))
	addr, ok := address.Parse(client)
	if !ok {
		return nil
	}
	key = slices.Clone(key)
	key[i] = strings.TrimSuffix(key[i], client) + ProxyPrefix + addr.String()
	return key
}

// unbanKey ends the ban of one key, and reports whether there was one.
func (l *List) unbanKey(rule string, key []string) (bool, error) {
	r := ratelimit.BanRecord{Rule: rule, Key: key}
	of, folding := l.fold(&r)
	if of == nil || folding != nil && len(key) != 1 { // one value may be what a key that is too long is listed as
		return false, folding
	}
	listed := ratelimit.BanRecord{Rule: rule, Key: key} // a path that is clean is not to be cleaned again
	ok, pending, err := l.unban(&listed)
	if !ok && folding != nil {
		return false, folding
	}
	if !ok && err == nil && !slices.Equal(key, r.Key) {
		ok, pending, err = l.unban(&r)
	}
	if !ok {
		return false, err
	}
	if err == nil {
		err = pending.Wait()
	}
	if err != nil {
		return true, apierror.New(api.Failed, "the ban is ended, but that is not known to be on disk and may not survive a restart: %v", err)
	}
	return true, nil
}

// unban ends the ban that r lists, appends its line to the journal, and reports whether there
// was a ban. If there was one, the error is that of the journal.
func (l *List) unban(r *ratelimit.BanRecord) (bool, journal.Pending, error) {
	ok := false
	unlock, err := l.change(func() (err error) {
		ok, err = l.bans().Remove(r.Rule, r.Key...)
		return err
	})
	defer unlock()
	if err != nil {
		return false, journal.Pending{}, banError(err)
	}
	if !ok {
		return false, journal.Pending{}, nil
	}
	l.config.MarkBan(history.EndedByHand)
	if l.config.Shared {
		if _, again, _ := l.bans().Get(r.Rule, r.Key...); again { // another began meanwhile
			return true, journal.Pending{}, nil
		}
	}
	now := l.limiter.Now()
	l.config.Publish(api.Event{Type: api.BanEnded, Time: now, Rule: r.Rule, Key: api.KeyOf(r.Key...)})
	r.Since, r.Until = now.Add(-time.Second), now // a record of a ban has an end after it began
	pending, err := l.write(line{Unban: r})
	return true, pending, err
}

// filter returns which keys f selects, under its rule if it has one.
func (l *List) filter(f api.BanFilter) (keys.Filter, error) {
	if f == (api.BanFilter{}) {
		return keys.Filter{}, apierror.New(api.BadArg, "filter: missing: must be a rule, a pattern or a network; the pattern * selects every ban")
	}
	if _, err := l.config.Rule(f.Rule); err != nil && f.Rule != "" {
		return keys.Filter{}, err
	}
	return keys.ParseFilter(f.Pattern, f.Network)
}

// unbanUnsynced is after how many bans UnbanAll waits for the disk, so that their records fit
// in memory.
const unbanUnsynced = 4096

// UnbanAll ends the bans that f selects, and returns how many it has ended, when that is in
// the journal, if there is one. A ban that begins while it runs may stay. With an error, n
// bans were ended nevertheless: a failing disk does not stop it. It scans all bans, without
// blocking decisions.
func (l *List) UnbanAll(f api.BanFilter) (n int, err error) {
	filter, err := l.filter(f)
	if err != nil {
		return 0, err
	}
	var failed error         // the first of the journal
	var last journal.Pending // of the newest record: those before it are on disk when it is
	for r, err := range l.bans().All() {
		if err != nil {
			return n, banError(err)
		}
		if f.Rule != "" && f.Rule != r.Rule || !filter.Selects(r.Key) {
			continue
		}
		ok, pending, err := l.unban(&r)
		if !ok && l.config.Shared && err != nil {
			return n, err
		}
		if !ok {
			continue // it has ended meanwhile
		}
		if l.lines.Allow(slog.LevelInfo, banEnded) {
			l.log.Info(banEnded, "rule", r.Rule, "key", keys.Text(r.Key))
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
		return n, apierror.New(api.Failed, "bans ended: %d; that is not on disk and may not survive a restart: %v", n, failed)
	}
	return n, nil
}
