package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/history"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/state"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// A banLine is one record of the ban journal: a ban, or the end of one, whose Until is
// when it was ended.
type banLine struct {
	Ban   *ratelimit.BanRecord `json:"ban,omitempty"`
	Unban *ratelimit.BanRecord `json:"unban,omitempty"`
}

// Bans yields the bans that hold.
func (e *Engine) Bans() iter.Seq2[ratelimit.BanRecord, error] { return e.limiter.Bans().All() }

// BanPage returns a page of the bans that hold; see
// [ratelimit.BanList.Page]. Errors are of *Error.
func (e *Engine) BanPage(q ratelimit.BanQuery) (page ratelimit.BanPage, err error) {
	if err := e.scans.begin(); err != nil {
		return page, err
	}
	defer e.scans.end()
	if _, err := e.ruleNamed(q.Rule); err != nil && q.Rule != "" {
		return page, err
	}
	if page, err = e.limiter.Bans().Page(q); err != nil {
		return page, banError(ruleError(err))
	}
	return page, nil
}

// Ban bans a key under a rule for d, by hand. It returns when the ban holds and is in the
// journal, if there is one. If a longer ban holds, it returns that one. key has the values of
// the rule's key; a client that looks like a mistyped address is an error.
func (e *Engine) Ban(name string, key []string, d time.Duration, reason, source string) (ratelimit.BanRecord, error) {
	now := e.limiter.Now()
	r := ratelimit.BanRecord{Rule: name, Key: key, Since: now, Until: now.Add(d), Reason: reason, Source: source}
	rule, err := e.fold(&r)
	if err != nil {
		return r, err
	}
	if err := checkBanned(rule, r.Key); err != nil {
		return r, err
	}
	if d <= 0 || d > ratelimit.MaxSpan {
		return r, apierror.New(api.BadArg, "duration: %v: must be from 1ms to %v", d, ratelimit.MaxSpan)
	}
	pending, err := e.ban(&r)
	if err == nil {
		err = pending.Wait()
	}
	if _, ok := errors.AsType[*apierror.Error](err); ok {
		return r, err
	}
	if err != nil {
		return r, apierror.New(api.Failed, "the ban holds, but is not known to be on disk and may not survive a restart: %v", err)
	}
	return r, nil
}

// checkBanned returns an error if key, which is folded, has a client that is most likely a mistyped
// address or network. Any other name is banned as it is: events may have it as their client.
func checkBanned(rule *ratelimit.Rule, key []string) error {
	i := keyvalue.ClientIndex(rule.Key)
	if i < 0 {
		return nil
	}
	client, _ := strings.CutPrefix(string(keyvalue.Client(rule.Key.Fields()[i], []byte(key[i]))), proxyPrefix)
	if isMistyped(client) {
		return apierror.New(api.BadArg, "client: %.64q: must be an address such as 192.0.2.1 or 2001:db8::1, or a name that does not look like one", client)
	}
	return nil
}

// isMistyped reports whether client is no address or network, but looks like one: it has no letters,
// or is an address with space around it or another end.
func isMistyped(client string) bool {
	if _, err := match.ParsePrefix(client); err == nil {
		return false
	}
	address, _, _ := strings.Cut(strings.TrimSpace(client), "/")
	if _, ok := match.ParseAddr(address); ok {
		return true
	}
	return strings.ContainsAny(client, ".:/") && strings.IndexFunc(client, unicode.IsLetter) < 0
}

// ban adds r, and appends its line to the journal. Bans change in the order of their lines.
// If the line cannot be written, the ban holds nevertheless.
func (e *Engine) ban(r *ratelimit.BanRecord) (journal.Pending, error) {
	unlock, err := e.changeBan(func() error { return e.limiter.Bans().Add(*r) })
	defer unlock()
	if errors.Is(err, ratelimit.ErrBansFull) {
		return journal.Pending{}, apierror.New(api.Overload, "no memory for another ban: end some, or raise the settings max-bans and memory-limit")
	} else if err != nil {
		return journal.Pending{}, banError(err)
	}
	asked := r.Until
	switch held, ok, err := e.limiter.Bans().Get(r.Rule, r.Key...); {
	case err == nil && ok:
		*r = held
	case e.Shared(): // it was ended meanwhile
		return journal.Pending{}, nil
	}
	if r.Until.Sub(asked) < time.Microsecond { // to which a store rounds up; else nothing has changed
		e.history.MarkBan(history.BannedByHand)
		e.events.Publish(banEvent(r))
	}
	return e.write(banLine{Ban: r})
}

// changeBan calls change, which adds or ends a ban, and locks banMu, which the caller unlocks. Changes in memory
// are in the order of their lines in the journal. Those in a store, which has no journal, may take seconds: they are
// made before the lock is taken, and their events follow the state of the ban at that time.
func (e *Engine) changeBan(change func() error) (unlock func(), err error) {
	if e.Shared() {
		err = change()
		e.banMu.Lock()
	} else {
		e.banMu.Lock()
		err = change()
	}
	return e.banMu.Unlock, err
}

// Shared reports whether limits and bans are in a store that servers share.
func (e *Engine) Shared() bool { return e.config.Store != nil }

// banError returns err, of a ban that a client has sent, as an *Error. That of the store is one.
func banError(err error) error {
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		return e
	}
	return apierror.New(api.BadArg, "%v", err)
}

// Unban ends the ban of a key under a rule, and returns how many it has ended: 0, 1, or 2 if key
// has the address of a trusted proxy, which may also be banned for requests that it sent without
// their client. The key may be as bans are listed, or as in an event.
func (e *Engine) Unban(rule string, key []string) (n int, err error) {
	if of, err := e.ruleNamed(rule); err == nil {
		key = slices.Clone(key)
		if err := e.digest(&of.Key, key, true); err != nil {
			return 0, err
		}
	}
	for _, key := range [][]string{key, e.proxied(rule, key)} {
		if key == nil {
			continue
		}
		ok, err := e.unbanKey(rule, key)
		if ok {
			n++
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// proxyPrefix begins the client of a request whose trusted proxy did not name one; the proxy's address follows.
const proxyPrefix = "proxy:"

// proxied returns the key under a rule of requests that a proxy with the address in key has sent without
// their client, or nil if key has no address.
func (e *Engine) proxied(name string, key []string) []string {
	rule, err := e.limiter.Set().Named(name)
	if err != nil {
		return nil
	}
	i := keyvalue.ClientIndex(rule.Key)
	if i < 0 || len(key) != len(rule.Key.Fields()) {
		return nil
	}
	client := string(keyvalue.Client(rule.Key.Fields()[i], []byte(key[i])))
	addr, ok := match.ParseAddr(client)
	if !ok {
		return nil
	}
	key = slices.Clone(key)
	key[i] = strings.TrimSuffix(key[i], client) + proxyPrefix + addr.String()
	return key
}

// unbanKey ends the ban of one key, and reports whether there was one.
func (e *Engine) unbanKey(rule string, key []string) (bool, error) {
	r := ratelimit.BanRecord{Rule: rule, Key: key}
	of, folding := e.fold(&r)
	if of == nil || folding != nil && len(key) != 1 { // one value may be what a key that is too long is listed as
		return false, folding
	}
	listed := ratelimit.BanRecord{Rule: rule, Key: key} // a path that is clean is not to be cleaned again
	ok, pending, err := e.unban(&listed)
	if !ok && folding != nil {
		return false, folding
	}
	if !ok && err == nil && !slices.Equal(key, r.Key) {
		ok, pending, err = e.unban(&r)
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
func (e *Engine) unban(r *ratelimit.BanRecord) (bool, journal.Pending, error) {
	ok := false
	unlock, err := e.changeBan(func() (err error) {
		ok, err = e.limiter.Bans().Remove(r.Rule, r.Key...)
		return err
	})
	defer unlock()
	if err != nil {
		return false, journal.Pending{}, banError(err)
	}
	if !ok {
		return false, journal.Pending{}, nil
	}
	e.history.MarkBan(history.EndedByHand)
	if e.Shared() {
		if _, again, _ := e.limiter.Bans().Get(r.Rule, r.Key...); again { // another began meanwhile
			return true, journal.Pending{}, nil
		}
	}
	now := e.Now()
	e.events.Publish(api.Event{Type: api.BanEnded, Time: now, Rule: r.Rule, Key: api.KeyOf(r.Key...)})
	r.Since, r.Until = now.Add(-time.Second), now // a record of a ban has an end after it began
	pending, err := e.write(banLine{Unban: r})
	return true, pending, err
}

// unbanUnsynced is after how many bans UnbanAll waits for the disk, so that their records fit
// in memory.
const unbanUnsynced = 4096

// UnbanAll ends the bans that f selects, and returns how many it has ended, when that is in
// the journal, if there is one. A ban that begins while it runs may stay. With an error, n
// bans were ended nevertheless: a failing disk does not stop it. It scans all bans, without
// blocking decisions.
func (e *Engine) UnbanAll(f api.BanFilter) (n int, err error) {
	if f == (api.BanFilter{}) {
		return 0, apierror.New(api.BadArg, "filter: missing: must be a rule, a pattern or a network; the pattern * selects every ban")
	}
	filter, err := keys.ParseFilter(f.Pattern, f.Network)
	if err != nil {
		return 0, err
	}
	if _, err := e.ruleNamed(f.Rule); err != nil && f.Rule != "" {
		return 0, err
	}
	var failed error         // the first of the journal
	var last journal.Pending // of the newest record: those before it are on disk when it is
	for r, err := range e.Bans() {
		if err != nil {
			return n, banError(err)
		}
		if f.Rule != "" && f.Rule != r.Rule || !filter.Selects(r.Key) {
			continue
		}
		ok, pending, err := e.unban(&r)
		if !ok && e.Shared() && err != nil {
			return n, err
		}
		if !ok {
			continue // it has ended meanwhile
		}
		if e.lines.Allow(slog.LevelInfo, banEnded) {
			e.log.Info(banEnded, "rule", r.Rule, "key", keys.Text(r.Key))
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

// fold makes the key of r what its rule counts by, and returns the rule: nil if it is unknown.
func (e *Engine) fold(r *ratelimit.BanRecord) (*ratelimit.Rule, error) {
	rule, err := e.ruleNamed(r.Rule)
	if err != nil {
		return nil, err
	}
	r.Key = slices.Clone(r.Key)
	if err := e.digest(&rule.Key, r.Key, true); err != nil {
		return rule, err
	}
	key, err := keys.Join(nil, &rule.Key, r.Key)
	if err != nil {
		return rule, err
	}
	r.Key = keyvalue.All(rule.Key, string(key))
	return rule, nil
}

// write appends a line to the journal, if there is one.
//
// REQUIRES: e.banMu.
func (e *Engine) write(line banLine) (journal.Pending, error) {
	if e.journal == nil {
		return journal.Pending{}, nil
	}
	b, err := json.Marshal(line)
	if err != nil {
		return journal.Pending{}, err
	}
	return e.journal.Append(state.Ban, b)
}

// banned is called for each ban that a rule begins, and for those by hand at another server of the store. Nothing waits for its line, which is on
// disk within a second.
func (e *Engine) banned(r ratelimit.BanRecord) {
	if !e.recordBan(&r) || !e.lines.Allow(slog.LevelInfo, banStarted) {
		return
	}
	e.log.Info(banStarted, "rule", r.Rule, "key", keys.Text(r.Key), "until", r.Until.UTC(), "count", r.Count, "reason", r.Reason)
}

// The messages of the log about bans that the caller does not log.
const (
	banStarted = "ban started"
	banEnded   = "ban ended"
)

// Source returns the source of a ban by hand: the protocol, and who spoke it if that has a
// name.
func Source(protocol, name string) string {
	if name != "" {
		protocol += ":" + name
	}
	return strings.ToValidUTF8(protocol[:min(len(protocol), 64)], "")
}

// unbanned is called for each ban that was ended by hand at another server of the store.
func (e *Engine) unbanned(rule string, key []string) {
	e.banMu.Lock()
	defer e.banMu.Unlock()
	if _, again, _ := e.limiter.Bans().Get(rule, key...); !again {
		e.events.Publish(api.Event{Type: api.BanEnded, Time: e.Now(), Rule: rule, Key: api.KeyOf(key...)})
	}
}

// recordBan appends a ban that a rule has begun to the journal, and publishes it. It replaces r
// with the ban in force. It returns false if the ban was ended by hand meanwhile, or after the event that began it: no record may
// follow that of its end. The ban of a rule that a reload has removed is appended as it was, like the
// lines before the reload: after a restart with the rule, it holds.
func (e *Engine) recordBan(r *ratelimit.BanRecord) bool {
	e.banMu.Lock()
	defer e.banMu.Unlock()
	if e.endAgain(r) {
		return false
	}
	held, ok, err := e.limiter.Bans().Get(r.Rule, r.Key...)
	if _, removed := errors.AsType[*ratelimit.RuleError](err); !ok && !removed {
		return false
	}
	if ok {
		*r = held
	}
	if _, err := e.write(banLine{Ban: r}); err != nil && !errors.Is(err, journal.ErrFull) { // which the journal counts
		e.log.Error("a ban was not written to the journal", "rule", r.Rule, "error", err)
	}
	e.events.Publish(banEvent(r))
	return true
}

// endAgain ends a ban that a rule has begun if it was ended by hand before a crash, as the line that began it was judged
// again. It reports whether that is so.
//
// REQUIRES: e.banMu.
func (e *Engine) endAgain(r *ratelimit.BanRecord) bool {
	end, ok := e.ended.take(r)
	if ok {
		e.endAt(*r, end)
	}
	return ok
}

// endAt ends a ban at a time in the past: events up to then are refused as they were, and it is no earlier ban
// of the next one.
func (e *Engine) endAt(r ratelimit.BanRecord, end time.Time) {
	bans := e.limiter.Bans()
	_, _ = bans.Remove(r.Rule, r.Key...) // there is none if the rule is gone
	r.Until, r.Count = end, 0
	_ = bans.At(r.Since).Add(r) // nothing to refuse if it began at its end
}
