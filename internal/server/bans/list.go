// Package bans has the bans of a server: it lists, adds and ends them, and keeps those in memory in a journal.
//
//	l := bans.New(bans.Config{...})
//	limiter, err := ratelimit.NewLimiter(set, ratelimit.Config{OnBan: l.Began})
//	...
//	l.Use(limiter)
package bans

import (
	"errors"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/ban"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/keyvalue"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/history"
	"github.com/lately-go/lately/internal/server/journal"
	"github.com/lately-go/lately/internal/server/keys"
	"github.com/lately-go/lately/internal/server/loglimit"
	"github.com/lately-go/lately/internal/server/scan"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
)

// Config has the settings of a List. All are required.
type Config struct {
	// Rule returns a limit or ban by its name.
	Rule func(name string) (*ratelimit.Rule, error)

	// Digest replaces the values of hashed fields in a key of k by their digests; digests stay.
	Digest func(k *match.Key, values []string) error

	// Shared says that bans are in a store that servers share. Then methods that read or change bans may take seconds and fail.
	Shared bool

	// Publish is called with an event for each ban that begins or ends, and MarkBan with the type of mark of
	// each by hand. They must not wait.
	Publish func(api.Event)
	MarkBan func(typ string)

	// Scans limits how many clients read all bans.
	Scans *scan.Queue

	// Log receives bans.
	Log *slog.Logger
}

// A List is the bans of a limiter. It is safe for concurrent use. Make one with [New].
type List struct {
	config  Config
	limiter *ratelimit.Limiter
	log     *slog.Logger
	lines   *loglimit.Handler // bounds the lines of log

	mu      sync.Mutex       // held while a ban changes and its line is queued for the journal
	ended   endedBans        // guarded by mu
	journal *journal.Journal // or nil
}

// New returns a List, which Use completes.
func New(c Config) *List { return &List{config: c, log: c.Log, lines: loglimit.New(c.Log.Handler())} }

// Use sets the limiter, once, before it has a ban.
func (l *List) Use(limiter *ratelimit.Limiter) { l.limiter = limiter }

func (l *List) bans() ratelimit.BanList { return l.limiter.Bans() }

// All yields the bans that hold.
func (l *List) All() iter.Seq2[api.Ban, error] {
	return func(yield func(api.Ban, error) bool) {
		for r, err := range l.bans().All() {
			if !yield(API(&r), err) {
				return
			}
		}
	}
}

// A Query selects a page of the bans that hold, for [List.Page].
type Query = ban.Query

// Page returns a page of the bans that hold, newest first. Errors are of *apierror.Error.
func (l *List) Page(q Query) (page api.BanPage, err error) {
	if err := l.config.Scans.Begin(); err != nil {
		return page, err
	}
	defer l.config.Scans.End()
	if _, err := l.config.Rule(q.Rule); err != nil && q.Rule != "" {
		return page, err
	}
	records, total, next, err := l.limiter.Internal().BanPage(q)
	if err != nil {
		return page, banError(apierror.Of(err))
	}
	page = api.BanPage{Bans: make([]api.Ban, len(records)), Total: total, Next: next}
	for i := range records {
		page.Bans[i] = API(&records[i])
	}
	return page, nil
}

// Ban bans a key under a rule for d, up to limit.MaxSpan, by hand. It returns when the ban holds and is in the
// journal, if there is one. If a longer ban holds, it returns that one. key has the values of
// the rule's key, or one that stands for all, as of a Session; a client that looks like a mistyped address is an error.
func (l *List) Ban(name string, key []string, d time.Duration, reason, source string) (api.Ban, error) {
	now := l.limiter.Now()
	r := ratelimit.BanRecord{Rule: name, Key: key, Since: now, Until: now.Add(d), Reason: reason, Source: source}
	rule, err := l.fold(&r)
	if err != nil {
		return api.Ban{}, err
	}
	if err := checkBanned(rule, r.Key); err != nil {
		return api.Ban{}, err
	}
	pending, err := l.ban(&r)
	if err == nil {
		err = pending.Wait()
	}
	if _, ok := errors.AsType[*apierror.Error](err); ok {
		return api.Ban{}, err
	}
	if err != nil {
		return api.Ban{}, apierror.New(api.Failed, "the ban holds, but is not known to be on disk and may not survive a restart: %v", err)
	}
	return API(&r), nil
}

// checkBanned returns an error if key, which is folded, has a client that is most likely a mistyped
// address or network. Any other name is banned as it is: events may have it as their client.
func checkBanned(rule *ratelimit.Rule, key []string) error {
	i := keyvalue.ClientIndex(rule.Key)
	if i < 0 {
		return nil
	}
	client, _ := strings.CutPrefix(string(keyvalue.Client(rule.Key.Fields()[i], []byte(key[i]))), ProxyPrefix)
	if isMistyped(client) {
		return apierror.New(api.BadArg, "client: %.64q: must be an address such as 192.0.2.1 or 2001:db8::1, or a name that does not look like one", client)
	}
	return nil
}

// isMistyped reports whether client is no address or network, but looks like one: it has no letters,
// or is an address with space around it or another end.
func isMistyped(client string) bool {
	if _, err := address.ParsePrefix(client); err == nil {
		return false
	}
	before, _, _ := strings.Cut(strings.TrimSpace(client), "/")
	if _, ok := address.Parse(before); ok {
		return true
	}
	return strings.ContainsAny(client, ".:/") && strings.IndexFunc(client, unicode.IsLetter) < 0
}

// ban adds r, and appends its line to the journal. Bans change in the order of their lines.
// If the line cannot be written, the ban holds nevertheless.
func (l *List) ban(r *ratelimit.BanRecord) (journal.Pending, error) {
	unlock, err := l.change(func() error { return l.bans().Add(*r) })
	defer unlock()
	if errors.Is(err, ratelimit.ErrBansFull) {
		return journal.Pending{}, apierror.New(api.Overload, "no memory for another ban: end some, or raise the settings max-bans and memory")
	} else if err != nil {
		return journal.Pending{}, banError(err)
	}
	asked := r.Until
	switch held, ok, err := l.bans().Get(r.Rule, r.Key...); {
	case err == nil && ok:
		*r = held
	case l.config.Shared: // it was ended meanwhile
		return journal.Pending{}, nil
	}
	if r.Until.Sub(asked) < time.Microsecond { // to which a store rounds up; else nothing has changed
		l.config.MarkBan(history.BannedByHand)
		l.config.Publish(event(r))
	}
	return l.write(line{Ban: r})
}

// change calls change, which adds or ends a ban, and locks mu, which the caller unlocks. Changes in memory
// are in the order of their lines in the journal. Those in a store, which has no journal, may take seconds: they are
// made before the lock is taken, and their events follow the state of the ban at that time.
func (l *List) change(change func() error) (unlock func(), err error) {
	if l.config.Shared {
		err = change()
		l.mu.Lock()
	} else {
		l.mu.Lock()
		err = change()
	}
	return l.mu.Unlock, err
}

// banError returns err, of a ban that a client has sent, as an *apierror.Error. That of the store is one.
func banError(err error) error {
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		return e
	}
	return apierror.New(api.BadArg, "%v", err)
}

// fold makes the key of r what its rule counts by, and returns the rule: nil if it is unknown.
func (l *List) fold(r *ratelimit.BanRecord) (*ratelimit.Rule, error) {
	rule, err := l.config.Rule(r.Rule)
	if err != nil {
		return nil, err
	}
	if r.Key, err = valuesOf(rule, r.Key); err != nil {
		return rule, err
	}
	if err := l.config.Digest(&rule.Key, r.Key); err != nil {
		return rule, err
	}
	key, err := keys.Join(nil, &rule.Key, r.Key)
	if err != nil {
		return rule, err
	}
	r.Key = keyvalue.All(rule.Key, string(key))
	return rule, nil
}

// valuesOf returns a copy of key, or the values of one that stands for all.
func valuesOf(rule *ratelimit.Rule, key []string) ([]string, error) {
	if len(key) == 1 {
		return keys.Split(nil, &rule.Key, key[0])
	}
	return slices.Clone(key), nil
}

// Source returns the source of a ban by hand: the protocol, and who spoke it if that has a
// name.
func Source(protocol, name string) string {
	if name != "" {
		protocol += ":" + name
	}
	return strings.ToValidUTF8(protocol[:min(len(protocol), 64)], "")
}

// API returns r as the API has it.
func API(r *ratelimit.BanRecord) api.Ban {
	return api.Ban{Rule: r.Rule, Key: api.KeyOf(r.Key...), Since: r.Since.UTC(), Until: r.Until.UTC(), Count: r.Count, Reason: r.Reason, Source: r.Source}
}

// event returns the event of the ban r.
func event(r *ratelimit.BanRecord) api.Event {
	ban := API(r)
	return api.Event{Type: api.BanStarted, Time: r.Since, Ban: &ban}
}
