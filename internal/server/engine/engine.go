package engine

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/event/address"
	"github.com/lately-go/lately/internal/event/crawlers"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/bans"
	"github.com/lately-go/lately/internal/server/counters"
	"github.com/lately-go/lately/internal/server/events"
	"github.com/lately-go/lately/internal/server/history"
	"github.com/lately-go/lately/internal/server/hotkeys"
	"github.com/lately-go/lately/internal/server/keptevents"
	"github.com/lately-go/lately/internal/server/refused"
	"github.com/lately-go/lately/internal/server/reservations"
	"github.com/lately-go/lately/internal/server/scan"
	"github.com/lately-go/lately/internal/server/throttle"
	"github.com/lately-go/lately/internal/store/secret"
	"github.com/lately-go/lately/match"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// An Engine counts and judges events under a rules file. It is safe for concurrent use.
// Requests go through a [Session]. Make one with [New]; the zero Engine is not usable.
type Engine struct {
	config   Config
	log      *slog.Logger
	started  time.Time
	limiter  *ratelimit.Limiter
	counters *counters.Counters
	throttle *throttle.Limiter
	secret   *secret.Secret
	ids      *reservations.Sealer
	lives    *reservations.Lives
	settled  *reservations.Settled
	crawlers *crawlers.Verifier
	exempted atomic.Pointer[address.Set] // the crawlers

	rules atomic.Pointer[ruleSet]

	mu      sync.Mutex // held while rules changes
	reloads api.RulesStatus

	events    *events.Hub
	scans     *scan.Queue
	bans      *bans.List
	hot       *hotkeys.Keys
	refused   *refused.Store
	kept      *keptevents.Queue // or nil
	history   *history.History
	totals    [totalStripes]totals
	sessions  atomic.Uint64
	unmatched unmatchedWarning
	batches   sync.Pool // *queue
	spare     sync.Pool // *match.Event, of sessions

	stop chan struct{}
	done sync.WaitGroup
}

// New returns an Engine that judges by the rules of c.
func New(c Config) (*Engine, error) {
	if c.Rules == nil {
		c.Rules = noRules()
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	e := &Engine{
		config: c, log: c.Log, started: time.Now(), stop: make(chan struct{}), events: events.New(), scans: scan.New(), secret: secret.New(),
		crawlers: crawlers.New(c.Resolver), kept: keptevents.New(c.KeepEvents), refused: refused.New(),
		lives: reservations.NewLives(), settled: reservations.NewSettled(cmp.Or(c.Settled, 1<<20)),
	}
	e.ids = reservations.NewSealer(e.secret)
	e.batches.New, e.spare.New = func() any { return new(queue) }, func() any { return new(match.Event) }
	e.exempted.Store(new(address.Set))
	e.rules.Store(new(ruleSet))
	e.reloads.Since = e.started.UTC()
	if err := e.open(&c); err != nil {
		return nil, err
	}
	if err := e.use(c.Rules); err != nil {
		return nil, err
	}
	e.history = history.New(e.started, e.measure)
	e.done.Go(e.sample)
	e.done.Go(func() { e.events.Run(e.stop) })
	e.done.Go(func() { e.hot.Run(e.stop) })
	e.done.Go(e.verifyCrawlers)
	return e, nil
}

// open makes what needs memory or a store.
func (e *Engine) open(c *Config) (err error) {
	e.bans = bans.New(bans.Config{
		Rule: e.ruleNamed, Digest: func(k *match.Key, values []string) error { return e.digest(k, values, true) }, Shared: e.Shared(),
		Publish: e.events.Publish, MarkBan: func(typ string) { e.history.MarkBan(typ) }, Scans: e.scans, Log: c.Log,
	})
	if e.limiter, err = newLimiter(c, e.bans); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	e.bans.Use(e.limiter)
	if e.counters, err = counters.New(counters.Config{Budget: c.CounterBudget, Now: e.Now, Shared: c.Counters}); err != nil {
		return err
	}
	e.hot = hotkeys.New(hotkeys.Config{Budget: cmp.Or(c.HotBudget, 64<<20), Now: e.Now, Publish: e.events.Publish, Log: c.Log})
	e.throttle, err = throttle.New(c.CallerBudget)
	return err
}

// newLimiter returns the limiter of the rules of c, in the store of c or in memory.
func newLimiter(c *Config, b *bans.List) (*ratelimit.Limiter, error) {
	limits := ratelimit.Config{Budget: c.Budget, Bans: c.Bans, OnBan: b.Began, StoreTimeout: c.StoreTimeout}
	if c.Store != nil {
		var err error
		if limits.Store, err = c.Store(c.Rules.Limits, b.Began, b.EndedElsewhere); err != nil {
			return nil, err
		}
	}
	return ratelimit.NewLimiter(c.Rules.Limits, limits)
}

// Close ends the engine's goroutines and all subscriptions.
func (e *Engine) Close() {
	close(e.stop)
	e.events.Close()
	e.done.Wait()
}

// Secret returns the secret from which e derives the keys of ids and of hashed fields. It is random until
// the server sets the secret of its data directory or store.
func (e *Engine) Secret() *secret.Secret { return e.secret }

// EndDecisions says that no decision is under way, and that none will be made: the next snapshot has all reservations.
func (e *Engine) EndDecisions() { e.lives.End() }

// Locate returns what sets the fields country and asn of an event, or nil.
func (e *Engine) Locate() func(*match.Event) {
	if e.config.Geo == nil {
		return nil
	}
	return e.config.Geo.Set
}

// Rules returns the rules file in force.
func (e *Engine) Rules() *rules.File { return e.rules.Load().file }

// Replace puts the rules of file in force, and returns what that changes. A rule that
// keeps its name and its key keeps its counts, as [ratelimit.Limiter.Update] says, and so
// do counters and hot rules that do not change. Bans under a rule that is removed or gets
// another key would be dropped: without dropBans that is an error, which says how many.
// On an error the rules stay as they were.
func (e *Engine) Replace(file *rules.File, dropBans bool) (api.RuleChanges, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	changes := changesOf(e.Rules(), file)
	n, names, err := e.lost(file.Limits)
	if err == nil && n > 0 && !dropBans {
		err = wouldDrop(n, names)
	}
	if err == nil {
		err = e.use(file)
	}
	if err != nil {
		e.reloads.Error = err.Error()
		e.history.Mark(history.ReloadFailed)
		return api.RuleChanges{}, err
	}
	e.history.Mark(history.Reloaded)
	changes.BansDropped = n
	e.reloads = api.RulesStatus{Reloads: e.reloads.Reloads + 1, Since: time.Now().UTC()}
	e.events.Publish(api.Event{Type: api.RulesChanged, Time: e.Now()})
	return changes, nil
}

// use puts the rules of file in force.
//
// REQUIRES: e.mu, once there are sessions.
func (e *Engine) use(file *rules.File) error {
	r, err := newRuleSet(&e.config, file, e.rules.Load())
	if err != nil {
		return err
	}
	hot, err := e.hot.Prepare(file.Hot)
	if err != nil {
		return err
	}
	declared, err := e.counters.Prepare(file.Counters)
	if err != nil {
		return err
	}
	if err := e.hashPlans(file.Limits); err != nil {
		return err
	}
	if e.limiter.Set() != file.Limits { // which it has from the start
		if err := e.limiter.Update(file.Limits); err != nil {
			return fmt.Errorf("limits: %w", err)
		}
	}
	e.lives.Use(e.Now(), file.Limits)
	if err := e.counters.Use(declared); err != nil {
		return err
	}
	e.rules.Store(r)
	e.hot.Use(hot)
	e.crawlers.Use(file.Allow.Crawlers)
	if unused := r.fields.unused; len(unused) > 0 {
		e.log.Warn("no rule or counter uses these event fields any more; after a restart, events that have them are errors", "fields", strings.Join(unused, ", "))
	}
	return nil
}

// ReloadFailed records that the rules file could not be read. The rules in force stay.
func (e *Engine) ReloadFailed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reloads.Error = err.Error()
	e.history.Mark(history.ReloadFailed)
}

// ruleNamed returns a limit or ban by its name. The error for a hot rule says that it is one.
func (e *Engine) ruleNamed(name string) (*ratelimit.Rule, error) {
	r, err := e.limiter.Set().Named(name)
	if err == nil {
		return r, nil
	}
	if slices.ContainsFunc(e.Rules().Hot, func(r hotkey.Rule) bool { return r.Name == name }) {
		return nil, apierror.New(api.NoRule, "rule %q is a hot rule, which neither limits nor bans: must be a limit or a ban, as lately rules lists them", name)
	}
	return nil, apierror.Of(err)
}

// keyError returns the error of a decision about a key as an *apierror.Error, or nil if the decision
// stands: that a cost exceeds the limit is an answer.
func keyError(err error) error {
	if err == nil {
		return nil
	}
	if e, ok := apierror.Of(err).(*apierror.Error); ok {
		return e
	}
	return nil
}

// Now returns the time at which requests are judged.
func (e *Engine) Now() time.Time { return e.limiter.Now() }

// Bans returns the bans.
func (e *Engine) Bans() *bans.List { return e.bans }

// Shared reports whether limits and bans are in a store that servers share.
func (e *Engine) Shared() bool { return e.config.Store != nil }

// Counters returns the counters.
func (e *Engine) Counters() *counters.Counters { return e.counters }

// Hot returns the hot keys.
func (e *Engine) Hot() *hotkeys.Keys { return e.hot }

// Subscribe begins a subscription to all events.
func (e *Engine) Subscribe() *events.Subscription { return e.events.Subscribe() }

// CountDropped counts a subscriber that was disconnected because it does not read what it is sent. Those
// whose Slow reports true are counted.
func (e *Engine) CountDropped() { e.events.CountDropped() }

// KeptEvents returns the events that e keeps at one moment, and false if it keeps none by its
// Config. The caller must call Close.
func (e *Engine) KeptEvents() (*keptevents.Events, bool) {
	if e.kept == nil {
		return nil, false
	}
	all := e.kept.Events()
	if all.Since.IsZero() {
		all.Since = e.started
	}
	return all, true
}
