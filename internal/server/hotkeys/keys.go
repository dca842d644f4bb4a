package hotkeys

import (
	"iter"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/match"
)

// Config has the settings of Keys. All are required.
type Config struct {
	// Budget bounds the memory of all keys, in bytes; see the package.
	Budget int64

	// Now returns the current time.
	Now func() time.Time

	// Publish is called with an event for each key that becomes hot. It must not wait.
	Publish func(api.Event)

	// Log receives which ignored keys are counted again.
	Log *slog.Logger
}

// listShare is which share of the budget is for the list of the keys that are hot.
const listShare = 16

// Keys counts the keys of hot rules, and has the list of those that are hot. It is safe for concurrent use. Make one
// with [New].
type Keys struct {
	config Config
	list   *hotList
	past   *past
	rules  atomic.Pointer[Rules]

	mu      sync.Mutex                    // held while rules or ignored change
	ignored atomic.Pointer[[]api.RuleKey] // by hand, in that order
}

// New returns Keys without rules.
func New(c Config) *Keys {
	k := &Keys{config: c, past: newPast()}
	k.list = newHotList(c.Budget/listShare, c.Now, func(e *entry) bool { return slices.Contains(*k.rules.Load(), e.of) }, k.isBusy)
	k.rules.Store(new(Rules))
	k.ignored.Store(new([]api.RuleKey))
	return k
}

// isBusy reports whether a key that is hot is over its threshold now.
func (k *Keys) isBusy(e *entry) bool {
	lo, _ := e.of.count(k.config.Now(), e.ID)
	return lo >= e.of.Threshold
}

// Run wakes watchers and ends what is hot no more, until stop is closed.
func (k *Keys) Run(stop <-chan struct{}) { k.list.run(stop) }

// Prepare returns the given rules for Use, with the detectors of those that stay as they are.
func (k *Keys) Prepare(rules []hotkey.Rule) (Rules, error) {
	next := make(Rules, 0, len(rules))
	for i := range rules {
		r, err := k.rules.Load().prepare(&rules[i], (k.config.Budget-k.config.Budget/listShare)/int64(len(rules)))
		if err != nil {
			return nil, err
		}
		next = append(next, r)
	}
	return next, nil
}

// Use puts the rules in force: the keys of others are no longer hot, and those that are always hot are.
func (k *Keys) Use(next Rules) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ignored := range *k.ignored.Load() {
		if r, err := next.named(ignored.Rule); err == nil {
			r.ignore(ignored.Values())
		}
	}
	k.rules.Store(&next)
	k.list.purge()
	now := k.config.Now()
	for _, r := range next {
		for _, key := range r.Always {
			e := r.entry(&hotkey.Edge{Key: key, Time: now})
			e.Until = time.Time{}
			k.list.add(e)
		}
	}
}

// Count counts ev in the rules that match it; edges is memory, and is returned.
func (k *Keys) Count(t time.Time, ev *match.Event, edges []hotkey.Edge) []hotkey.Edge {
	for _, r := range *k.rules.Load() {
		if ev.Part == match.Answer && !r.answers {
			continue
		}
		if edges = r.detector.AddAt(t, ev, 1, edges[:0]); len(edges) > 0 {
			k.becameHot(r, edges...)
		}
	}
	return edges
}

// becameHot lists keys that became hot under r, and publishes events about them. Events of
// logs may make keys hot for a time that is over.
func (k *Keys) becameHot(r *hotRule, edges ...hotkey.Edge) {
	now := k.config.Now()
	for i := range edges {
		if !edges[i].Until.Before(now) {
			k.add(r.entry(&edges[i]))
		}
	}
}

// add lists a key that became hot, and publishes an event about it.
func (k *Keys) add(e entry) {
	k.list.add(e)
	k.config.Publish(api.Event{Type: api.KeyHot, Time: e.Since, Rule: e.Rule, Key: e.Key, Until: e.Until.UTC()})
}

// List returns the keys that are hot under a rule, or under all if rule is "", with their
// present counts, those that became hot last first.
func (k *Keys) List(rule string) ([]api.HotKey, error) {
	if err := k.known(rule); err != nil {
		return nil, err
	}
	now := k.config.Now()
	keys, processes := []api.HotKey{}, k.past.count(now)
	for _, e := range slices.Backward(k.list.all(rule)) {
		if !e.isCut() {
			e.Lo, e.Hi = e.of.count(now, e.ID)
		}
		key := e.HotKey(now)
		key.Rate = e.of.rate(e.Lo)
		key.Processes = processes[string(appendID(nil, e.Rule, e.ID))]
		keys = append(keys, key)
	}
	return keys, nil
}

// Watch returns a watcher of the keys that are hot under a rule, or under all if rule
// is "".
func (k *Keys) Watch(rule string) (*Watcher, error) {
	if err := k.known(rule); err != nil {
		return nil, err
	}
	return k.list.watch(rule), nil
}

// known returns an error if there is no rule of that name, which may be empty.
func (k *Keys) known(rule string) error {
	if rule == "" {
		return nil
	}
	_, err := k.rules.Load().named(rule)
	return err
}

// Totals yields what was counted under each rule since the start.
func (k *Keys) Totals() iter.Seq2[string, api.HotTotals] {
	return func(yield func(string, api.HotTotals) bool) {
		for _, r := range *k.rules.Load() {
			if !yield(r.Name, api.HotTotals{Events: r.keys.Stats().Events, CacheCounts: r.use.caches()}) {
				return
			}
		}
	}
}
