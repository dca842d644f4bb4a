package engine

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately"
	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/internal/journal"
	"github.com/lately-go/lately/internal/loglimit"
	"github.com/lately-go/lately/ratelimit"
	"github.com/lately-go/lately/rules"
)

// An Engine counts and judges events under a rules file. It is safe for
// concurrent use; [Engine.Caller] returns what decisions are asked of. Make one with
// [New]; the zero Engine is not usable.
type Engine struct {
	config   Config
	log      *slog.Logger
	lines    *loglimit.Handler // how many lines of log there may be about bans
	started  time.Time
	throttle *ratelimit.Throttle

	book    atomic.Pointer[book]
	limiter atomic.Pointer[ratelimit.Limiter]
	newest  atomic.Int64 // event time so far, in milliseconds since 1970

	mu      sync.Mutex // keeps apart what changes the book
	reloads reloads

	banMu   sync.Mutex       // bans by hand and lines of the journal come in one order
	journal *journal.Journal // or nil

	hub       hub
	scans     scans
	stats     statsCache
	hot       hotKeys
	refused   *lately.Table // see newRefused
	history   history
	tallies   [tallies]tally
	callers   atomic.Uint64
	unmatched unmatched

	stop chan struct{}
	done sync.WaitGroup
}

// reloads is what became of the rules file since the start.
type reloads struct {
	n    uint64
	at   time.Time
	last error
}

// New returns an Engine that judges by the rules of c.
func New(c Config) (*Engine, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Rules == nil {
		c.Rules = noRules()
	}
	if c.CounterBudget == 0 {
		c.CounterBudget = DefaultCounterBudget
	}
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	e := &Engine{config: c, log: c.Log, lines: loglimit.New(c.Log.Handler()), started: time.Now(), stop: make(chan struct{})}
	if err := e.setLimiter(c.Rules); err != nil {
		return nil, err
	}
	b, err := newBook(c.Rules, nil, c.CounterBudget)
	if err != nil {
		return nil, err
	}
	e.book.Store(b)
	if e.throttle, err = ratelimit.NewThrottle(cmp.Or(c.ThrottleBudget, DefaultThrottleBudget)); err != nil {
		return nil, err
	}
	if e.refused, err = newRefused(); err != nil {
		return nil, err
	}
	e.reloads.at = e.started
	e.history.init(e)
	e.hub.init()
	e.scans.init()
	e.done.Go(e.sample)
	e.done.Go(func() { e.hub.wakeReaders(e.stop) })
	return e, nil
}

// setLimiter makes the limiter an empty one of the rules of f.
func (e *Engine) setLimiter(f *rules.File) error {
	l, err := ratelimit.NewLimiter(f.Limits, ratelimit.Config{Budget: e.config.Budget, Bans: e.config.Bans, OnBan: e.banned})
	if err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	e.limiter.Store(l)
	return nil
}

// Close ends the engine's goroutine and all subscriptions. Nothing may be asked of
// it afterwards.
func (e *Engine) Close() {
	close(e.stop)
	e.hub.close()
	e.done.Wait()
}

// Rules returns the rules file in force.
func (e *Engine) Rules() *rules.File { return e.book.Load().file }

// Reload is [Engine.Replace] for which bans may be dropped.
func (e *Engine) Reload(file *rules.File) error {
	_, err := e.Replace(file, true)
	return err
}

// Replace puts the rules of file in force, and returns what that changes. No count is
// lost: a rule that keeps its name and its key takes over what was counted, as
// [ratelimit.Limiter.Update] says, and a counter or hot rule that stays as it was keeps
// all. Bans under a rule that is removed or gets another key would be lost: unless
// dropBans is set, the error then says how many. On an error the rules stay as they
// were.
func (e *Engine) Replace(file *rules.File, dropBans bool) (api.RuleChanges, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	changes := changesOf(e.Rules(), file)
	bans, names, err := e.lost(file.Limits)
	if err == nil && bans > 0 && !dropBans {
		err = wouldDrop(bans, names)
	}
	if err == nil {
		err = e.reload(file)
	}
	e.reloads.last = err
	if err != nil {
		e.mark(ReloadFailed)
		return api.RuleChanges{}, err
	}
	e.mark(Reloaded)
	changes.BansDropped = bans
	e.reloads.n++
	e.reloads.at = time.Now()
	e.hub.publish(api.Event{Type: api.RulesChanged, Time: e.now()})
	return changes, nil
}

// reload is Replace without what is told about it.
//
// REQUIRES: e.mu.
func (e *Engine) reload(file *rules.File) error {
	b, err := newBook(file, e.book.Load(), e.config.CounterBudget)
	if err != nil {
		return err
	}
	if err := e.limiter.Load().Update(file.Limits); err != nil {
		return fmt.Errorf("limits: %w", err)
	}
	e.book.Store(b)
	if unused := b.fields.unused; len(unused) > 0 {
		e.log.Warn("no rule or counter uses these event fields any more; after a restart, events that have them are errors", "fields", strings.Join(unused, ", "))
	}
	e.listed() // lets go of the detectors of rules that are not there any more
	return nil
}

// ReloadFailed notes that the rules file could not be read, so that the state says
// so: the rules in force are those of before.
func (e *Engine) ReloadFailed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.reloads.last = err
	e.mark(ReloadFailed)
}

// ruleError is the error for a rule that is not there, as limiters tell it.
func ruleError(err error) error {
	if _, ok := errors.AsType[*ratelimit.RuleError](err); ok {
		return noSuchRule(err)
	}
	if errors.Is(err, ratelimit.ErrBadKey) {
		return &Error{api.BadArg, errors.Unwrap(err).Error()}
	}
	return err
}

// noSuchRule is ruleError for an error that is one.
func noSuchRule(err error) error {
	return &Error{api.NoRule, strings.TrimPrefix(err.Error(), "ratelimit: ")}
}
