package engine

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/lately-go/lately/api"
	"github.com/lately-go/lately/hotkey"
	"github.com/lately-go/lately/internal/server/apierror"
	"github.com/lately-go/lately/internal/server/keys"
)

// maxIgnored bounds the keys that are ignored by hand.
const maxIgnored = 1000

// changeHot returns the rule of that name and the key that it makes of these values, for
// a change.
func (e *Engine) changeHot(rule string, values []string) (h *hotRule, key string, err error) {
	if h, err = e.rules.Load().hotNamed(rule); err != nil {
		return nil, "", err
	}
	joined, err := keys.Join(nil, &h.Key, values)
	return h, string(joined), err
}

// AddHot makes a key hot for that long, or for the hold of its rule if ttl is 0, unless it
// is hot for longer.
func (e *Engine) AddHot(rule string, values []string, ttl time.Duration) (k api.HotKey, err error) {
	h, key, err := e.changeHot(rule, values)
	if err != nil {
		return k, err
	}
	ttl = cmp.Or(ttl, h.hold())
	if ttl < 0 || ttl > hotkey.MaxSpan {
		return k, apierror.New(api.BadArg, "time: %v: must be 1ms to 3650d", ttl)
	}
	now := e.Now()
	switch err := h.keys.SetHot(key, now.Add(ttl)); {
	case errors.Is(err, hotkey.ErrNever):
		return k, apierror.New(api.Conflict, "the key is ignored under hot rule %q, by hand or by never in the rules file: end that first", rule)
	case err != nil:
		return k, apierror.New(api.Overload, "hot rule %q: no memory for another key", rule)
	}
	entry := h.entry(&hotkey.Edge{Key: key, Time: now, Until: now.Add(ttl)})
	entry.Hand = true
	entry.Lo, entry.Hi = h.count(now, key)
	if !slices.Contains(h.Always, key) {
		e.addHot(&entry)
	}
	if k, ok := e.hot.Get(h.Name, entry.ID); ok {
		return k.HotKey(now), nil
	}
	return k, apierror.New(api.Overload, "hot rule %q: no memory for another key that is hot", rule)
}

// RemoveHot makes a key cold and deletes its counts. It reports whether the key was hot.
func (e *Engine) RemoveHot(rule string, values []string) (bool, error) {
	h, key, err := e.changeHot(rule, values)
	if err != nil {
		return false, err
	}
	if slices.Contains(h.Always, key) {
		return false, apierror.New(api.BadArg, "the key is in always of hot rule %q: change the rules file", rule)
	}
	h.keys.Remove(key)
	return e.hot.Remove(h.Name, key), nil
}

// ChangedHot tells watchers that the value of a key changed, and reports whether the key
// is hot.
func (e *Engine) ChangedHot(rule string, values []string) (bool, error) {
	h, key, err := e.changeHot(rule, values)
	if err != nil {
		return false, err
	}
	return e.hot.Changed(h.Name, key), nil
}

// ignoredUnder returns the keys that are ignored by hand under a rule.
func (e *Engine) ignoredUnder(rule string) []api.Key {
	keys := []api.Key{}
	for _, k := range *e.ignored.Load() {
		if k.Rule == rule {
			keys = append(keys, k.Key)
		}
	}
	return keys
}

// IgnoreHot has a key never counted under a rule, and so never hot; off ends that.
func (e *Engine) IgnoreHot(rule string, key []string, off bool) error {
	e.mu.Lock() // no other rules meanwhile
	defer e.mu.Unlock()
	h, joined, err := e.changeHot(rule, key)
	if err != nil {
		return err
	}
	was, values := *e.ignored.Load(), h.Key.Values(joined)
	at := slices.IndexFunc(was, func(k api.RuleKey) bool { return k.Rule == rule && slices.Equal(k.Values(), values) })
	if !off && at < 0 && len(was) >= maxIgnored {
		return apierror.New(api.Overload, "%d keys are ignored by hand, the most that can be: use never in the rules file", maxIgnored)
	}
	if err := h.keys.SetNever(joined, !off); err != nil {
		return apierror.New(api.BadArg, "the key is in always or never of hot rule %q: change the rules file", rule)
	}
	next := slices.Clone(was)
	switch {
	case off && at >= 0:
		next = slices.Delete(next, at, at+1)
	case !off && at < 0:
		next = append(next, api.RuleKey{Rule: rule, Key: api.KeyOf(values...)})
	}
	e.ignored.Store(&next)
	if !off {
		e.hot.Remove(h.Name, joined)
	}
	return nil
}

// ignoreIn has the detectors of r ignore the keys that are ignored by hand.
func (e *Engine) ignoreIn(r *ruleSet) {
	for _, k := range *e.ignored.Load() {
		h, err := r.hotNamed(k.Rule)
		if err != nil {
			continue
		}
		if key, err := h.Key.Rejoin(nil, k.Values()...); err == nil {
			_ = h.keys.SetNever(string(key), true) // the rules file now says more about the key
		}
	}
}
